#!/usr/bin/env bash
# tests/fuzz/coverage.sh [CORPUS-FOLDER]
#
# Which lines of the readers and writers the fuzz targets reach with their seeds, with the findings of the past and with
# what run.sh has kept in CORPUS-FOLDER (default: build/fuzz/runs/corpus). Prints a line for each header: lines reached,
# lines, per cent; the others are named, with their text, in build/fuzz-coverage/unreached.txt.
# Needs clang with its llvm-profdata and llvm-cov (Debian, Ubuntu: the package llvm).
set -euo pipefail

fail() { printf 'coverage.sh: %s\n' "$*" >&2; exit 2; }
case "${1:-}" in -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
[ $# -le 1 ] || fail "one folder at most (see --help)"
[ $# -eq 0 ] || corpus=$(cd "$1" && pwd) || fail "no folder '$1'"

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. .ci/setup.sh
build=build/fuzz-coverage corpus=${corpus:-$PWD/build/fuzz/runs/corpus}
command -v llvm-profdata llvm-cov >/dev/null || install_packages llvm || fail "llvm-profdata and llvm-cov are missing"
configure $build "$all_packages clang libclang-rt-dev" --preset fuzz \
    "-DCMAKE_CXX_FLAGS=-O1 -fprofile-instr-generate -fcoverage-mapping" || fail "cannot configure"
cmake --build $build --target fuzz_replay --parallel "$(nproc)" >$build/build.log 2>&1 || fail "see $build/build.log"

rm -f $build/*.profraw
for folder in tests/fuzz/regressions "$corpus"; do
    LLVM_PROFILE_FILE=$build/%p.profraw $build/tests/fuzz/fuzz_replay "$folder" >$build/replay.log ||
        fail "an input breaks a promise: the last one of $build/replay.log"
done
llvm-profdata merge $build/*.profraw -o $build/profile
llvm-cov export $build/tests/fuzz/fuzz_replay -instr-profile=$build/profile -format=lcov "$PWD/include/logitstat/io" |
    awk -F '[:,]' -v unreached=$build/unreached.txt '
        function finish() {
            if (total > 0) printf "%-58s%6d%6d%7.1f %%\n", file, reached, total, 100 * reached / total
            all_reached += reached; all += total; reached = total = 0
        }
        BEGIN { printf "" >unreached }
        /^SF:/ { finish(); file = $2; sub(/.*\/include\//, "include/", file); number = 0 }
        /^DA:/ {
            ++total
            if ($3 > 0) { ++reached; next }
            while (number < $2 && (getline text <file) > 0) ++number
            print file ":" $2 ": " text >unreached
        }
        END { finish(); printf "%-58s%6d%6d%7.1f %%\n", "all", all_reached, all, 100 * all_reached / all }'
