#!/usr/bin/env bash
# tests/fuzz/run.sh TARGET|all SECONDS [CORPUS-FOLDER]
#
# Fuzzes one target, or one after the other, for SECONDS of processor time each (a busy machine then fuzzes longer, not
# less), with clang, AddressSanitizer and UndefinedBehaviorSanitizer (the preset fuzz, which it builds as far as needed).
# Begins from the project's seeds and what CORPUS-FOLDER/TARGET holds (default: build/fuzz/runs/corpus), and keeps there
# what reaches new code. Prints for each target: seconds of processor time and of the clock, executions; covered edges
# (cov) and features (ft) as libFuzzer counts them; files and bytes of the corpus. Inputs that break a promise are in
# build/fuzz/runs/findings.
# Exit status: 0 nothing found, 1 a finding, 2 bad usage or a build that fails.
set -euo pipefail

usage() { sed -n '2,11s/^# \{0,1\}//p' "$0"; }
fail() { printf 'run.sh: %s\n' "$*" >&2; exit 2; }
# Of a process; fails when it has ended, also when nobody has waited for it yet.
processor_seconds() {
    awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); if ($1 == "Z") exit 1; print int(($12 + $13) / ticks) }' \
        "/proc/$1/stat" 2>/dev/null
}
case "${1:-}" in -h | --help) usage; exit 0 ;; esac
[ $# -eq 2 ] || [ $# -eq 3 ] || { usage >&2; exit 2; }
wanted=$1 seconds=$2
[[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "SECONDS must be a whole number above 0, not '$seconds'"
[ $# -lt 3 ] || { mkdir -p "$3" && corpus=$(cd "$3" && pwd); } || fail "cannot create the folder '$3'"

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. .ci/setup.sh
build=build/fuzz work=$PWD/build/fuzz/runs bin=$PWD/build/fuzz/tests/fuzz
corpus=${corpus:-$work/corpus}
configure $build "$all_packages clang libclang-rt-dev" --preset fuzz || fail "cannot configure"
mkdir -p "$work"
cmake --build $build --target fuzz_readers fuzz_replay --parallel "$(nproc)" >"$work/build.log" 2>&1 ||
    { tail -n 30 "$work/build.log" >&2; fail "cannot build; the whole log is $work/build.log"; }

targets=$("$bin/fuzz_replay" --list)
if [ "$wanted" != all ]; then
    grep -qx -- "$wanted" <<<"$targets" || fail "no target '$wanted'; there are: all" $targets
    targets=$wanted
fi
mkdir -p "$work/findings" "$work/logs"
seeds=$(mktemp -d) fuzzer=
# A background process does not get the interrupt of a terminal.
trap '[ -z "$fuzzer" ] || kill "$fuzzer" 2>/dev/null || true; rm -rf "$seeds"' EXIT
"$bin/fuzz_replay" --write-seeds "$seeds"

export ASAN_OPTIONS=quarantine_size_mb=16:malloc_context_size=0
status=0
printf '%-14s%11s%9s%12s%8s%8s%14s  %s\n' target processor clock executions cov ft corpus findings
for target in $targets; do
    case $target in
    text_trace | compare | targets) words=text_trace ;;
    binary_trace) words=safetensors ;;
    *) words=$target ;;
    esac
    dictionary=()
    [ ! -f "tests/fuzz/dictionaries/$words.dict" ] || dictionary=(-dict="tests/fuzz/dictionaries/$words.dict")
    mkdir -p "$corpus/$target"
    log=$work/logs/$target.log began=$SECONDS used=0 finding=none
    LOGITSTAT_FUZZ_TARGET=$target "$bin/fuzz_readers" -timeout=10 -rss_limit_mb=768 \
        -malloc_limit_mb=16 -max_len=16384 -artifact_prefix="$work/findings/$target-" -print_final_stats=1 \
        "${dictionary[@]}" "$corpus/$target" "$seeds/$target" >"$log" 2>&1 &
    fuzzer=$!
    while now=$(processor_seconds $fuzzer); do
        used=$now
        [ "$used" -lt "$seconds" ] || kill -USR1 $fuzzer 2>/dev/null || true # ends after the input at hand
        sleep 1
    done
    if ! wait $fuzzer; then
        status=1
        finding=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
        finding="${finding:-see} ($(grep -aE -m1 'broken:|ERROR:|runtime error:|what\(\):' "$log" || echo "$log"))"
    fi
    fuzzer=
    awk -v target="$target" -v used="$used" -v took=$((SECONDS - began)) -v finding="$finding" '
        { for (i = 1; i < NF; ++i) if ($i ~ /^(cov|ft|corp):$/) last[$i] = $(i + 1) }
        /^stat::number_of_executed_units/ { executions = $2 }
        END {
            printf "%-14s%11d%9d%12d%8d%8d%14s  %s\n", target, used, took, executions, last["cov:"], last["ft:"],
                last["corp:"], finding
        }' "$log"
done
exit $status
