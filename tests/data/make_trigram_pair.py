#!/usr/bin/env python3
"""Writes the pair trigram_float32.tsv and trigram_int8.tsv, which tests know the figures of, into the folder of this script.

The model is small but real: an interpolated byte trigram model, estimated on the first part of this project's LICENSE
and scored, teacher-forced, on the rest. The reference arm takes the logits as they are; the candidate arm rounds them
to the grid of an int8 output layer. Needs only Python.

usage: tests/data/make_trigram_pair.py
"""
import math
import pathlib
from collections import Counter, defaultdict

CHUNKS, CHUNK_TOKENS, TOP_K = 8, 40, 8


def int8(x):
    """x on a grid with a step of 0.125."""
    return round(x / 0.125) * 0.125


def estimate(text):
    one, two, three = Counter(text), defaultdict(Counter), defaultdict(Counter)
    for a, b, c in zip(text, text[1:], text[2:]):
        two[b][c] += 1
        three[a, b][c] += 1

    def logits(a, b):
        scores = []
        for token in range(256):
            p = 0.05 * (one[token] + 0.01) / (len(text) + 2.56)
            for weight, counts in ((0.3, two[b]), (0.65, three[a, b])):
                total = sum(counts.values())
                p += weight * counts[token] / total if total else weight / 256
            scores.append(math.log(p) + 12.0)
        return scores

    return logits


def trace(path, name, device, text, start, model, rounding):
    lines = [
        f"# model\t{name}",
        f"# device\t{device}",
        f"# corpus\tLICENSE\ttokens\t{len(text)}",
        f"# chunks\t{CHUNKS}\tchunk_tokens\t{CHUNK_TOKENS}\ttopk\t{TOP_K}\tprefill\t2",
        "# columns\tchunk\tpos\ttarget\tnll\ttop_ids\ttop_logits",
        f"# start_token\t{start}",
        "# contiguous\ttrue",
    ]
    at = start
    for chunk in range(CHUNKS):
        for pos in range(CHUNK_TOKENS):
            logits = [rounding(x) for x in model(text[at - 2], text[at - 1])]
            highest = max(logits)
            nll = highest + math.log(math.fsum(math.exp(x - highest) for x in logits)) - logits[text[at]]
            best = sorted(range(256), key=lambda token: (-logits[token], token))[:TOP_K]
            lines.append(
                f"{chunk}\t{pos}\t{text[at]}\t{nll:.6f}\t{','.join(map(str, best))}\t"
                + ",".join(f"{logits[token]:.6f}" for token in best)
            )
            at += 1
    path.write_text("\n".join(lines) + "\n")


def main():
    folder = pathlib.Path(__file__).resolve().parent
    text = (folder / "../../LICENSE").read_bytes()
    start = len(text) - CHUNKS * CHUNK_TOKENS
    model = estimate(text[:start])
    trace(folder / "trigram_float32.tsv", "byte trigram model", "CPU (float32 logits)", text, start, model, lambda x: x)
    trace(folder / "trigram_int8.tsv", "byte trigram model", "CPU (int8 logits)", text, start, model, int8)


if __name__ == "__main__":
    main()
