"""Compares `kproto produce` and `kproto consume` with kcat: `python -m tools.bench.terminal`.

    python -m tools.bench.terminal [--lines 1000000] [--turns 3]

Uses one real broker, and a file of lines of 90 bytes that have a key before a tab. Each measurement
is a process of its own, start-up included. Every second turn runs the commands in reverse order.
The table has the medians of the turns: lines per second, µs of CPU time a line, and the largest
resident memory in MiB. Before the table, each command's output is compared with the file.

kcat must be on PATH.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tools.bench.clients.topics import make_topic
from tools.kafka import KafkaNode

__all__ = ["main"]

BROKER: Final = "4.4.0"

#: The maximum share of kcat's time and memory: at least half of its rate, at most twice its memory.
LEAST_RATE: Final = 0.5
MOST_MEMORY: Final = 2.0

KPROTO: Final = (sys.executable, "-m", "kproto")

#: Runs a command, and prints its exit code and what it took as the last line of stderr. A process
#: inherits the peak memory of the process that starts it: this one is small.
MEASURER: Final = """
import os, sys, time
began = time.perf_counter()
child = os.fork()
if not child:
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
seconds = time.perf_counter() - began
cpu_s = usage.ru_utime + usage.ru_stime
print(os.waitstatus_to_exitcode(status), seconds, cpu_s, usage.ru_maxrss / 1024, file=sys.stderr)
"""


class Work(NamedTuple):
    """A row of the table: the options of each command, without the topic and the broker.

    The limits apply to plain lines (`is_plain`).
    """

    name: str
    kproto: tuple[str, ...]
    kcat: tuple[str, ...]
    produces: bool = False
    is_plain: bool = False


WORKS: Final = (
    Work("produce lines", (), (), produces=True, is_plain=True),
    Work("produce lines with keys", ("-K", r"\t"), ("-K", r"\t"), produces=True),
    Work("produce lines, zstd", ("-z", "zstd"), ("-z", "zstd"), produces=True),
    Work("consume values", (), (), is_plain=True),
    Work("consume with -f", ("-f", r"%p %o %k %s\n"), ("-f", r"%p %o %k %s\n")),
    Work("consume as JSON", ("--json",), ("-J",)),
)


class Spent(NamedTuple):
    """The seconds, the CPU seconds and the largest resident memory in MiB of a process."""

    seconds: float
    cpu_s: float
    memory_mib: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 if plain lines miss a limit, or an output differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.terminal", description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args(arguments)
    if shutil.which("kcat") is None:
        print("kcat is not on PATH; install it (Debian: the package kcat)", file=sys.stderr)
        return 1
    with TemporaryDirectory() as folder, KafkaNode(BROKER) as node:
        lines = Path(folder, "lines")
        _write_lines(lines, options.lines)
        bench = _Bench(node.bootstrap, lines, Path(folder, "printed"))
        if not bench.same_output():
            return 1
        spent: dict[tuple[str, str], list[Spent]] = defaultdict(list)
        for turn in range(options.turns):
            pairs = [(work, tool) for work in WORKS for tool in ("kproto", "kcat")]
            for work, tool in pairs if turn % 2 == 0 else reversed(pairs):
                spent[work.name, tool].append(bench.measure(work, tool))
                print(f"\rturn {turn + 1}: {tool}, {work.name}\033[K", end="", file=sys.stderr)
        print("\r\033[K", end="", file=sys.stderr)
    return _print_table(spent, options.lines)


def _write_lines(path: Path, count: int) -> None:
    with path.open("wb") as file:
        for number in range(count):
            file.write(b"key-%06d\t" % (number % 10_000) + b"%078d\n" % number)


class _Bench:
    def __init__(self, bootstrap: str, lines: Path, printed: Path) -> None:
        self._bootstrap = bootstrap
        self._lines = lines
        self._printed = printed
        self._topics = 0

    def same_output(self) -> bool:
        """Writes the topic that the commands read; tells whether both print the lines again."""
        for topic, work in (("filled", WORKS[0]), ("keyed", WORKS[1])):
            asyncio.run(make_topic(self._bootstrap, topic, 1))
            self._run(self._command(work, "kproto", topic), self._printed)
        for tool in ("kproto", "kcat"):
            self._run(self._command(WORKS[3], tool, "filled"), self._printed)
            if self._printed.read_bytes() != self._lines.read_bytes():
                print(f"{tool} does not print the lines that were written", file=sys.stderr)
                return False
        return True

    def measure(self, work: Work, tool: str) -> Spent:
        if not work.produces:
            return self._run(self._command(work, tool, "keyed"), self._printed)
        self._topics += 1
        topic = f"written-{self._topics}"
        asyncio.run(make_topic(self._bootstrap, topic, 1))
        return self._run(self._command(work, tool, topic), self._printed)

    def _command(self, work: Work, tool: str, topic: str) -> tuple[str, ...]:
        if tool == "kcat":
            where = ("kcat", "-b", self._bootstrap, "-t", topic, "-q")
            if work.produces:
                return (*where, "-P", *work.kcat, "-l", str(self._lines))
            return (*where, "-C", "-o", "beginning", "-e", *work.kcat)
        verb = "produce" if work.produces else "consume"
        what = ("--file", str(self._lines)) if work.produces else ("--from-beginning", "-e")
        return (*KPROTO, verb, topic, "-q", "-b", self._bootstrap, *what, *work.kproto)

    @staticmethod
    def _run(command: Sequence[str], printed: Path) -> Spent:
        """Runs the command; raises `CalledProcessError` if its exit code is not 0."""
        measuring = [sys.executable, "-I", "-S", "-c", MEASURER, *command]
        with printed.open("wb") as output:
            run = subprocess.run(measuring, stdout=output, stderr=subprocess.PIPE, check=True)
        *said, figures = run.stderr.decode().splitlines()
        for line in said:
            print(line, file=sys.stderr)
        code, *spent = map(float, figures.split())
        if code:
            raise subprocess.CalledProcessError(int(code), command)
        return Spent(*spent)


def _print_table(spent: dict[tuple[str, str], list[Spent]], lines: int) -> int:
    missed = []
    print("| 1,000 lines/s (CPU µs a line; MiB) | kproto | kcat | rate | CPU | memory |")
    print("|---|---|---|---|---|---|")
    for work in WORKS:
        ours, theirs = spent[work.name, "kproto"], spent[work.name, "kcat"]
        pairs = list(zip(ours, theirs, strict=True))
        rate = statistics.median(b.seconds / a.seconds for a, b in pairs)
        cpu = statistics.median(a.cpu_s / b.cpu_s for a, b in pairs)
        memory = statistics.median(a.memory_mib / b.memory_mib for a, b in pairs)
        cells = [_cell(each, lines) for each in (ours, theirs)]
        print(f"| {work.name} | {' | '.join(cells)} | {rate:.2f} | {cpu:.2f} | {memory:.2f} |")
        if work.is_plain and (rate < LEAST_RATE or memory > MOST_MEMORY):
            missed.append(work.name)
    if missed:
        print(f"these rows miss their limit: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


def _cell(turns: Sequence[Spent], lines: int) -> str:
    seconds, cpu_s, memory = (statistics.median(column) for column in zip(*turns, strict=True))
    return f"{lines / seconds / 1000:,.0f} ({cpu_s / lines * 1e6:.2f}; {memory:.0f})"


if __name__ == "__main__":
    sys.exit(main())
