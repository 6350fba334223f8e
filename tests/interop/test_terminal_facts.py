"""Tests that `kproto` prints the facts that Kafka's scripts print, of the same real broker."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kproto.cli.admin.feature_levels import METADATA_VERSIONS, level_of, levels_of_release
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.cli_runs import Run, runner
from tools.kafka import KafkaNode
from tools.setup.javac import CompilerError
from tools.setup.maven import MavenError

from .console_commands import FILES, words_of
from .console_tools import run_commands
from .terminal_facts import COMPARISONS, Comparison

pytestmark = [pytest.mark.peers, pytest.mark.kafka, pytest.mark.slow, pytest.mark.exhaustive]

VERSION = "4.4.0"

#: The releases that the newest script on Maven Central knows, by their first metadata.version.
KNOWN_TO_SCRIPT = METADATA_VERSIONS[6 : METADATA_VERSIONS.index("4.3-IV0") + 1]


def test_scripts_and_kproto_print_the_same_facts(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    try:
        with KafkaNode(VERSION) as kafka:
            kproto = runner(kafka.bootstrap, capsysbinary, tmp_path)
            _prepare(kproto, tmp_path)
            scripts = run_commands(
                words_of(each.script, kafka.bootstrap, str(tmp_path)) for each in COMPARISONS
            )
            capsysbinary.readouterr()
            ours = [_rows(kproto, each, tmp_path) for each in COMPARISONS]
    except (*CANNOT_START, MavenError, CompilerError) as error:
        not_available("Kafka's console tools", error)
    differing = {}
    for each, printed, rows in zip(COMPARISONS, scripts, ours, strict=True):
        theirs = sorted(each.facts_of_text(printed.output))
        if theirs != sorted(each.facts_of_rows(rows)) or printed.code:
            differing[each.script] = (printed, theirs, sorted(each.facts_of_rows(rows)))
    assert not differing, "\n".join(f"{script}: {its}" for script, its in differing.items())


def _prepare(kproto: Run, folder: Path) -> None:
    """Makes what the commands describe."""
    create = ["topics", "create", "t", "--partitions", "2", "-c", "retention.ms=9000000"]
    records = b"1\n2\n3\n"
    for words, lines in (
        (create, None),
        (["produce", "t", "-p", "0", "--transactional-id", "tx"], records),
        (["produce", "t", "-p", "1"], records),
        (["consume", "t", "-g", "g", "--from-beginning", "-n", "4"], None),
        (["configs", "set", "client-metrics/m", "interval.ms=700", "metrics=a.,b."], None),
        (["quotas", "set", "--user", "u", "consumer_byte_rate=5000"], None),
        (["cluster", "plan", "t", "--brokers", "1", "--file", str(folder / "plan.json")], None),
    ):
        done = kproto(*words) if lines is None else kproto(*words, stdin=lines)
        assert done.code == 0, done


def _rows(kproto: Run, each: Comparison, folder: Path) -> list[dict[str, object]]:
    done = kproto(*each.ours.format(f=folder).split(), "--json")
    assert done.code == 0, done
    return [json.loads(line) for line in done.lines()]


def test_levels_of_releases_are_those_of_the_script() -> None:
    commands = [
        words_of(f"features version-mapping --release-version {each}", "localhost:1", "")
        for each in KNOWN_TO_SCRIPT
    ]
    try:
        printed = run_commands(commands)
    except (*CANNOT_START, MavenError, CompilerError) as error:
        not_available("Kafka's console tools", error)
    for release, each in zip(KNOWN_TO_SCRIPT, printed, strict=True):
        found = dict(re.findall(r"^(\S+)=(\d+)", each.output, re.MULTILINE))
        assert {name: int(level) for name, level in found.items()} == levels_of_release(release)
        assert f"({release})" in each.output
        assert level_of("metadata.version", release) == int(found["metadata.version"])
