#include <cstdio>
int main() { std::puts("SKIPPED"); return 77; }
