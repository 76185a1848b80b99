#!/usr/bin/env bash
# tests/dispatch/instruction_sets.sh OBJDUMP FILE...
#
# Fails when a function of a program or an archive uses AVX or AVX-512 (registers ymm and zmm, mask registers, or the
# VEX and EVEX forms, whose names begin with v) and its name does not tell that it was made for them: such a function
# may be one that the whole program shares, and an older processor cannot run it. Also fails when there is no such
# function of either, because then nothing was tested. SKIPPED without objdump.
set -euo pipefail

objdump=$1
shift
command -v "$objdump" >/dev/null || { echo "SKIPPED: no objdump"; exit 0; }
for file in "$@"; do
    "$objdump" -d --no-show-raw-insn "$file" | awk -v file="$file" '
        /^[0-9a-f]+ <.*>:$/ { name = substr($2, 2, length($2) - 3); functions++; next }
        $2 ~ /^v/ || /%[yz]mm|%k[0-7]/ {
            if (name ~ /avx512/) { avx512[name] } else if (name ~ /avx2/) { avx2[name] } else if (!(name in shared)) {
                shared[name]
                print file ": shared function " name " uses " $0
            }
        }
        END {
            printf "%s: %d functions, %d for AVX2, %d for AVX-512, %d shared ones that are wide\n",
                   file, functions, length(avx2), length(avx512), length(shared)
            exit length(shared) > 0 || length(avx2) == 0 || length(avx512) == 0
        }'
done
