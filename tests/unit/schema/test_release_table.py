"""Tests the table of versions in each Kafka release: its rows and its queries."""

from __future__ import annotations

import json

import pytest

from kproto.schema.definitions import union
from kproto.schema.release_table import (
    added_in,
    api_name,
    api_names,
    ranges,
    releases,
    removed_in,
)
from kproto.schema.unknown_names import UnknownNameError
from kproto.schema.versions import NO_VERSIONS, Versions
from tests.support.committed_releases import committed_release
from tests.support.environment import ROOT


def test_the_package_has_the_table_of_the_schemas() -> None:
    own = (ROOT / "kproto" / "schema" / "versions.json").read_bytes()
    assert own == (ROOT / "schemas" / "versions.json").read_bytes()


@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
@pytest.mark.slow
def test_the_table_agrees_with_the_definitions(release: str) -> None:
    spoken = ranges(release)
    requests = {
        message.api_key: message
        for message in committed_release(release).messages
        if message.type == "request" and message.module == "clients" and message.valid_versions
    }
    assert spoken.keys() == requests.keys()
    for key, api in spoken.items():
        message = requests[key]
        assert f"{api.called}Request" == message.name
        assert api.versions == message.valid_versions
        assert api.flexible == message.flexible_versions
        assert api.deprecated == message.deprecated_versions
        assert api.listeners == message.listeners
        assert api.stable.highest == message.latest_stable or not api.stable


@pytest.mark.slow
def test_exactly_the_valid_versions_have_a_release() -> None:
    for key, name in api_names().items():
        had = {version for release in releases() for version in _versions(release, key)}
        assert had == set(union()[f"{name}Request"].valid_versions), name
        for version in had:
            assert added_in(key, version, unstable=True) is not None


def _versions(release: str, key: int) -> Versions:
    api = ranges(release).get(key)
    return NO_VERSIONS if api is None else api.versions


def test_versions_have_first_and_last_releases() -> None:
    assert releases()[0] == "0.8.2.0"
    assert releases()[-1] == "4.4.0"
    assert added_in("Fetch", 13) == added_in(1, 13) == "3.1.0"
    assert added_in("FetchRequest", 13) == "3.1.0"
    assert added_in("OffsetCommit", 9) == "3.7.0"
    assert added_in("OffsetCommit", 9, unstable=True) == "3.6.0"
    assert added_in("InitProducerId", 6) is None
    assert added_in("Fetch", 99) is None
    assert removed_in("Fetch", 3) == "4.0.0"
    assert removed_in("Fetch", 4) is None
    assert removed_in("Fetch", 99) is None
    assert removed_in("LeaderAndIsr", 0) == "4.0.0"


def test_a_version_that_was_restored_is_not_dropped() -> None:
    assert _versions("3.9.2", 11).lowest == _versions("4.0.1", 11).lowest == 0
    assert _versions("4.0.0", 11).lowest == 2
    assert removed_in("JoinGroup", 0) is None


@pytest.mark.slow
def test_a_dropped_version_is_in_no_later_release() -> None:
    newest = releases()[-1]
    for key, name in api_names().items():
        known = {version for release in releases() for version in _versions(release, key)}
        gone = known - set(_versions(newest, key))
        dropped = {version for version in range(20) if removed_in(key, version) is not None}
        assert dropped == gone, name


def test_placeholders_are_ignored() -> None:
    assert 11 not in ranges("0.8.2.2")
    assert ranges("0.9.0.0")[11].versions == Versions(0, 0)
    assert added_in("JoinGroup", 0) == added_in("Heartbeat", 0) == "0.9.0.0"
    first = json.loads((ROOT / "schemas" / "versions.json").read_text())["apis"][11]["rows"][0]
    assert first == {"since": "0.8.2.0", "versions": "none", "placeholder": "0"}


def test_unstable_versions_are_not_stable() -> None:
    commit = ranges("3.6.0")[8]
    assert (commit.versions, commit.unstable, commit.stable) == (
        Versions(0, 9),
        Versions(9, 9),
        Versions(0, 8),
    )
    heartbeat = ranges("3.6.0")[68]
    assert heartbeat.unstable == heartbeat.versions
    assert not heartbeat.stable


def test_an_api_is_found_by_each_former_name() -> None:
    assert api_name("ConsumerMetadata") == api_name("GroupCoordinator") == (10, "FindCoordinator")
    assert api_name(10) == (10, "FindCoordinator")
    assert ranges("0.9.0.0")[10].called == "GroupCoordinator"
    assert ranges("0.9.0.0")[10].to_json() == {
        "apiKey": 10,
        "name": "FindCoordinator",
        "versions": "0",
        "called": "GroupCoordinator",
    }


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: ranges("4.5.0"), "no release is called '4.5.0'; the nearest: 4.4.0"),
        (lambda: ranges(""), "no release is called ''"),
        (lambda: added_in("Fetsch", 1), "no API is called 'Fetsch'; the nearest: Fetch"),
        (lambda: added_in(999, 1), "no API has the key 999; keys are 0 to "),
    ],
)
def test_unknown_names_raise_an_error(ask: object, said: str) -> None:
    assert callable(ask)
    with pytest.raises(UnknownNameError) as caught:
        ask()
    assert said in str(caught.value)
