#!/usr/bin/env bash
# examples/quickstart.sh [REFERENCE CANDIDATE [OPTION...]]
#
# Builds the programs and compares two traces; without arguments, the small pair under examples/data.
# Installs missing packages where apt-get and the right to use it are there, otherwise names them.
set -euo pipefail

case "${1:-}" in -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
[ $# -ne 1 ] || { echo "usage: examples/quickstart.sh [REFERENCE CANDIDATE [OPTION...]]" >&2; exit 2; }

here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
checkout=$PWD
. .ci/setup.sh

{
    say "configuring into build/quickstart"
    configure build/quickstart "$program_packages" -DCMAKE_BUILD_TYPE=Release \
        -DLOGITSTAT_BUILD_TESTS=OFF -DLOGITSTAT_BUILD_BENCHES=OFF
    say "building compare_traces and correctness_matrix"
    cmake --build build/quickstart --target compare_traces correctness_matrix --parallel "$(nproc 2>/dev/null || echo 2)"
} >&2

program=$checkout/build/quickstart/examples/compare_traces
if [ $# -eq 0 ]; then
    say "comparing examples/data/float32.tsv with examples/data/int8.tsv" >&2
    exec "$program" examples/data/float32.tsv examples/data/int8.tsv --top 5
fi
cd "$here"
say "comparing $1 with $2" >&2
exec "$program" "$@"
