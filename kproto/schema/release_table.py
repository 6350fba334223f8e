"""The version range of every API in each release of Apache Kafka, from 0.8.2.0 on.

The file in this package is made from the clients jars of all releases at Maven Central: from 2.2.0
on from their message definitions, before that from the class ApiKeys, which declares ranges only.
The file has a row for each release that changed an API.

Releases are ordered by number, not by date: 0.10.2.2 precedes the older 0.11.0.0.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from .data_files import read_data
from .unknown_names import UnknownNameError, unknown_name_error
from .versions import NO_VERSIONS, Versions

__all__ = [
    "TABLE_FILE",
    "ApiRange",
    "api_name",
    "api_names",
    "brought_by",
    "dropped_by",
    "former_api_names",
    "newest_release",
    "ranges",
    "releases",
]

#: The name of the file, in this package and in `schemas/`.
TABLE_FILE: Final = "versions.json"


@dataclass(frozen=True, slots=True)
class ApiRange:
    """One API in one release: the versions of its request; the response has the same versions.

    `versions` are all versions of the release's clients, `unstable` those that are not final and
    must be enabled. `placeholder` are versions that had a schema but no broker implementation
    (0.8.2); they are not in `versions`. `flexible` is known from 2.4.0 on, `listeners` (the servers
    that accept the request) from 2.8.0, `deprecated` from 3.7.0; they are empty for older releases.
    `called` is the release's own name of the API.
    """

    api_key: int
    name: str
    versions: Versions
    unstable: Versions = NO_VERSIONS
    flexible: Versions = NO_VERSIONS
    deprecated: Versions = NO_VERSIONS
    placeholder: Versions = NO_VERSIONS
    listeners: tuple[str, ...] = ()
    called: str = ""

    @property
    def stable(self) -> Versions:
        """Returns the versions that are final."""
        if not self.unstable:
            return self.versions
        highest = self.unstable.lowest - 1
        if highest < self.versions.lowest:
            return NO_VERSIONS
        return Versions(self.versions.lowest, highest)

    def to_json(self) -> dict[str, Any]:
        """Returns this range as plain data, without empty values."""
        out: dict[str, Any] = {
            "apiKey": self.api_key,
            "name": self.name,
            "versions": str(self.versions),
        }
        for key in ("unstable", "flexible", "deprecated", "placeholder"):
            if getattr(self, key):
                out[key] = str(getattr(self, key))
        if self.listeners:
            out["listeners"] = list(self.listeners)
        if self.called != self.name:
            out["called"] = self.called
        return out


@dataclass(frozen=True, slots=True)
class _Table:
    """The parsed file: the releases, and the rows of each API with indexes into the releases."""

    releases: tuple[str, ...]
    number: dict[str, int]
    names: dict[int, str]
    keys: dict[str, int]
    rows: dict[int, tuple[list[int], list[ApiRange]]]

    def range(self, key: int, number: int) -> ApiRange | None:
        """Returns the API in the release with that number; None before its first release."""
        starts, rows = self.rows[key]
        at = bisect_right(starts, number)
        return rows[at - 1] if at else None


@cache
def _table() -> _Table:
    read = json.loads(read_data(TABLE_FILE))
    number = {name: at for at, name in enumerate(read["releases"])}
    names: dict[int, str] = {}
    keys: dict[str, int] = {}
    rows: dict[int, tuple[list[int], list[ApiRange]]] = {}
    for api in read["apis"]:
        key, name = api["key"], api["name"]
        names[key] = name
        rows[key] = (
            [number[row["since"]] for row in api["rows"]],
            [_range(key, name, row) for row in api["rows"]],
        )
        for row in rows[key][1]:
            keys.setdefault(row.called, key)
        keys[name] = key
    return _Table(tuple(read["releases"]), number, names, keys, rows)


def _range(key: int, name: str, row: dict[str, Any]) -> ApiRange:
    return ApiRange(
        key,
        name,
        Versions.parse(row["versions"]),
        unstable=Versions.parse(row.get("unstable", "none")),
        flexible=Versions.parse(row.get("flexible", "none")),
        deprecated=Versions.parse(row.get("deprecated", "none")),
        placeholder=Versions.parse(row.get("placeholder", "none")),
        listeners=tuple(row.get("listeners", ())),
        called=row.get("name", name),
    )


def releases() -> tuple[str, ...]:
    """Returns every release, oldest first by number: "0.8.2.0" to "4.4.0"."""
    return _table().releases


def release_number(release: str) -> int:
    """Returns the index of a release among all. Raises UnknownNameError."""
    number = _table().number.get(release)
    if number is None:
        raise unknown_name_error("no release is called", release, reversed(releases()))
    return number


def newest_release(name: str) -> str:
    """Returns the newest release that has this name or begins with it: "0.9" is 0.9.0.1.

    Raises UnknownNameError.
    """
    for release in reversed(releases()):
        if release == name or release.startswith(f"{name}."):
            return release
    raise unknown_name_error("no release is called", name, reversed(releases()))


def api_names() -> dict[int, str]:
    """Returns the name of every API by its key, as the newest release with the API calls it."""
    return dict(_table().names)


def former_api_names() -> dict[str, str]:
    """Returns the former names of APIs, each with the newest name."""
    table = _table()
    return {name: table.names[key] for name, key in table.keys.items() if name != table.names[key]}


def api_name(api: int | str) -> tuple[int, str]:
    """Returns the key and the newest name of an API, given its key or any name it ever had.

    A name may end with Request or Response. Raises UnknownNameError.
    """
    table = _table()
    if isinstance(api, int):
        if api not in table.names:
            known = f"{min(table.names)} to {max(table.names)}"
            raise UnknownNameError(f"no API has the key {api}; keys are {known}")
        return api, table.names[api]
    name = api.removesuffix("Request").removesuffix("Response")
    if name not in table.keys:
        raise unknown_name_error("no API is called", api, table.keys)
    key = table.keys[name]
    return key, table.names[key]


def ranges(release: str) -> dict[int, ApiRange]:
    """Returns the APIs of a release by key, without APIs that have no version.

    Raises UnknownNameError for an unknown release.
    """
    number = release_number(release)
    table = _table()
    found = ((key, table.range(key, number)) for key in sorted(table.names))
    return {key: each for key, each in found if each is not None and each.versions}


def brought_by(api: int | str, version: int, *, unstable: bool = False) -> str | None:
    """Returns the first release that has a version of an API; None if no release has it.

    By default the result is the first release in which the version is stable; with `unstable`, the
    first release that has it at all. Raises UnknownNameError for an unknown API.
    """
    key, _ = api_name(api)
    number = _first(key, version, unstable=unstable)
    return None if number is None else releases()[number]


def dropped_by(api: int | str, version: int) -> str | None:
    """Returns the release that removed a version of an API for good; None if it still exists.

    Returns None for a version that never existed, too. A version that a release removed and a later
    one restored still exists: only 4.0.0 is without JoinGroup 0 and 1. Raises UnknownNameError for
    an unknown API.
    """
    key, _ = api_name(api)
    existed = False
    dropped: int | None = None
    for start, row in zip(*_table().rows[key], strict=True):
        if version in row.versions:
            existed, dropped = True, None
        elif existed and dropped is None:
            dropped = start
    return None if dropped is None else releases()[dropped]


def _first(key: int, version: int, *, unstable: bool) -> int | None:
    for start, row in zip(*_table().rows[key], strict=True):
        if version in (row.versions if unstable else row.stable):
            return start
    return None
