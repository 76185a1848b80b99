#!/usr/bin/env bash
# examples/data/make_pair.sh [CAPTURE_PROGRAM]
#
# Captures the example pair anew: the small language model of examples/tiny_lm in float32 and with 4-bit weights.
# CAPTURE_PROGRAM: a built capture_tiny_lm (default: the one that examples/quickstart.sh builds).
set -euo pipefail

case "${1:-}" in -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=${1:-$folder/../../build/quickstart/examples/capture_tiny_lm}

for arm in float32 int4; do
    "$program" "$arm" "$folder/$arm.tsv" 32 18 8 64
done
