"""Tests `kproto tail`, and the scripts of `kproto completion`."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from kproto.cli.run_completion import completions, script
from kproto.cli.tail_lines import tail_line
from kproto.cli.whole_parser import COMMANDS, whole_parser
from kproto.records.record import Record
from tests.support.cli_runs import Run


def test_line_has_columns_and_escapes() -> None:
    line = tail_line(["orders", "a"], width=None, colored=False)
    record = Record(7, -1, b"k\n", b"\xff\x00", topic="a", partition=2)
    assert line(record).decode().split() == ["a", "2", "7", "-", "k\\n", "\\xff\\x00"]
    assert line(record).startswith(b"a       2      7  ")
    assert b"-  v" in line(Record(0, -1, None, b"v", topic="a", partition=0))


def test_long_line_is_cut_and_colored_on_a_terminal() -> None:
    line = tail_line(["a", "b"], width=50, colored=True)
    printed = line(Record(0, 5, b"key", b"v" * 100, topic="b", partition=0)).decode()
    assert printed.startswith("\x1b[33mb")
    plain = printed.replace("\x1b[33m", "").replace("\x1b[0m", "").rstrip("\n")
    assert (len(plain), plain[-1]) == (50, "…")


def test_last_records_of_topics_are_printed(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-p", "1", "-K", ":", stdin=b"".join(b"k:%d\n" % n for n in range(20)))
    found = kproto("tail", topic, "--until-end").lines()
    assert [line.split()[-1] for line in found] == [str(number) for number in range(10, 20)]
    found = kproto("tail", topic, "--from-beginning", "--until-end", "--grep", "^1").lines()
    assert len(found) == 11


def test_each_command_and_verb_has_completions() -> None:
    found = completions(whole_parser())
    assert set(COMMANDS) <= set(found[()])
    assert {"create", "delete-records"} <= set(found["topics",])
    assert "--partitions" in found["topics", "create"]
    assert "--bootstrap" in found["produce",]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["kproto", "top"], {"topics"}),
        (["kproto", "topics", "del"], {"delete", "delete-records"}),
        (["kproto", "topics", "create", "--part"], {"--partitions"}),
        (["kproto", "topics", "create", "a", "--part"], {"--partitions"}),
        (["kproto", "consume", "--from"], {"--from", "--from-beginning"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bash_completes(words: list[str], wanted: set[str]) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        script("bash", completions(whole_parser()))
        + f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _kproto\n"
        + 'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == wanted


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts(kproto: Run, shell: str) -> None:
    text = script(shell, completions(whole_parser()))
    assert "topics" in text
    assert text.startswith({"zsh": "autoload", "fish": "complete -c kproto"}[shell])
