"""What a release takes, by its name."""

from __future__ import annotations

import pytest

from kproto.client import ClientSettings
from kproto.client.release import (
    common_ranges,
    magic_of,
    message_magic,
    release_called,
    release_ranges,
    says_versions,
)
from kproto.protocol.negotiation import ApiRange
from kproto.wire.errors import ConfigurationError


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("0.8.2", "0.8.2.2"),
        ("0.9", "0.9.0.1"),
        ("0.10.0", "0.10.0.1"),
        ("0.10", "0.10.2.2"),
        ("1", "1.1.1"),
        ("2.8", "2.8.2"),
        ("3.9.2", "3.9.2"),
        ("4.4", "4.4.0"),
    ],
)
def test_the_newest_of_that_name(name: str, release: str) -> None:
    assert release_called(name) == release


@pytest.mark.parametrize("name", ["", "0.7", "0.9.", "5", "0.99", "latest", "3.9.2.0"])
def test_what_is_no_release_is_refused_at_once(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is no release of Kafka"):
        ClientSettings(broker_version=name)


def test_a_number_is_no_release() -> None:
    with pytest.raises(ConfigurationError, match="must be a str"):
        ClientSettings(broker_version=0.9)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "says", "magic"),
    [
        ("0.8.2", False, 0),
        ("0.9", False, 0),
        ("0.10.0", True, 1),
        ("0.11", True, 2),
        ("4.4", True, 2),
        (None, True, 2),
    ],
)
def test_what_sets_releases_apart(name: str | None, says: bool, magic: int) -> None:
    assert says_versions(name) is says
    assert magic_of(name) == magic


def test_ranges_are_those_of_the_table() -> None:
    assert release_ranges("0.9")[1] == ApiRange(0, 1)
    assert 18 not in release_ranges("0.9")
    assert 22 not in release_ranges("0.10.2")


def test_common_ranges_are_what_both_take() -> None:
    one = {0: ApiRange(0, 5), 1: ApiRange(0, 3), 2: ApiRange(0, 1), 3: ApiRange(0, 1)}
    other = {0: ApiRange(3, 9), 1: ApiRange(0, 2), 2: ApiRange(2, 4), 4: ApiRange(0, 1)}
    assert common_ranges(one, other) == {0: ApiRange(3, 5), 1: ApiRange(0, 2)}


@pytest.mark.parametrize(("highest", "magic"), [(0, 0), (1, 0), (2, 1), (3, 2), (13, 2)])
def test_the_format_of_records_is_told_by_produce(highest: int, magic: int) -> None:
    assert message_magic(highest) == magic
