"""Runs Kafka's console tools, many commands in one process of Java."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.kafka.jars import CACHE
from tools.setup.java import java_home
from tools.setup.javac import compile_java
from tools.setup.maven import fetch_each
from tools.setup.once import locked
from tools.storm.java import RELEASE, resolve_tools

__all__ = ["Printed", "check_same_facts", "facts_of", "run_commands"]

#: The jar with ConfigCommand, which the jars of the tools lack, and what it needs.
_LIBRARIES: Final = (
    f"org.apache.kafka:kafka_2.13:{RELEASE}",
    "org.scala-lang:scala-library:2.13.18",
    "com.typesafe.scala-logging:scala-logging_2.13:3.9.6",
)
_SOURCE: Final = Path(__file__).parent / "console" / "ConsoleRunner.java"
_TIMEOUT_S: Final = 300


class Printed(NamedTuple):
    """The exit code of a command, and its output and error output."""

    code: int
    output: str
    errors: str


def run_commands(commands: Iterable[Sequence[str]]) -> list[Printed]:
    """Returns what each command printed; a command is a main class with its arguments.

    Raises MavenError, JavaNotFoundError or CompilerError.
    """
    cache = CACHE.parent / "console-tools"
    tools, home = f"{resolve_tools()}/*", java_home()
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]
    classes = cache / f"classes-{digest}"
    with locked(cache / "lock"):
        jars = fetch_each(cache, _LIBRARIES, otherwise="leave Java out")
        if not classes.is_dir():
            compile_java(home, [_SOURCE], classes, libraries=tools, cache=cache)
    done = subprocess.run(
        [
            str(home / "bin" / "java"),
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
            *("-cp", os.pathsep.join([str(classes), tools, *map(str, jars)]), "ConsoleRunner"),
        ],
        input="".join("\t".join(words) + "\n" for words in commands),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = (line.split("\t") for line in done.stdout.splitlines())
    printed = [
        Printed(int(code), *(base64.b64decode(text).decode() for text in texts))
        for code, *texts in rows
    ]
    missing = [each.errors for each in printed if "NoClassDefFoundError" in each.errors]
    assert not missing, f"a jar is missing: {missing[0]}"
    return printed


#: Text that differs between two runs or two brokers without a difference in facts, and its
#: replacement.
_VARIABLE: Final = (
    (re.compile(r'/[^ "]*/nodes/[0-9a-f]+/data|/kproto/logs'), "DIRECTORY"),
    (re.compile(r"\b[A-Za-z0-9_-]{22}\b"), "ID"),
    (re.compile(r"127\.0\.0\.1[: ]\d+"), "ADDRESS"),
    (re.compile(r"\b1\d{12}\b"), "TIME"),
    (re.compile(r'"size":\d+'), "SIZE"),
    (re.compile(r"(Epoch|HighWatermark|LeaderEpoch):\s*\d+"), "NUMBER"),
    # The nodes of tests set this config.
    (re.compile(r",? ?STATIC_BROKER_CONFIG:\S+=\S+?(?=[,}])|,?retention\.ms=-1\b"), ""),
)
_EXCEPTION: Final = re.compile(r"[a-z.]+\.([A-Z]\w+(?:Exception|Error))\b")
_NUMBER_OF_RUN: Final = re.compile(r"\d+\.\d+ MB/sec")


def facts_of(printed: Printed) -> tuple[int, list[str]]:
    """Returns the exit code and the facts of a command.

    The facts of a command that failed are the names of the exceptions; the words of error messages
    differ. The facts of other commands are the sorted words of the lines, in any order.
    """
    failed = printed.code != 0 or "Error" in printed.output
    if failed:
        names = _EXCEPTION.findall(printed.output + printed.errors)
        return printed.code, sorted(set(names))
    text = printed.output
    for pattern, replacement in _VARIABLE:
        text = pattern.sub(replacement, text)
    return printed.code, sorted(
        " ".join(sorted(re.split(r"[\s,;]+", line.strip())))
        for line in text.splitlines()
        if line.strip() and not _NUMBER_OF_RUN.search(line)
    )


def check_same_facts(
    commands: Sequence[str],
    ours: Sequence[Printed],
    theirs: Sequence[Printed],
    differences: Collection[str],
) -> None:
    """Asserts that the facts of all commands are the same, except for those of `differences`."""
    differing = {
        command: (facts_of(here), facts_of(there))
        for command, here, there in zip(commands, ours, theirs, strict=True)
        if facts_of(here) != facts_of(there)
    }
    assert differing.keys() == set(differences), "\n".join(
        f"{command}: ours {here}, theirs {there}"
        for command, (here, there) in differing.items()
        if command not in differences
    )
