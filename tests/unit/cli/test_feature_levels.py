"""Tests names and levels of features: plain data."""

from __future__ import annotations

import pytest

from kproto.broker.features import FEATURES
from kproto.cli import main
from kproto.cli.admin.feature_levels import (
    METADATA_VERSION,
    METADATA_VERSIONS,
    level_of,
    level_text,
    levels_of_release,
    required_levels,
)
from kproto.cli.admin.run_features import changed_levels, release_levels
from kproto.cli.command_error import CommandError
from kproto.client.admin import FeatureMetadata, FeatureVersions, UpgradeType
from kproto.wire.errors import ConfigurationError


def metadata(**finalized: int) -> FeatureMetadata:
    levels = {name.replace("_", "."): level for name, level in finalized.items()}
    return FeatureMetadata({name: FeatureVersions(0, it) for name, it in levels.items()}, 5, {})


def test_the_last_name_is_that_of_the_highest_level_of_kafka() -> None:
    assert len(METADATA_VERSIONS) == FEATURES[METADATA_VERSION].most
    assert [level_text(METADATA_VERSION, level) for level in (1, 7, 21, 33)] == [
        "3.0-IV1",
        "3.3-IV3",
        "3.9-IV0",
        "4.4-IV2",
    ]
    assert [level_text(METADATA_VERSION, level) for level in (None, 0, 34)] == [None] * 3
    assert level_text("group.version", 1) is None


def test_level_is_a_number_a_name_or_a_release() -> None:
    assert [level_of(METADATA_VERSION, text) for text in ("26", "4.1-IV0", "4.1")] == [26, 26, 27]
    assert level_of("group.version", "1") == 1
    with pytest.raises(ConfigurationError, match="must be a number"):
        level_of("group.version", "4.1")
    with pytest.raises(ConfigurationError, match=r"is no metadata\.version"):
        level_of(METADATA_VERSION, "9.9")


def test_required_levels_are_those_of_kafkas_feature_dependencies() -> None:
    assert required_levels("eligible.leader.replicas.version", 1) == {METADATA_VERSION: 23}
    assert required_levels("transaction.version", 2) == {}
    assert required_levels(METADATA_VERSION, 33) == {}
    with pytest.raises(ConfigurationError, match=r"group\.version has no level 2"):
        required_levels("group.version", 2)
    with pytest.raises(ConfigurationError, match="'foo' is no feature of Kafka"):
        required_levels("foo", 1)


def test_verbs_of_releases_and_dependencies_need_no_broker(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["cluster", "-b", "127.0.0.1:1"]
    names = ["eligible.leader.replicas.version=1", "group.version=1"]
    assert main([*command, "feature-dependencies", *names]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["FEATURE", "LEVEL", "REQUIRES"],
        ["eligible.leader.replicas.version", "1", "metadata.version=23", "(4.0-IV1)"],
        ["group.version", "1", "none"],
    ]
    assert main([*command, "version-mapping", "--release-version", "4.1"]) == 0
    assert "metadata.version                  27 (4.1-IV1)" in capsys.readouterr().out


def test_levels_of_a_release_are_those_of_kafkas_version_mapping() -> None:
    others = {
        "kraft.version": 1,
        "transaction.version": 2,
        "group.version": 1,
        "eligible.leader.replicas.version": 1,
    }
    assert levels_of_release("4.1") == {
        METADATA_VERSION: 27,
        **others,
        "share.version": 0,
        "streams.version": 0,
    }
    newest = {METADATA_VERSION: 33, **others, "share.version": 2, "streams.version": 1}
    assert levels_of_release("4.4") == newest
    with pytest.raises(ConfigurationError, match="write a release"):
        levels_of_release("33")


def test_upgrade_to_a_release_leaves_out_levels_that_are_reached() -> None:
    found = metadata(metadata_version=27, group_version=1)
    wanted = {METADATA_VERSION: 30, "group.version": 1, "share.version": 1, "x": 0}
    levels = release_levels(wanted, found, UpgradeType.UPGRADE)
    assert levels == {METADATA_VERSION: 30, "share.version": 1}
    with pytest.raises(CommandError, match="downgrade-features lowers it"):
        release_levels({METADATA_VERSION: 26}, found, UpgradeType.UPGRADE)


def test_downgrade_to_a_release_raises_no_feature() -> None:
    found = metadata(metadata_version=27, share_version=1)
    wanted = {METADATA_VERSION: 25, "share.version": 0, "kraft.version": 1}
    levels = release_levels(wanted, found, UpgradeType.SAFE_DOWNGRADE)
    assert levels == {METADATA_VERSION: 25, "share.version": 0}
    with pytest.raises(CommandError, match="upgrade-features raises it"):
        release_levels({METADATA_VERSION: 28}, found, UpgradeType.UNSAFE_DOWNGRADE)


def test_only_other_levels_are_changes() -> None:
    assert changed_levels({"b": 0, "group.version": 1, "a": 2}, metadata(group_version=1)) == {
        "a": 2
    }
