#!/usr/bin/env python3
"""Mutation testing of the statistics: small errors are put into the headers of include/logitstat, and the tests have to
notice each of them. A mutant that no test notices, a survivor, is a line that could be wrong.

All mutants of a header are compiled at once (mutants.hpp has them ask the environment which one is on), so that one
costs a run of the tests and no compilation. The tests of a mutant are those programs, one for each test file, in which
its code runs at all; the fastest first. A mutant is killed when a program fails, crashes or takes ten times as long.
Literals that the compiler needs (constexpr variables) cannot be switched: with --constants each of these is compiled.

  mutate.py                                   every mutant of include/logitstat/stats and compare.hpp
  mutate.py --file stats/sweep.hpp --list     the mutants of one header
  mutate.py --per-file 10 --seed 7            a sample

Exit status: 0 when no unexplained mutant survived, 1 when one did, 2 when something could not be done at all.
"""
import argparse
import collections
import concurrent.futures
import difflib
import json
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = ROOT / "include" / "logitstat"
MAIN = ROOT / "tests" / "main.cpp"
DOES_NOT_COMPILE = 250  # exit status, see mutants.hpp

# ---- finding mutants -------------------------------------------------------------------------------------------------

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.)*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'(?!\w))
  | (?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<operator><=>|<<=|>>=|->\*|\.\.\.|::|->|\+\+|--|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|<<|>>|.)
""", re.X | re.S | re.M)

COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",)}
LETTER = {"<=": "l", ">=": "g", "==": "=", "!=": "!"}  # in mutants.hpp; the others are their own
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
FUNCTIONS = ("sqrt", "abs", "exp", "expm1", "floor", "nearbyint")
NO_STATEMENT = set("""return throw if for while do switch case default break continue using namespace struct class enum
    template inline constexpr const static auto typename friend public private protected else try catch operator
    requires explicit typedef static_assert double float int bool char""".split())

Token = collections.namedtuple("Token", "kind text start end")


class Mutant:
    """One change: for people as text, for the compiler as insertions into the header."""

    def __init__(self, header, line, before, after, what, constant=False):
        self.header, self.line, self.before, self.after = header, line, before, after
        self.what, self.constant = what, constant
        self.id = 0  # when it is compiled in
        self.status, self.by = None, ""

    @property
    def key(self):
        return self.header, self.after

    def __str__(self):
        return f"{self.header}:{self.line}: {self.what}\n    - {self.before}\n    + {self.after}"


class Header:
    """The mutants of one header, and its text with a selection of them compiled in."""

    def __init__(self, path, root=INCLUDE):
        self.path = path
        self.name = path.relative_to(root).as_posix()
        self.text = path.read_text()
        self.tokens = [Token(m.lastgroup, m.group(), m.start(), m.end()) for m in TOKEN.finditer(self.text)
                       if m.lastgroup != "skip"]
        self.sites = []  # (function of the first id that gives the edits, mutants)
        self._structure()
        self._find()

    # -- what the tokens are

    def _structure(self):
        """Marks brackets, template argument lists and the parts where nothing is to be changed."""
        tokens, n = self.tokens, len(self.tokens)
        self.partner = [None] * n    # of a bracket
        self.opener = [None] * n     # the innermost open bracket around a token
        self.frozen = [False] * n    # nothing is changed here
        self.constant = [False] * n  # inside a constexpr variable
        stack = []
        for i, token in enumerate(tokens):
            if token.text in (")", "]", "}"):
                while tokens[stack[-1]].text == "<":
                    stack.pop()
                self.partner[i], self.partner[stack[-1]] = stack[-1], i
                stack.pop()
            elif token.text in (">", ">>") and not self._is_binary(i):
                for _ in token.text:
                    if stack and tokens[stack[-1]].text == "<":
                        self.partner[stack.pop()] = i
            self.opener[i] = stack[-1] if stack else None
            if token.text in ("(", "[", "{") or (token.text == "<" and not self._is_binary(i)):
                stack.append(i)
        for i, token in enumerate(tokens):
            if token.text == "<" and self.partner[i] is not None:
                self._freeze(i, self.partner[i])
            elif token.text == "throw":
                self._freeze(i + 1, self._end_of_statement(i))
            elif token.text == "requires":
                j = i + 1
                if tokens[j].text == "(":
                    j = self.partner[j] + 1
                while tokens[j].text not in ("{", ";", ")") and self.opener[j] == self.opener[i]:
                    j += 1
                self._freeze(i, self.partner[j] if tokens[j].text == "{" and tokens[i + 1].text in "{(" else j - 1)
            elif token.text == "constexpr" and tokens[i - 1].text == "if":
                self._freeze(i + 1, self.partner[i + 1])
            elif token.text == "constexpr":
                j = i
                while tokens[j].text not in (";", "=", "{", "("):
                    j += 1
                if tokens[j].text in ("=", "{"):
                    for k in range(i, self._end_of_statement(i)):
                        self.constant[k] = True
            elif token.text == "operator":
                self._freeze(i, self._end_of_statement(i))

    def _freeze(self, first, last):
        for k in range(first, last + 1):
            self.frozen[k] = True

    def _is_binary(self, i):
        """clang-format puts spaces round operators of two operands, and none round the brackets of templates."""
        token, before = self.tokens[i], self.tokens[i - 1]
        spaces = self.text[token.start - 1].isspace() and self.text[token.end].isspace()
        return spaces and before.text not in ("template", "(", ",", "return", "=", "?", ":", "operator")

    def _end_of_statement(self, i):
        j = i
        while self.tokens[j].text != ";" or self.opener[j] != self.opener[i]:
            if self.tokens[j].text == "}" and self.opener[j] != self.opener[i] and self.partner[j] < i:
                return j
            j += 1
        return j

    # -- mutants

    def _add(self, i, what, spans, edits, replacements, constant=False):
        """One site at token i. `spans` is what the text for people replaces, by each of `replacements`."""
        start, end = spans
        first_line = self.text.rfind("\n", 0, start) + 1
        last_line = self.text.find("\n", end)
        mutants = []
        for replacement in replacements:
            def tidy(text):
                return " ".join(text.split())
            mutants.append(Mutant(self.name, self.text.count("\n", 0, start) + 1, tidy(self.text[first_line:last_line]),
                                  tidy(self.text[first_line:start] + replacement + self.text[end:last_line]), what,
                                  constant))
        self.sites.append((edits, mutants))

    def _find(self):
        for i, token in enumerate(self.tokens):
            if self._starts_statement(i) and not self.frozen[i]:
                self._statement(i)
            if token.text in ("return", "throw", "continue", "break") and self._leaves_early(i):
                end = self.tokens[self._end_of_statement(i)].end
                self._add(i, f"no {token.text}", (token.start, end),
                          lambda id, at=token.start: [(at, at, f"if (logitstat_mutation::keep<{id}>()) ", 0)],
                          [f"/* {self.text[token.start:end]} */"])
            if self.frozen[i]:
                continue
            if self.constant[i]:
                if token.kind == "number":
                    self._add(i, "constant", (token.start, token.end), None, self._other_numbers(token.text), True)
                continue
            if token.kind == "number":
                self._literal(token, self._other_numbers(token.text))
            elif token.text in ("true", "false"):
                self._literal(token, ["false" if token.text == "true" else "true"])
            elif token.text in COMPARISONS and self._is_binary(i):
                self._binary(token, "comparison", COMPARISONS[token.text])
            elif token.text in ARITHMETIC and self._is_binary(i):
                self._binary(token, "arithmetic", ARITHMETIC[token.text])
            elif token.text in ("&&", "||") and self._is_binary(i):
                self._logic(i)
            elif token.text == "!":
                self._add(i, "no !", (token.start, token.end), lambda id, t=token:
                          [(t.start, t.end, f"logitstat_mutation::negation<{id}>() ->* ", 0)], [""])
            elif token.text in ("min", "max") and self._is_std(i):
                self._min_max(i)
            elif token.text in FUNCTIONS and self._is_std(i) and self.tokens[i + 1].text == "(":
                start = self.tokens[i - 2].start
                self._add(i, f"no {token.text}", (start, token.end), lambda id, s=start, t=token:
                          [(s, t.end, f"logitstat_mutation::{t.text}<{id}>", 0)], [""])
            elif token.text == "if" and self.tokens[i + 1].text == "(":
                self._condition(i + 1)

    def _is_std(self, i):
        return [t.text for t in self.tokens[i - 2:i]] == ["std", "::"]

    @staticmethod
    def _other_numbers(text):
        plain = text.replace("'", "")
        if re.fullmatch(r"\d+", plain):
            value = int(plain)
            return ["1"] if value == 0 else [str(value - 1), str(value + 1)]
        if re.fullmatch(r"0[xX][0-9a-fA-F]+", plain):
            return [f"{hex(int(plain, 16) - 1)}", f"{hex(int(plain, 16) + 1)}"]
        if "p" in plain or "P" in plain:
            return [f"({text} * 2)"]
        return [repr(float(plain) + 1), repr(float(plain) * 0.5)] if float(plain) else ["1.0"]

    def _literal(self, token, others):
        self._add(None, "literal", (token.start, token.end), lambda id:
                  [(token.start, token.end, f"logitstat_mutation::literal<{id}>({token.text}, {', '.join(others)})", 0)],
                  others)

    def _binary(self, token, what, others):
        letters = ", ".join(f"'{LETTER.get(text, text)}'" for text in (token.text, *others))
        self._add(None, what, (token.start, token.end), lambda id:
                  [(token.end, token.end, f" logitstat_mutation::binary<{id}, {letters}>() {token.text}", 0)], others)

    def _operand_ends(self, i):
        """From where to where the operands of the && or || at token i reach."""
        stop = {",", ";", "?", ":", "=", "return", "+=", "-=", "|=", "&="}
        either = stop | ({"||"} if self.tokens[i].text == "&&" else set())
        around = self.opener[i]
        left = i
        while left - 1 != around and not (self.tokens[left - 1].text in either and self.opener[left - 1] == around):
            left -= 1
        stop_right = stop | ({"&&", "||"} if self.tokens[i].text == "&&" else {"||"})
        right = i
        while self.opener[right + 1] == around or self.partner[right + 1] is None or self.partner[right + 1] > around:
            if self.tokens[right + 1].text in stop_right and self.opener[right + 1] == around:
                break
            if self.partner[right + 1] == around:
                break
            right += 1
        return left, right

    def _logic(self, i):
        token = self.tokens[i]
        left, right = self._operand_ends(i)
        start, end = self.tokens[left].start, self.tokens[right].end
        is_and = "true" if token.text == "&&" else "false"

        def edits(id):
            return [(start, start, f"logitstat_mutation::logic<{id}, {is_and}>([&] {{ return static_cast<bool>(",
                     start - end),  # the outer one first
                    (token.start, token.end, "); }, [&] { return static_cast<bool>(", 0),
                    (end, end, "); })", end - start - 1_000_000)]  # the inner one first, all ahead of other insertions
        self._add(i, "logic", (token.start, token.end), edits, ["||" if is_and == "true" else "&&"])

    def _min_max(self, i):
        token, following = self.tokens[i], self.tokens[i + 1]
        start, other = self.tokens[i - 2].start, "max" if token.text == "min" else "min"
        if following.text == "<":
            self._add(i, "min/max", (token.start, token.end), lambda id:
                      [(start, following.end, f"logitstat_mutation::{token.text}<{id}, ", 0)], [other])
        else:
            self._add(i, "min/max", (token.start, token.end), lambda id:
                      [(start, token.end, f"logitstat_mutation::{token.text}<{id}>", 0)], [other])

    def _condition(self, opening):
        """`if (flag)`: a condition without an operator that has its own mutants."""
        closing = self.partner[opening]
        inside = self.tokens[opening + 1:closing]
        if any(t.text in COMPARISONS or t.text in ("&&", "||", "!", "=", ";", "const") for t in inside):
            return
        start, end = inside[0].start, inside[-1].end
        self._add(opening, "condition", (start, end), lambda id:
                  [(start, start, f"logitstat_mutation::flip<{id}>(", -1), (end, end, ")", 1)],
                  [f"!({self.text[start:end]})"])

    def _leaves_early(self, i):
        around = self.opener[i]
        if around is None or self.tokens[around].text != "{" or self.tokens[around - 1].text != ")":
            return False
        return self.tokens[self.partner[around - 1] - 1].text == "if"

    def _starts_statement(self, i):
        around = self.opener[i]
        return (self.tokens[i - 1].text in (";", "{", "}") and around is not None and
                self.tokens[around].text == "{" and
                (self.tokens[i].kind == "name" and self.tokens[i].text not in NO_STATEMENT or
                 self.tokens[i].text in ("++", "--", "*")))

    def _statement(self, i):
        """A call or an assignment, not a declaration: the mutant does without it, or assigns otherwise."""
        end, assignment = i, None
        while self.tokens[end].text != ";" or self.opener[end] != self.opener[i]:
            token, following = self.tokens[end], self.tokens[end + 1]
            if token.text == "}" and self.partner[end] is not None and self.partner[end] < i:
                return  # an enumerator or an initializer, no statement
            if self.opener[end] == self.opener[i] and not assignment:
                if following.kind == "name" and (token.kind == "name" or token.text in (">", ">>", "&")):
                    return
                if token.text in ASSIGNMENTS or token.text == "=":
                    assignment = token
            end += 1
        start, stop = self.tokens[i].start, self.tokens[end].end
        self._add(i, "no statement", (start, stop), lambda id:
                  [(start, start, f"if (logitstat_mutation::keep<{id}>()) ", -3)],
                  [f"/* {self.text[start:stop]} */"])
        if assignment and assignment.text != "=":
            mutated = ASSIGNMENTS[assignment.text]
            self._add(i, "assignment", (assignment.start, assignment.end), lambda id:
                      [(start, start, f"logitstat_mutation::accumulate<{id}, '{mutated[0]}'>(", -2),
                       (assignment.start, assignment.start, ") ", 2)], [mutated])

    def mutants(self):
        return [mutant for _, mutants in self.sites for mutant in mutants]

    def with_mutants(self, left_out):
        """The text with every mutant compiled in, except on the lines `left_out`."""
        edits = []
        for make, mutants in self.sites:
            if make and mutants[0].line not in left_out:
                edits += [(*edit, k) for k, edit in enumerate(make(mutants[0].id))]
            else:
                for mutant in mutants:
                    mutant.status = mutant.status or ("constant" if mutant.constant else "not compiled")
        text, done = "", 0
        for start, end, replacement, _, _ in sorted(edits, key=lambda e: (e[0], e[3], e[1])):
            text += self.text[done:start] + replacement
            done = max(done, end)
        return text + self.text[done:]

    def with_constant(self, mutant):
        """The text with one mutant of a constant in the place of what is there."""
        for edits, mutants in self.sites:
            if mutant in mutants:
                lines = self.text.split("\n")
                indent = lines[mutant.line - 1]
                lines[mutant.line - 1] = indent[:len(indent) - len(indent.lstrip())] + mutant.after
                return "\n".join(lines)
        raise ValueError("a mutant of another header")


# ---- building and running --------------------------------------------------------------------------------------------

def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command, timeout=None, environment=None):
    """(exit status, seconds, output); a status of None after a timeout."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env={**os.environ, **(environment or {})}, start_new_session=True,
                               preexec_fn=limit_memory if timeout else None)
    try:
        output = process.communicate(timeout=timeout)[0]
        return process.returncode, time.monotonic() - began, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, time.monotonic() - began, ""


class Tests:
    """One program for each test file, built over the headers of a folder that come before the project's."""

    def __init__(self, options, sources, folder, overlay, mutants):
        self.folder = folder
        self.compiler = shlex.split(options.compiler)
        self.compile = self.compiler + [
            "-std=c++20", *shlex.split(options.flags), "-w", "-Wno-narrowing", f"-DLOGITSTAT_MUTANTS={mutants}",
            "-include", str(HERE / "mutants.hpp"), f"-I{overlay}", f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests'}",
            "-isystem", options.eigen, f'-DEXAMPLE_DATA="{ROOT / "examples" / "data"}"',
            f'-DTEST_DATA="{ROOT / "tests" / "data"}"']
        self.sources, self.jobs, self.main = sources, options.jobs, folder / "main.o"
        self.main.unlink(missing_ok=True)
        self.programs = {}
        self.pool = concurrent.futures.ThreadPoolExecutor(options.jobs)

    def object(self, source):
        if source == MAIN:
            return self.main
        return self.folder / f"{source.parent.name}-{source.stem}.o"

    def build(self, sources):
        """Builds the programs of these files. {what failed: the compiler's words}"""
        def compile_one(source):
            return source, run([*self.compile, "-c", str(source), "-o", str(self.object(source))])
        todo = sources if self.main.exists() else [MAIN, *sources]
        failed = {}
        for source, (status, seconds, output) in self.pool.map(compile_one, todo):
            print(f"  {source.relative_to(ROOT)}: {seconds:.1f} s{'' if status == 0 else ', FAILED'}", flush=True)
            if status:
                failed[source] = output
        for source in sources:
            if source not in failed and MAIN not in failed:
                program = self.object(source).with_suffix("")
                status, _, output = run([*self.compiler, "-o", str(program), str(self.object(source)), str(self.main),
                                         "-ltbb", "-pthread"])
                self.programs[source] = program
                if status:
                    failed[source] = output
        return failed


def test_sources(options):
    sources = sorted({source for pattern in options.tests for source in ROOT.glob(pattern)})
    if not sources:
        sys.exit(f"no tests match {options.tests}")
    return sources


def explained(path):
    """{(header, changed line): why no test can notice}. An entry is 'header: changed line' and, indented, the reason."""
    reasons, key = {}, None
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.startswith("#") or not line.strip():
            continue
        if line[0].isspace():
            reasons[key] = (reasons[key] + " " + line.strip()).strip()
        else:
            header, _, changed = line.partition(": ")
            key = (header, changed.strip())
            reasons[key] = ""
    return reasons


def build_mutants(options, headers, sources, folder):
    """Builds the tests with all mutants compiled in. Lines that the compiler refuses then are left out."""
    overlay = folder / "include"
    shutil.rmtree(overlay, ignore_errors=True)  # of another run: its headers would come before the project's
    number = 0
    for header in headers:
        for mutant in header.mutants():
            number += 1
            mutant.id = number
    left_out = {header.name: set() for header in headers}
    tests = Tests(options, sources, folder, overlay, number)
    todo = sources
    while todo:
        for header in headers:
            for mutant in header.mutants():
                mutant.status = None
            path = overlay / "logitstat" / header.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(header.with_mutants(left_out[header.name]))
        print(f"building {len(todo)} test programs with {number} mutants compiled in", flush=True)
        failed = tests.build(todo)
        errors = "\n".join(failed.values())
        found = {(name, int(line)) for name, line in
                 re.findall(re.escape(str(overlay)) + r"/logitstat/([\w/.]+):(\d+):\d+: (?:error| +required)", errors)}
        found = {(name, line) for name, line in found if name in left_out and line not in left_out[name]}
        if failed and not found:
            print(errors[-6000:], file=sys.stderr)
            sys.exit(2)
        for name, line in sorted(found):
            left_out[name].add(line)
            print(f"  leaving out {name}:{line}")
        todo = list(failed)
    return tests


def baseline(tests, folder):
    """{mutant's number: programs that reach it, the fastest first} and the normal time of each program."""
    reached, seconds = collections.defaultdict(list), {}
    for source, program in tests.programs.items():
        record = folder / (program.name + ".reached")
        status, seconds[source], output = run([str(program)], timeout=600,
                                              environment={"LOGITSTAT_MUTANTS_REACHED": str(record)})
        if status != 0:
            print(output[-4000:], file=sys.stderr)
            sys.exit(f"{source} fails without any mutant")
        print(f"  {source.relative_to(ROOT)}: {seconds[source]:.2f} s", flush=True)
    for source in sorted(seconds, key=seconds.get):
        for number in (folder / (tests.programs[source].name + ".reached")).read_text().split():
            reached[int(number)].append(source)
    return reached, seconds


def judge(mutant, sources, tests, seconds):
    """Runs the tests of one mutant until one of them notices it."""
    environment = {"LOGITSTAT_MUTANT": str(mutant.id)}
    for source in sources:
        status, _, _ = run([str(tests.programs[source]), "--abort-after=1", "--no-breaks=true"],
                           timeout=max(5.0, 10 * seconds[source]), environment=environment)
        if status == DOES_NOT_COMPILE:
            return "not compiled", ""
        if status != 0:
            return "killed", source.relative_to(ROOT / "tests").as_posix() + (" (timeout)" if status is None else "")
    return ("survived" if sources else "not reached"), ""


def judge_constant(options, header, mutant, sources, folder):
    """Compiles a mutant of a constant, test by test until one notices."""
    path = folder / "constant" / "logitstat" / header.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header.with_constant(mutant))
    try:
        tests = Tests(options, sources, folder, folder / "constant", 1)
        for source in sources:
            if tests.build([source]): # no message: a constant that the compiler refuses is no mutant
                return "not compiled", ""
            status, _, _ = run([str(tests.programs[source]), "--abort-after=1", "--no-breaks=true"], timeout=120)
            if status != 0:
                return "killed", source.relative_to(ROOT / "tests").as_posix()
        return "survived", ""
    finally:
        path.unlink()


# ---- the report ------------------------------------------------------------------------------------------------------

COLUMNS = ("killed", "survived", "not reached", "equivalent", "not compiled")


def summary(headers, chosen):
    rows = []
    for header in headers:
        counts = collections.Counter(m.status for m in header.mutants() if m in chosen)
        if counts:
            rows.append((header.name, counts))
    total = sum((counts for _, counts in rows), collections.Counter())
    return [*rows, ("all", total)]


def score(counts):
    judged = counts["killed"] + counts["survived"] + counts["not reached"]
    return counts["killed"] / judged if judged else 1.0


def markdown(rows, survivors):
    text = "| header | " + " | ".join(COLUMNS) + " | score |\n|---|" + "--:|" * (len(COLUMNS) + 1) + "\n"
    for name, counts in rows:
        text += f"| {name} | " + " | ".join(str(counts[c]) for c in COLUMNS) + f" | {100 * score(counts):.1f} % |\n"
    for mutant in survivors:
        text += f"\n{mutant.status}: {mutant}\n"
    return text


def all_names():
    return [p.relative_to(INCLUDE).as_posix() for p in sorted(INCLUDE.glob("stats/*.hpp"))] + ["compare.hpp"]


def self_test():
    """What is wrong with the generator, or with what is said of its mutants; no compiler needed."""
    wrong = []
    sample = Header(HERE / "sample.hpp", HERE)
    found = "".join(f"{mutant}\n" for mutant in sample.mutants())
    wrong += difflib.unified_diff((HERE / "sample.txt").read_text().split("\n"), found.split("\n"),
                                  "sample.txt", "mutants of sample.hpp", lineterm="", n=1)
    keys = set()
    for name in all_names():
        header = Header(INCLUDE / name)
        for number, mutant in enumerate(header.mutants()):
            mutant.id = number + 1
            keys.add(mutant.key)
        if not header.mutants() and "1" in header.text.split("namespace", 1)[1]:
            wrong.append(f"{name} has no mutant")
        if header.with_mutants(set()).count("\n") != header.text.count("\n"):
            wrong.append(f"{name}: mutants move its lines")
        if header.with_mutants(set(range(1, 10_000))) != header.text:
            wrong.append(f"{name}: without mutants it is another text")
    wrong += [f"equivalent.txt explains what is no mutant any more: {header}: {line}"
              for header, line in explained(HERE / "equivalent.txt") if (header, line) not in keys]
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", action="append", metavar="HEADER",
                        help="of include/logitstat, as stats/sweep.hpp; may be repeated (default: all of stats/, compare.hpp)")
    parser.add_argument("--tests", action="append", metavar="GLOB",
                        help="test files (default: tests/stats/test_*.cpp and tests/properties/test_*.cpp)")
    parser.add_argument("--per-file", type=int, metavar="N", help="at most N mutants of each header, drawn (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of that draw (default: 1)")
    parser.add_argument("--constants", action="store_true", help="also compile the mutants of constexpr variables")
    parser.add_argument("--again", type=pathlib.Path, metavar="JSON",
                        help="what a run before wrote: only what survived then, and is not explained, is run")
    parser.add_argument("--list", action="store_true", help="only print the mutants")
    parser.add_argument("--self-test", action="store_true", help="only test the generator and equivalent.txt")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="at a time (default: processors)")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"), help="may have a launcher, as 'ccache g++'")
    parser.add_argument("--flags", default="-O1 -D_GLIBCXX_ASSERTIONS", help="of the compiler (default: %(default)s)")
    parser.add_argument("--eigen", default="/usr/include/eigen3", help="include folder (default: %(default)s)")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutation", help="of what is built")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every mutant and what became of it")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the summary")
    options = parser.parse_args()
    if options.self_test:
        wrong = self_test()
        print("\n".join(wrong) or f"the generator of mutants works on sample.hpp and {len(all_names())} headers")
        return 1 if wrong else 0
    options.tests = options.tests or ["tests/stats/test_*.cpp", "tests/properties/test_*.cpp"]
    names = options.file or all_names()
    headers = []
    for name in names:
        if not (INCLUDE / name).exists():
            sys.exit(f"there is no include/logitstat/{name}")
        headers.append(Header(INCLUDE / name))

    draw = random.Random(options.seed)
    chosen = set()
    for header in headers:
        all_of_it = [m for m in header.mutants() if not m.constant or options.constants]
        if options.per_file is not None and len(all_of_it) > options.per_file:
            all_of_it = draw.sample(all_of_it, options.per_file)
        chosen |= set(all_of_it)
    if options.list:
        for header in headers:
            for mutant in header.mutants():
                if mutant in chosen:
                    print(mutant)
        print(f"{len(chosen)} mutants")
        return 0

    before = {}
    if options.again:
        for known in json.loads(options.again.read_text()):
            before.setdefault((known["header"], known["before"], known["after"]), known)

    began = time.monotonic()
    options.folder.mkdir(parents=True, exist_ok=True)
    sources = test_sources(options)
    tests = build_mutants(options, headers, sources, options.folder)
    print(f"built after {time.monotonic() - began:.0f} s; the tests without a mutant:", flush=True)
    reached, seconds = baseline(tests, options.folder)
    reasons = explained(HERE / "equivalent.txt")

    todo = []
    for mutant in [m for header in headers for m in header.mutants() if m in chosen and m.status is None]:
        known = before.get((mutant.header, mutant.before, mutant.after), {})
        if known.get("status") in ("killed", "not compiled"):
            mutant.status, mutant.by = known["status"], known["by"]
        elif known and mutant.key in reasons:
            mutant.status = "survived"
        else:
            todo.append(mutant)
    done = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for mutant, (status, by) in zip(todo, pool.map(lambda m: judge(m, reached[m.id], tests, seconds), todo)):
            mutant.status, mutant.by = status, by
            done[status] += 1
            if status in ("survived", "not reached") and mutant.key not in reasons:
                print(f"{status}: {mutant}", flush=True)
            if sum(done.values()) % 50 == 0:
                print(f"{sum(done.values())} / {len(todo)} mutants, {dict(done)}, {time.monotonic() - began:.0f} s", flush=True)
    if options.constants:
        for header in headers:
            near = sorted({s for m in header.mutants() for s in reached[m.id]}, key=seconds.get)
            for mutant in header.mutants():
                if mutant in chosen and mutant.constant:
                    mutant.status, mutant.by = judge_constant(options, header, mutant, near or sources, options.folder)
                    if mutant.status == "survived" and mutant.key not in reasons:
                        print(f"{mutant.status}: {mutant}", flush=True)
    stale = set(reasons)
    for mutant in chosen:
        if mutant.key in reasons:
            if mutant.status in ("survived", "not reached"):
                mutant.status = "equivalent"
                stale.discard(mutant.key)
            elif mutant.status == "not compiled":
                stale.discard(mutant.key)
    rows = summary(headers, chosen)
    survivors = [m for header in headers for m in header.mutants() if m in chosen and m.status in ("survived", "not reached")]
    print("\n" + markdown(rows, survivors))
    if options.per_file is None and not options.file:
        for header, line in sorted(stale):
            print(f"equivalent.txt explains what did not survive: {header}: {line}")
    print(f"{len(chosen)} mutants in {time.monotonic() - began:.0f} s, score {100 * score(rows[-1][1]):.1f} %")
    if options.markdown:
        options.markdown.write_text(markdown(rows, survivors))
    if options.json:
        options.json.write_text(json.dumps([{"header": m.header, "line": m.line, "what": m.what, "before": m.before,
                                             "after": m.after, "status": m.status, "by": m.by}
                                            for header in headers for m in header.mutants() if m in chosen], indent=1))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
