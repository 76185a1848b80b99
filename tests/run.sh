#!/usr/bin/env bash
# tests/run.sh [PRESET [CTEST-OPTION...]]
#
# Configures, builds and runs the tests with a preset of CMakePresets.json (default: dev). Installs missing packages
# where apt-get and the right to use it are there, otherwise names them.
set -euo pipefail

case "${1:-}" in -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
preset=${1:-dev}
[ $# -eq 0 ] || shift

cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/setup.sh

packages=$all_packages
[ "$preset" != clang-sanitize ] || packages="$packages clang libclang-rt-dev"
say "configuring preset $preset into build/$preset"
configure "build/$preset" "$packages" --preset "$preset"
say "building"
cmake --build "build/$preset" --parallel "$(nproc 2>/dev/null || echo 2)"
say "testing"
ctest --test-dir "build/$preset" --output-on-failure --parallel "$(nproc 2>/dev/null || echo 2)" "$@"
