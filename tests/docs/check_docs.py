#!/usr/bin/env python3
"""check_docs.py CHECKOUT PROGRAM-FOLDER COMPILE-COMMAND...

Every code block of README.md, CONTRIBUTING.md and docs/ is compiled or run:

  cpp      compiled (not linked): a block with a main() as it is; another one inside a function that has two traces called
           reference and candidate and sees the names of PRELUDE, unless it defines functions itself; #include lines of all blocks go to the top
  python   run in a scratch folder; SKIPPED when a module that it imports is not here
  rust     compiled and run, where rustc is
  cmake, sh, tsv: listed in UNTESTED with the reason, or an error
  plain blocks whose first line begins with "$ ": the commands are run, and must print the lines that follow them

An HTML comment <!-- untested: REASON --> on the line above a block leaves it out, with the reason printed.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CHECKOUT, PROGRAMS, *COMPILE = sys.argv[1:]
CHECKOUT = pathlib.Path(CHECKOUT)
failures, counts = [], {}
PRELUDE = """
struct ForwardPass {
    std::int64_t chunk, pos, target;
    std::vector<float> logits;
};
inline const std::vector<ForwardPass> forward_passes; // what a harness has
"""


def blocks(path):
    """(line number, language, text, reason not to test) of each fenced block"""
    lines = path.read_text(encoding="utf-8").split("\n")
    start = None
    for number, line in enumerate(lines, 1):
        if not line.startswith("```"):
            continue
        if start is None:
            start, language = number, line[3:].strip()
        else:
            comment = re.fullmatch(r"<!-- untested: (.*) -->", lines[start - 2]) if start > 1 else None
            yield start, language, "\n".join(lines[start : number - 1]) + "\n", comment and comment.group(1)
            start = None
    if start is not None:
        failures.append(f"{path.name}:{start}: a block without an end")


def fail(place, reason, output=""):
    failures.append(f"{place}: {reason}\n{output}".rstrip())


def run(place, command, folder, **more):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, **more)
    if done.returncode != 0:
        fail(place, f"status {done.returncode}", done.stdout + done.stderr)


def check_session(place, text, folder):
    """Commands after "$ " and what they print; a command may say by `; echo $?` how it ended."""
    command, expected = None, []
    environment = dict(os.environ, PATH=PROGRAMS + os.pathsep + os.environ["PATH"])

    def finish():
        if command is None:
            return
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, env=environment)
        if done.stdout.split("\n")[:-1] != expected:
            fail(place, f"$ {command}\nprints", done.stdout + done.stderr)

    for line in text.split("\n")[:-1]:
        if line.startswith("$ "):
            finish()
            command, expected = line[2:], []
        else:
            expected.append(line)
    finish()


def as_unit(number, text):
    """The block as part of one translation unit, and its #include lines."""
    includes = [line for line in text.split("\n") if line.startswith("#include")]
    body = "\n".join("" if line.startswith("#include") else line for line in text.split("\n"))
    defines = re.search(r"^(?:int|void|auto|double|template)\b[^;={]*\([^;{]*\{", body, re.M)
    if not defines:
        body = (
            "inline void block([[maybe_unused]] const logitstat::Trace<double>& reference, "
            f"[[maybe_unused]] const logitstat::Trace<double>& candidate) {{{{\n{body}}}}}\n"
        )
    return includes, f"namespace block_{number} {{\n{body}}}\n"


with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    session = scratch / "checkout"  # where commands see the checkout's files and may write into build/
    session.mkdir()
    for name in ("examples", "README.md"):
        (session / name).symlink_to(CHECKOUT / name)
    (session / "build").mkdir()
    run("the arms of the quickstart", ["examples/tiny_lm/capture_arms.sh", PROGRAMS, "build/quickstart/tiny_lm"], session)
    includes, units = {"#include <functional>", "#include <iostream>", '#include "logitstat/logitstat.hpp"'}, []
    for path in [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md"))]:
        for number, language, text, reason in blocks(path):
            place = f"{path.relative_to(CHECKOUT)}:{number}"
            if reason:
                print(f"{place}: left out: {reason}")
                continue
            kind = "session" if text.startswith("$ ") and not language else language
            counts[kind] = counts.get(kind, 0) + 1
            if kind == "cpp":
                more, unit = as_unit(len(units), text)
                includes |= set(more)
                units.append(f'#line {number + 1} "{place.split(":")[0]}"\n{unit}')
            elif kind == "python":
                missing = [
                    name
                    for name in re.findall(r"^(?:import|from) (\w+)", text, re.M)
                    if importlib.util.find_spec(name) is None
                ]
                if missing:
                    print(f"{place}: SKIPPED: no Python module {missing[0]} here")
                    continue
                run(place, [sys.executable, "-c", text], scratch)
            elif kind == "rust":
                if shutil.which("rustc"):
                    (scratch / "block.rs").write_text(text)
                    run(place, ["rustc", "-o", "block", "block.rs"], scratch)
                    run(place, ["./block"], scratch)
                else:
                    print(f"{place}: SKIPPED: no rustc here")
            elif kind == "session":
                check_session(place, text, session)
            else:
                fail(place, f"a block of '{language or 'no language'}' that nothing tests; say why: <!-- untested: ... -->")
    source = scratch / "blocks.cpp"
    source.write_text("\n".join(sorted(includes)) + PRELUDE + "\n".join(units))
    run("the cpp blocks together", [*COMPILE, "-fsyntax-only", str(source)], scratch)
    # What the blocks wrote are traces and logits as the text says.
    environment = dict(os.environ, PATH=PROGRAMS + os.pathsep + os.environ["PATH"])
    for command in (
        ["convert_trace", "--check", "run.tsv"],
        ["convert_trace", "--check", "rust.tsv"],
        ["compare_logits", "logits.npy", "logits.npy", "--targets", "targets.npy"],
    ):
        if all((scratch / name).exists() for name in command if "." in name):
            run(" ".join(command), command, scratch, env=environment)

print(", ".join(f"{n} of {kind}" for kind, n in sorted(counts.items())), "tested")
for failure in failures:
    print("FAILED", failure)
sys.exit(1 if failures or counts.get("cpp", 0) < 5 else 0)
