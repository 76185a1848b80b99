#!/usr/bin/env bash
# bench/run.sh [OPTION...]
#
# Builds the benchmarks with the release preset (this machine's instruction set) and prints their tables, as Markdown.
# Options go to Google Benchmark, e.g. --benchmark_filter=sweep.
set -euo pipefail

case "${1:-}" in -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/setup.sh

{
    say "configuring preset release into build/release"
    configure build/release "$all_packages" --preset release -DLOGITSTAT_BUILD_TESTS=OFF
    say "building"
    cmake --build build/release --parallel "$(nproc 2>/dev/null || echo 2)"
} >&2

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' build/release/CMakeCache.txt)
printf 'CPU: %s. Compiler: %s. Flags: -O3 -march=native, one thread. Median of 7 interleaved runs.\n\n' \
    "${cpu:-unknown}" "$("$compiler" --version | head -n 1)"
for program in build/release/bench/bench_*; do
    [ ! -x "$program" ] || [ -d "$program" ] || "$program" "$@"
done
