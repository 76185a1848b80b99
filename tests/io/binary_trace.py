"""Binary traces with the standard library alone, from the public descriptions of safetensors and of the trace: an
independent reader and writer for the tests.

    binary_trace.py CONVERT_TRACE TRACE.tsv...

For each text trace: has the program write it as a binary trace, of doubles and of floats, reads that and compares every
value with the text; then writes a binary trace itself, unlike the library does (other order, 64-bit integers, no
padding), and has the program turn it into text, which must be the same bytes.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

CODES = {"F64": "d", "F32": "f", "I64": "q", "I32": "i"}


def read(path):
    """Tensors as (shape, values) and the metadata, by the rules of the reference implementation."""
    raw = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    assert length <= 100_000_000 and 8 + length <= len(raw)
    text = raw[8 : 8 + length].decode("utf-8")
    assert text[0] == "{"

    def unique(pairs):
        assert len({key for key, _ in pairs}) == len(pairs), "a key comes twice"
        return dict(pairs)

    header = json.loads(text, object_pairs_hook=unique)
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(value, str) for value in metadata.values())
    data = raw[8 + length :]
    covered, tensors, sizes = 0, {}, []
    for name, info in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        assert set(info) == {"dtype", "shape", "data_offsets"}
        begin, end = info["data_offsets"]
        assert begin == covered, "a hole or an overlap"
        count = 1
        for extent in info["shape"]:
            count *= extent
        code = CODES[info["dtype"]]
        assert end - begin == count * struct.calcsize(code)
        assert (8 + length + begin) % struct.calcsize(code) == 0, "not aligned"
        tensors[name] = (info["shape"], struct.unpack(f"<{count}{code}", data[begin:end]))
        sizes.append(struct.calcsize(code))
        covered = end
    assert covered == len(data), "bytes that belong to no tensor"
    assert (8 + length) % 64 == 0 and sizes == sorted(sizes, reverse=True)
    assert list(header) == sorted(header, key=lambda name: header[name]["data_offsets"])
    return tensors, metadata


def parse(text):
    """The same from a text trace (bytes): columns, header lines, skipped lines."""
    rows, header, skipped = [], [], []
    for line in text.decode("utf-8").split("\n")[:-1]:
        if line.startswith("#"):
            header.append(line)
        elif line.count("\t") == 5:
            chunk, pos, target, nll, ids, logits = line.split("\t")
            rows.append((int(chunk), int(pos), int(target), float(nll), [int(i) for i in ids.split(",")],
                         [float(x) for x in logits.split(",")]))
        else:
            skipped.append(line)
    n, k = len(rows), len(rows[0][4])
    planes = lambda column: [row[column][j] for j in range(k) for row in rows]
    columns = {"chunk": ([n], [row[0] for row in rows]), "pos": ([n], [row[1] for row in rows]),
               "target": ([n], [row[2] for row in rows]), "nll": ([n], [row[3] for row in rows]),
               "top_ids": ([k, n], planes(4)), "top_logits": ([k, n], planes(5))}
    return columns, header, skipped


def write(path, columns, header, skipped):
    """As some other program might: 64-bit integers, columns in alphabetical order, the header as it comes."""
    entries, data = {}, b""
    for name in sorted(columns):
        shape, values = columns[name]
        dtype = "F64" if name in ("nll", "top_logits") else "I64"
        packed = struct.pack(f"<{len(values)}{CODES[dtype]}", *values)
        entries[name] = {"data_offsets": [len(data), len(data) + len(packed)], "shape": shape, "dtype": dtype}
        data += packed
    entries["__metadata__"] = {"version": "1", "format": "logitstat-trace", "header_lines": "\n".join(header),
                               "skipped_lines": "".join(line + "\n" for line in skipped)}
    text = json.dumps(entries).encode()
    text += b" " * (3 - (8 + len(text)) % 4)  # 4-byte boundaries are missed for certain
    assert (8 + len(text)) % 4 == 3
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def check(program, trace, folder):
    original = pathlib.Path(trace).read_bytes()
    columns, header, skipped = parse(original)
    for option in ([], ["--float"]):
        binary = folder / "ours.safetensors"
        subprocess.run([program, trace, binary, *option], check=True)
        tensors, metadata = read(binary)
        assert set(tensors) == set(columns)
        for name, (shape, values) in columns.items():
            if option and name in ("nll", "top_logits"):
                values = [single(value) for value in values]
            assert tensors[name][0] == shape, name
            assert list(tensors[name][1]) == list(values), name
            assert [str(x) for x in tensors[name][1]] == [str(x) for x in values], name  # tells -0.0 from 0.0
        assert metadata["format"] == "logitstat-trace" and metadata["version"] == "1"
        assert metadata.get("header_lines", "").split("\n") == (header or [""])
        assert metadata.get("skipped_lines", "") == "".join(line + "\n" for line in skipped)
        words = header[0][2:].split("\t") if header else []
        assert not words or metadata[words[0]] == words[1]
    foreign = folder / "foreign.safetensors"
    write(foreign, columns, header, skipped)
    subprocess.run([program, foreign, folder / "back.tsv"], check=True)
    assert (folder / "back.tsv").read_bytes() == original, "the text differs"


def main(program, *traces):
    assert traces
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        chatty = folder / "chatty.tsv"
        chatty.write_bytes("[Model] Loading caf\u00e9...\n\n".encode() + pathlib.Path(traces[0]).read_bytes())
        bare = folder / "bare.tsv"
        bare.write_bytes(b"".join(line for line in pathlib.Path(traces[0]).read_bytes().splitlines(True)[:40]
                                  if not line.startswith(b"#")))
        for trace in (*traces, chatty, bare):
            check(program, trace, folder)
    print(f"{len(traces) + 2} traces: ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
