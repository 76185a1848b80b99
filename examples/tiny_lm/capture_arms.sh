#!/usr/bin/env bash
# capture_arms.sh PROGRAM-FOLDER TRACE-FOLDER: scores the held-out text in each arithmetic of capture_tiny_lm, and writes
# the manifest TRACE-FOLDER/pairs.tsv, which pairs each arm with float32.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: capture_arms.sh PROGRAM-FOLDER TRACE-FOLDER" >&2; exit 2; }
capture=$1/capture_tiny_lm traces=$2
mkdir -p "$traces"
rm -f "$traces"/*.partial # of an earlier run that was interrupted
printf 'name\ttag\treference\tcandidate\n' >"$traces/pairs.tsv"
for arm in $("$capture" --arms | cut -d' ' -f1); do
    "$capture" "$arm" "$traces/$arm.tsv"
    [ "$arm" = float32 ] || printf 'tiny_lm\t%s\tfloat32.tsv\t%s.tsv\n' "$arm" "$arm" >>"$traces/pairs.tsv"
done
