"""Files of .npy as numpy writes them, read by the library.

    npy_numpy.py DUMP_LOGITS

Writes logits and targets of every dtype, in every version of the format, whole, sharded and with leading dimensions,
and compares each bit with what the program prints; then files that must be refused.
"""

import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from numpy.lib import format as npy

VERSIONS = [(1, 0), (2, 0), (3, 0)]
NAMES = {"f2": "F16", "f4": "F32", "f8": "F64"}


def save(path, array, version=(1, 0)):
    with open(path, "wb") as file:
        npy.write_array(file, array, version=version, allow_pickle=True)
    return path


def dump(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True)


def check_logits(program, paths, array):
    result = dump(program, "logits", *paths)
    assert result.returncode == 0, result.stderr
    rows = array.reshape(-1, array.shape[-1])
    head, *lines = result.stdout.splitlines()
    assert head == f"{NAMES[array.dtype.str[1:]]} {rows.shape[0]} {rows.shape[1]}", head
    bits = rows.view(f"u{array.dtype.itemsize}")
    assert [[int(word, 16) for word in line.split()] for line in lines] == bits.tolist()


def main(program):
    random = np.random.default_rng(1)
    checked = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for code, version, shape in itertools.product(NAMES, VERSIONS, [(5, 7), (1, 1), (2, 3, 5), (3, 1, 2), (1, 300)]):
            array = random.normal(size=shape).astype("<" + code)
            array.flat[0] = np.inf  # readers look at no value
            array.flat[-1] = np.nan
            check_logits(program, [save(folder / "x.npy", array, version)], array)
            shards = np.concatenate([array, array[::-1]])
            check_logits(program, [folder / "x.npy", save(folder / "y.npy", array[::-1].copy(), version)], shards)
            checked += 2
        np.save(folder / "plain.npy", array)
        check_logits(program, [folder / "plain.npy"], array)

        for dtype, version in itertools.product(["|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8"], VERSIONS):
            for shape in [(12,), (3, 4)]:
                tokens = random.integers(0, 127, size=shape).astype(dtype)
                result = dump(program, "targets", save(folder / "t.npy", tokens, version))
                assert result.returncode == 0, result.stderr
                assert [int(word) for word in result.stdout.split()] == tokens.ravel().tolist()
                checked += 1

        logits = np.ones((3, 4), "<f4")
        for array, reason in [
            (np.asfortranarray(logits), "column order"),
            (logits.astype(">f4"), "big-endian"),
            (logits.astype("<c8"), "is none of"),
            (logits.astype("O"), "Python objects"),
            (np.zeros((3, 4), [("a", "<f4")]), "structure of fields"),
            (np.zeros((3, 4), "|V2"), "bfloat16"),
            (logits.astype("<i4"), "cannot be logits"),
            (logits.ravel(), "cannot be logits"),
            (logits[:0], "holds no logits"),
        ]:
            result = dump(program, "logits", save(folder / "bad.npy", array))
            assert result.returncode == 1 and reason in result.stderr and not result.stdout, (reason, result)
            checked += 1
    print(f"numpy {np.__version__}, {checked} files: ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
