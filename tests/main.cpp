#define DOCTEST_CONFIG_IMPLEMENT // by itself too: WITH_MAIN alone comes too late where doctest.h is precompiled
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
