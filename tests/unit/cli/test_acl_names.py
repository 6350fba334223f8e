"""Tests the names of ACLs, which `kproto acls` prints and takes in one notation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kproto.broker import BrokerSettings
from kproto.cli.acl_names import acl_name_of, acl_name_text
from tests.support.admin_commands import rows_of
from tests.support.cli_runs import Run, runner
from tests.support.embedded import threaded_broker

NAMES = ["a", "*", "a*", "a\\", "a\\*", "a\\\\*", "**", "\\"]


@pytest.fixture
def with_acls(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> Iterator[Run]:
    """Returns the function that runs a command on a broker with ACLs."""
    with threaded_broker(
        BrokerSettings(authorizer=True, super_users=("User:ANONYMOUS",))
    ) as broker:
        yield runner(broker.bootstrap, capsysbinary, tmp_path)


def test_names_and_prefixes_come_back() -> None:
    texts = []
    for name in NAMES:
        for is_prefix in (False, True):
            text = acl_name_text(name, is_prefix=is_prefix)
            assert acl_name_of(text) == (name, is_prefix), text
            texts.append(text)
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("orders", ("orders", False)),
        ("orders-*", ("orders-", True)),
        ("*", ("*", False)),
        (r"orders-\*", ("orders-*", False)),
    ],
)
def test_notation_is_read(text: str, found: tuple[str, bool]) -> None:
    assert acl_name_of(text) == found


def test_printed_names_select_one_acl(with_acls: Run) -> None:
    names = ["pay-", "pay-*", r"pay-\*", "*"]
    assert with_acls("acls", "add", "allow", "User:a", "read", "topic", *names).code == 0
    rows = rows_of(with_acls, "acls", "list")
    found = {(row["name"], row["pattern"]) for row in rows}
    patterns = ["literal", "prefixed", "literal", "literal"]
    assert found == set(zip(names, patterns, strict=True))
    for name in names:
        (row,) = rows_of(with_acls, "acls", "list", "--name", name)
        assert row["name"] == name
        (removed,) = rows_of(with_acls, "acls", "remove", "--name", name, "--yes")
        assert removed == row
    assert rows_of(with_acls, "acls", "list") == []


def test_acls_are_filtered_by_host_and_permission(with_acls: Run) -> None:
    add = ["acls", "add", "allow", "User:a", "read", "topic", "t"]
    with_acls(*add, "--host", "10.0.0.1")
    with_acls("acls", "add", "deny", "User:a", "read", "topic", "t")
    (row,) = rows_of(with_acls, "acls", "list", "--host", "10.0.0.1")
    assert (row["host"], row["permission"]) == ("10.0.0.1", "allow")
    (row,) = rows_of(with_acls, "acls", "list", "--permission", "deny")
    assert (row["host"], row["permission"]) == ("*", "deny")


def test_acls_that_were_added_are_printed_before_an_error(with_acls: Run) -> None:
    words = ["acls", "add", "allow", "User:a", "read", "topic", "t", "", "--json"]
    found = with_acls(*words)
    assert (found.code, [json.loads(line)["name"] for line in found.lines()]) == (1, ["t"])
    with_acls("acls", "remove", "--name", "t", "--yes")
