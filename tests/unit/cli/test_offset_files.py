"""Tests the files of `kproto groups reset --from-file`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kproto.cli.admin.offset_files import offsets_of_file
from kproto.cli.command_error import CommandError
from tests.support.admin_commands import rows_of
from tests.support.cli_runs import Run


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a,0,5\na,1,6", {("a", 0): 5, ("a", 1): 6}),
        ("g,a,0,5\nother,a,0,9", {("a", 0): 5}),
        ("group,topic,partition,committed\ng,a,0,5\ng,a,1,", {("a", 0): 5}),
        ("topic,partition,offset\n\na,0,5", {("a", 0): 5}),
        ("topic,partition,committed,new,log_end\na,0,5,3,9\na,1,,4,9", {("a", 0): 3, ("a", 1): 4}),
        ("topic,partition,start_offset,new,log_end\na,0,5,3,9", {("a", 0): 3}),
        ('{"topic":"a","partition":0,"committed":5,"new":3,"log_end":9}', {("a", 0): 3}),
        (
            (
                '{"group":"g","topic":"a","partition":1,"committed":null,"lag":null}\n'
                '{"group":"g","topic":"a","partition":0,"committed":5,"lag":3}'
            ),
            {("a", 0): 5},
        ),
        ("group,topic,partition,committed,start_offset\ns,a,0,,7\ng,a,0,5,", {("a", 0): 5}),
    ],
)
def test_offsets_of_a_file_are_read(text: str, found: dict[tuple[str, int], int]) -> None:
    assert offsets_of_file(text.splitlines(), "g").offsets == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no offsets"),
        ("a,0", "not topic,partition,offset"),
        ("a,b,c", "not topic,partition,offset"),
        ("a,0,x", "not topic,partition,offset"),
        ("a,0,-1", "not topic,partition,offset"),
        ("a,1,", "not topic,partition,offset"),
        ("topic,partition,offset", "has no offsets"),
        ("topic,partition,offset\na,0,5,junk", "not of the columns topic,partition,offset"),
        ("topic,partition,ofset\na,0,5", "unknown column 'ofset'"),
        ("topic,partition\na,0", "not topic,partition,offset"),
        ("a,0,5\na,1,6\na,0,7", "lines 1 and 3 of the file are both for a:0"),
        ("group,topic,partition,committed\nh,a,0,5", "no row of the group g, only rows of h"),
        ('{"topic":"a","partition":0,"new":1}\n[', "line 2 of the file is no JSON"),
        ('{"topic":"a","partition":0,"nev":1}', "unknown column 'nev'"),
    ],
)
def test_other_files_are_refused(text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        offsets_of_file(text.splitlines(), "g")


def test_rows_that_are_not_applied_are_named() -> None:
    text = "group,topic,partition,committed\ng,a,0,5\ng,a,1,\nh,a,0,6\ni,a,0,7"
    assert offsets_of_file(text.splitlines(), "g").notes == [
        "2 rows of h, i were not applied",
        "1 row without an offset was not applied: a:1",
    ]


@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_plan_of_a_reset_is_committed_as_planned(
    kproto: Run, topic: str, tmp_path: Path, form: str
) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"1\n2\n3\n4\n")
    kproto("produce", topic, "-p", "1", stdin=b"1\n2\n3\n4\n")
    reset = ["groups", "reset", f"{topic}-plan"]
    assert kproto(*reset, "--topic", f"{topic}:1", "--to-latest", "--yes").code == 0
    tps = ["--topic", f"{topic}:0", "--topic", f"{topic}:1"]
    plan = kproto(*reset, *tps, "--to-offset", "3", "--dry-run", form)
    (tmp_path / "plan").write_bytes(plan.out)
    found = kproto(*reset, "--from-file", str(tmp_path / "plan"), "--yes")
    assert (found.code, found.err) == (0, [])
    lags = rows_of(kproto, "groups", "lag", f"{topic}-plan")
    assert [(row["partition"], row["committed"]) for row in lags] == [(0, 3), (1, 3)]


def test_offsets_of_other_groups_are_not_applied(kproto: Run, topic: str, tmp_path: Path) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"1\n2\n3\n4\n")
    for name, offset in (("one", "1"), ("two", "2")):
        words = ["--topic", f"{topic}:0", "--to-offset", offset, "--yes"]
        assert kproto("groups", "reset", f"{topic}-{name}", *words).code == 0
    path = tmp_path / "all.csv"
    path.write_bytes(kproto("groups", "lag", f"{topic}-*", "--csv").out)
    found = kproto("groups", "reset", "a,b", "--from-file", str(path), "--dry-run")
    assert (found.code, found.out) == (1, b"")
    assert "no row of the group a,b" in found.err[0]
    found = kproto(
        "groups", "reset", f"{topic}-one", "--from-file", str(path), "--dry-run", "--json"
    )
    assert [json.loads(line)["new"] for line in found.lines()] == [1]
    assert found.err == [f"kproto: 1 row of {topic}-two was not applied"]


def test_reset_to_the_committed_offsets_makes_a_plan(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"1\n2")
    kproto("produce", topic, "-p", "1", stdin=b"1\n2")
    reset = ["groups", "reset", f"{topic}-current"]
    assert kproto(*reset, "--topic", f"{topic}:0", "--to-offset", "1", "--yes").code == 0
    rows = rows_of(kproto, *reset, "--topic", topic, "--to-current", "--dry-run")
    assert [(row["committed"], row["new"]) for row in rows] == [(1, 1), (None, 2), (None, 0)]


def test_offset_outside_the_log_is_told(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"1\n2")
    reset = ["groups", "reset", f"{topic}-out", "--topic", f"{topic}:0", "--dry-run"]
    found = kproto(*reset, "--to-offset", "9")
    said = f"kproto: {topic}:0: offset 9 is beyond the log end 2, which is the new offset"
    assert found.err == [said]
    assert kproto(*reset, "--to-offset=-1").code == 2


def test_group_id_with_another_line_separator_is_found(
    kproto: Run, topic: str, tmp_path: Path
) -> None:
    group = f"a\u2028b-{topic}"
    for text in ("a", "b"):
        kproto("produce", topic, "-p", "0", stdin=text.encode())
    plan = ["groups", "reset", group, "--topic", f"{topic}:0"]
    assert kproto(*plan, "--to-offset", "1", "--yes").code == 0
    lag = kproto("groups", "lag", group, "--csv")
    path = tmp_path / "offsets.csv"
    path.write_bytes(lag.out)
    (row,) = rows_of(kproto, "groups", "reset", group, "--from-file", str(path), "--dry-run")
    assert row["new"] == 1
