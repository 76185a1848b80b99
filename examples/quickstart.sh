#!/usr/bin/env bash
# examples/quickstart.sh [REFERENCE CANDIDATE [OPTION...]]
#
# Builds the programs and compares two traces. Without arguments: runs a small language model in several arithmetics
# (float32, bfloat16, int8, one with a bug, ...) and compares each of them with float32.
# Installs missing packages where apt-get and the right to use it are there, otherwise names them.
set -euo pipefail

case "${1:-}" in -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
[ $# -ne 1 ] || { echo "usage: examples/quickstart.sh [REFERENCE CANDIDATE [OPTION...]]" >&2; exit 2; }

here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
checkout=$PWD
. .ci/setup.sh

programs="compare_traces correctness_matrix"
[ $# -ne 0 ] || programs="$programs capture_tiny_lm"
{
    say "configuring into build/quickstart"
    configure build/quickstart "$program_packages" -DCMAKE_BUILD_TYPE=Release \
        -DLOGITSTAT_BUILD_TESTS=OFF -DLOGITSTAT_BUILD_BENCHES=OFF
    say "building $programs"
    # shellcheck disable=SC2086
    cmake --build build/quickstart --target $programs --parallel "$(nproc 2>/dev/null || echo 2)"
} >&2

bin=build/quickstart/examples
if [ $# -ne 0 ]; then
    cd "$here"
    say "comparing $1 with $2" >&2
    exec "$checkout/$bin/compare_traces" "$@"
fi

traces=build/quickstart/tiny_lm
say "scoring examples/tiny_lm/held_out.txt with a small language model, in:" >&2
$bin/capture_tiny_lm --arms >&2
examples/tiny_lm/capture_arms.sh "$bin" "$traces"

say "comparing each with float32: correctness_matrix $traces/pairs.tsv" >&2
status=0
$bin/correctness_matrix "$traces/pairs.tsv" --csv "$traces/matrix.csv" || status=$?
[ $status -eq 1 ] || { echo "correctness_matrix ended with $status, not with 1 (a pair fails)" >&2; exit 2; }

# A kernel with a bug must fail; another order of summation and narrower types must not.
unexpected() { echo "unexpected: $1 is '$2'" >&2; exit 1; }
while IFS=, read -r _ arm _ _ verdict _; do
    case $arm,$verdict in
    tag,verdict | broken,fail | int4,*) ;;
    broken,*) unexpected "$arm" "$verdict" ;;
    *,identical | *,pass) ;;
    *) unexpected "$arm" "$verdict" ;;
    esac
done <"$traces/matrix.csv"
cat <<EOF

As expected. Look at "decided mismatches" and "perplexity change": rounding moves no best token that float32 had decided;
4 bits move some and cost perplexity; the bug moves more. Because pairs fail, correctness_matrix itself ended with status 1,
which is how it gates. One pair in full:
  $bin/compare_traces $traces/float32.tsv $traces/int4.tsv
EOF
