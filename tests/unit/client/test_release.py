"""Tests which features a Kafka release has, by the release's name."""

from __future__ import annotations

import pytest

from kproto.client import ClientSettings
from kproto.client.release import (
    common_ranges,
    has_api_versions,
    magic_of_release,
    message_magic,
    resolve_release,
    version_ranges_of,
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
def test_name_selects_its_newest_release(name: str, release: str) -> None:
    assert resolve_release(name) == release


@pytest.mark.parametrize("name", ["", "0.7", "0.9.", "5", "0.99", "latest", "3.9.2.0"])
def test_unknown_release_is_refused_at_once(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is no release of Kafka"):
        ClientSettings(broker_version=name)


def test_number_is_refused_as_a_release() -> None:
    with pytest.raises(ConfigurationError, match="must be a str"):
        ClientSettings(broker_version=0.9)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "reports", "magic"),
    [
        ("0.8.2", False, 0),
        ("0.9", False, 0),
        ("0.10.0", True, 1),
        ("0.11", True, 2),
        ("4.4", True, 2),
        (None, True, 2),
    ],
)
def test_release_decides_apiversions_and_message_format(
    name: str | None, reports: bool, magic: int
) -> None:
    assert has_api_versions(name) is reports
    assert magic_of_release(name) == magic


def test_ranges_come_from_the_table() -> None:
    assert version_ranges_of("0.9")[1] == ApiRange(0, 1)
    assert 18 not in version_ranges_of("0.9")
    assert 22 not in version_ranges_of("0.10.2")


def test_common_ranges_are_the_intersection() -> None:
    one = {0: ApiRange(0, 5), 1: ApiRange(0, 3), 2: ApiRange(0, 1), 3: ApiRange(0, 1)}
    other = {0: ApiRange(3, 9), 1: ApiRange(0, 2), 2: ApiRange(2, 4), 4: ApiRange(0, 1)}
    assert common_ranges(one, other) == {0: ApiRange(3, 5), 1: ApiRange(0, 2)}


@pytest.mark.parametrize(("highest", "magic"), [(0, 0), (1, 0), (2, 1), (3, 2), (13, 2)])
def test_produce_version_decides_the_message_format(highest: int, magic: int) -> None:
    assert message_magic(highest) == magic
