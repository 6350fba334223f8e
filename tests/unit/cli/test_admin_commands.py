"""Runs the tests of the commands for administrators on an embedded broker."""

from __future__ import annotations

import pytest

from kproto.cli.admin.group_resets import Bounds, moved_notes, reset_rows, shifted
from kproto.cli.admin.verbs import verb_first
from kproto.cli.command_error import CommandError
from tests.support.admin_commands import *  # noqa: F403
from tests.support.cli_runs import Run

VERBS = ["list", "create"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], ["list"]),
        (["--internal"], ["list", "--internal"]),
        (["create", "a"], ["create", "a"]),
        (["-b", "h:1", "create", "a"], ["create", "-b", "h:1", "a"]),
        (
            ["--bootstrap=h:1", "--json", "create", "a"],
            ["create", "--bootstrap=h:1", "--json", "a"],
        ),
        (["-b", "create"], ["list", "-b", "create"]),
        (["creat"], ["creat"]),
        (["--help"], ["--help"]),
        (["--version"], ["--version"]),
    ],
    ids=" ".join,
)
def test_verb_is_found(words: list[str], found: list[str]) -> None:
    assert verb_first(words, VERBS) == found


def test_reset_stays_inside_the_log() -> None:
    bounds = {("t", 0): Bounds(5, 2, 9), ("t", 1): Bounds(None, 0, 0)}
    rows = reset_rows(bounds, {("t", 0): 0, ("t", 1): -1})
    assert [(row.committed, row.new) for row in rows] == [(5, 2), (None, 0)]
    assert moved_notes(bounds, {("t", 0): 2, ("t", 1): -1}) == [
        "t:1: offset -1 is before the log start 0, which is the new offset"
    ]
    with pytest.raises(CommandError, match="none for t:1"):
        shifted(bounds, 1)
    assert shifted({("t", 0): Bounds(5, 2, 9)}, -9) == {("t", 0): -4}


@pytest.mark.parametrize(("by", "words"), [("-9", "before the log start 0"), ("9", "log end 0")])
def test_shift_outside_the_log_is_noted(kproto: Run, topic: str, by: str, words: str) -> None:
    group = f"{topic}-group{by}"
    reset = ["groups", "reset", group, "--topic", f"{topic}:0"]
    assert kproto(*reset, "--to-earliest", "--yes").code == 0
    found = kproto(*reset, "--shift", by, "--dry-run")
    assert (found.code, len(found.err)) == (0, 1)
    assert words in found.err[0]


def test_fencing_creates_no_transactional_id_without_a_word(kproto: Run) -> None:
    refused = kproto("transactions", "fence", "a-typo", "--yes")
    assert refused.code == 1
    assert "no coordinator knows 1 transactional id (a-typo)" in refused.err[0]
    assert "a-typo" not in kproto("transactions").out.decode()
    assert kproto("transactions", "fence", "a-typo", "--create", "--yes").code == 0
    assert "a-typo" in kproto("transactions").out.decode()
    assert kproto("transactions", "fence", "a-typo", "--yes").code == 0


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["configs", "list", "orders"], 2, "is no TYPE/NAME"),
        (["configs", "set", "topic/a", "retention.ms"], 2, "is no NAME=VALUE"),
        (["configs", "unset", "topic/a", "a=1"], 2, "is no NAME"),
        (["topics", "describe", "missing"], 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (["topics", "offsets", "missing"], 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (["cluster", "reassign", "a:0"], 2, "either --replicas ID,ID or --cancel"),
        (["cluster", "reassign", "a:0", "--plan", "f"], 2, "--plan FILE names the partitions"),
        (["cluster", "reassign", "--plan", "missing.json"], 1, "missing.json cannot be read"),
        (["cluster", "reassign", "a:0", "--cancel", "--wait"], 2, "--wait needs --plan FILE"),
        (["cluster", "reassign", "--plan", "f", "--cancel", "--wait"], 2, "not for --cancel"),
        (["cluster", "reassign", "--plan", "f", "--keep-throttle"], 2, "is for --cancel"),
        (["cluster", "reassignments", "--remove-throttle"], 2, "needs --plan FILE"),
        (["cluster", "upgrade-features"], 2, "FEATURE=LEVEL"),
        (["cluster", "upgrade-features", "group.version"], 2, "is no FEATURE=LEVEL"),
        (["cluster", "upgrade-features", "nope=1", "-y"], 1, "no feature was changed: INVALID_UPD"),
        (
            ["cluster", "upgrade-features", "--release-version", "4.1", "--dry-run"],
            1,
            "downgrade-features lowers it",
        ),
        (["cluster", "unregister", "1", "--yes"], 1, "stop it first"),
        (["groups", "reset", "unknown", "--to-latest"], 1, "has no committed offsets"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_error_is_one_line(kproto: Run, command: list[str], code: int, words: str) -> None:
    found = kproto(*command)
    assert (found.code, found.out, len(found.err)) == (code, b"", 1)
    assert words in found.err[0]


def test_unknown_verb_names_the_known_ones(
    kproto: Run, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(SystemExit) as caught:
        kproto("topics", "creat", "a")
    assert caught.value.code == 2
    assert b"delete-records" in capsysbinary.readouterr().err
