"""Runs the verbs of `kproto cluster` for features."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from ...client import Client
from ...client.admin import AdminError, FeatureMetadata, FeatureUpdate, UpgradeType
from ...wire.errors import ConfigurationError
from ..command_error import CommandError
from .confirming import confirm
from .feature_levels import (
    METADATA_VERSION,
    level_of,
    level_text,
    levels_of_release,
    required_levels,
)
from .rows import print_rows

__all__ = [
    "changed_levels",
    "disable",
    "downgrade",
    "feature_dependencies",
    "features",
    "release_levels",
    "upgrade",
    "version_mapping",
]


async def features(client: Client, options: argparse.Namespace) -> int:
    """Prints the features with their supported and finalized levels."""
    found = await client.admin.describe_features()
    rows = []
    for name in sorted({*found.supported, *found.finalized}):
        supported = found.supported.get(name)
        levels = {
            "lowest": supported and supported.lowest,
            "highest": supported and supported.highest,
            "finalized": _finalized(found, name),
        }
        if not (options.json or options.csv):
            rows.append(
                {
                    "feature": name,
                    **{column: _named(name, level) for column, level in levels.items()},
                    "epoch": found.finalized_epoch,
                }
            )
            continue
        names = {f"{column}_name": level_text(name, level) for column, level in levels.items()}
        rows.append({"feature": name, **levels, "epoch": found.finalized_epoch, **names})
    columns = ["feature", "lowest", "highest", "finalized", "epoch"]
    if options.json or options.csv:
        columns += ["lowest_name", "highest_name", "finalized_name"]
    print_rows(options, columns, rows)
    return 0


def _finalized(found: FeatureMetadata, name: str) -> int:
    """Returns the finalized level; as in Kafka's script, 0 for a feature that is not finalized."""
    finalized = found.finalized.get(name)
    return 0 if finalized is None else finalized.highest


def _named(feature: str, level: int | None) -> str | int | None:
    """Returns a level with its name, such as `33 (4.4-IV2)`, if it has one."""
    name = level_text(feature, level)
    return level if name is None else f"{level} ({name})"


def version_mapping(options: argparse.Namespace) -> int:
    """Prints the levels of all features in a new cluster of a Kafka release."""
    levels = levels_of_release(options.release_version)
    _print_levels(options, [{"feature": name, "level": level} for name, level in levels.items()])
    return 0


def feature_dependencies(options: argparse.Namespace) -> int:
    """Prints the levels of other features that the named levels require."""
    rows = []
    for name, level in _levels(options.features).items():
        required = required_levels(name, level)
        requires = ", ".join(f"{other}={_named(other, to)}" for other, to in required.items())
        row = {"feature": name, "level": level}
        rows.append({**row, "requires": required if options.json else requires or "none"})
    _print_levels(options, rows, "requires")
    return 0


def _print_levels(
    options: argparse.Namespace, rows: Sequence[dict[str, Any]], *columns: str
) -> None:
    for row in rows:
        if options.json or options.csv:
            row["level_name"] = level_text(row["feature"], row["level"])
        else:
            row["level"] = _named(row["feature"], row["level"])
    names = ["feature", "level", *columns]
    print_rows(options, names + ["level_name"] * (options.json or options.csv), rows)


async def upgrade(client: Client, options: argparse.Namespace) -> int:
    """Raises the finalized levels of features."""
    return await _change(client, options, UpgradeType.UPGRADE)


async def downgrade(client: Client, options: argparse.Namespace) -> int:
    """Lowers the finalized levels of features."""
    unsafe = UpgradeType.UNSAFE_DOWNGRADE if options.unsafe else UpgradeType.SAFE_DOWNGRADE
    return await _change(client, options, unsafe)


async def disable(client: Client, options: argparse.Namespace) -> int:
    """Sets the finalized levels of features to 0."""
    unsafe = UpgradeType.UNSAFE_DOWNGRADE if options.unsafe else UpgradeType.SAFE_DOWNGRADE
    return await _apply(client, options, dict.fromkeys(options.features, 0), unsafe)


async def _change(client: Client, options: argparse.Namespace, kind: UpgradeType) -> int:
    if bool(options.features) == (options.release_version is not None):
        raise ConfigurationError("name either features (FEATURE=LEVEL) or --release-version")
    if options.release_version is None:
        return await _apply(client, options, _levels(options.features), kind)
    wanted = levels_of_release(options.release_version)
    found = await client.admin.describe_features()
    return await _apply(client, options, release_levels(wanted, found, kind), kind, found)


def _levels(texts: list[str]) -> dict[str, int]:
    """Returns the levels that `FEATURE=LEVEL` name, by feature."""
    levels: dict[str, int] = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not name or not equals:
            raise ConfigurationError(f"{text!r} is no FEATURE=LEVEL, such as group.version=1")
        if name in levels:
            raise ConfigurationError(f"{name} has two levels: name each feature once")
        levels[name] = level_of(name, level)
    return levels


def release_levels(
    wanted: Mapping[str, int], found: FeatureMetadata, kind: UpgradeType
) -> dict[str, int]:
    """Returns the levels of a release that an upgrade raises, or that a downgrade lowers.

    A downgrade lowers a feature that the release lacks to 0. Raises CommandError if
    metadata.version would change in the other direction.
    """
    levels = {}
    for name, level in wanted.items():
        now = _finalized(found, name)
        is_upgrade = kind is UpgradeType.UPGRADE
        if name == METADATA_VERSION and (level < now if is_upgrade else level > now):
            verb = "downgrade-features lowers" if is_upgrade else "upgrade-features raises"
            raise CommandError(
                f"{METADATA_VERSION} of the cluster is {_named(name, now)}, and that of the "
                f"release {_named(name, level)}: kproto cluster {verb} it"
            )
        if level > now if is_upgrade else level < now:
            levels[name] = level
    return levels


async def _apply(
    client: Client,
    options: argparse.Namespace,
    levels: Mapping[str, int],
    kind: UpgradeType,
    found: FeatureMetadata | None = None,
) -> int:
    """Prints the new levels, asks, and sets them; with `--dry-run` the controller only checks."""
    if found is None:
        found = await client.admin.describe_features()
    rows = [
        {
            "feature": name,
            "finalized": _named(name, _finalized(found, name)),
            "new": _named(name, level),
        }
        for name, level in sorted(levels.items())
    ]
    changed = changed_levels(levels, found)
    if not options.dry_run and changed:
        words = ", ".join(f"{name} to {_named(name, level)}" for name, level in changed.items())
        risk = "; metadata may be lost" if kind is UpgradeType.UNSAFE_DOWNGRADE else ""
        if not confirm(options, f"set {words}{risk}"):
            return 1
    updates = {name: FeatureUpdate(level, kind) for name, level in levels.items()}
    if updates:
        await _update(client, updates, is_dry_run=options.dry_run)
    columns = ["feature", "finalized", "new"]
    if options.json or options.csv:
        rows = [_plain_row(name, level, found) for name, level in sorted(levels.items())]
        columns += ["finalized_name", "new_name"]
    print_rows(options, columns, rows)
    return 0


async def _update(
    client: Client, updates: Mapping[str, FeatureUpdate], *, is_dry_run: bool
) -> None:
    """Updates features. Raises CommandError if the controller has one error for all updates."""
    try:
        await client.admin.update_features(updates, validate_only=is_dry_run)
    except AdminError as error:
        texts = {
            # Each detail begins with the name of its feature.
            str(each).replace(f"updating feature {name!r}: ", "")
            for name, each in error.errors.items()
        }
        if len(texts) == 1:
            raise CommandError(f"no feature was changed: {texts.pop()}") from None
        raise


def changed_levels(levels: Mapping[str, int], found: FeatureMetadata) -> dict[str, int]:
    """Returns the levels that differ from the finalized levels, sorted by feature."""
    return {
        name: level for name, level in sorted(levels.items()) if level != _finalized(found, name)
    }


def _plain_row(name: str, level: int, found: FeatureMetadata) -> dict[str, Any]:
    now = _finalized(found, name)
    return {
        "feature": name,
        "finalized": now,
        "new": level,
        "finalized_name": level_text(name, now),
        "new_name": level_text(name, level),
    }
