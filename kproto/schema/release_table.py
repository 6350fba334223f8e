"""Looks up the version ranges of all APIs in each release of Apache Kafka, from 0.8.2.0 on.

The data file in this package was extracted from the clients jars of all releases at Maven Central.
For 2.2.0 and later, the source is the message definitions. For earlier releases, the source is the
class ApiKeys, which declares only version ranges. For each API, the file has a row for each release
that changed the API.

Releases are ordered by number, not by date: 0.10.2.2 comes before 0.11.0.0, although it was
released later.
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
    "added_in",
    "api_name",
    "api_names",
    "former_api_names",
    "newest_release",
    "ranges",
    "releases",
    "removed_in",
]

#: The name of the data file, in this package and in `schemas/`.
TABLE_FILE: Final = "versions.json"


@dataclass(frozen=True, slots=True)
class ApiRange:
    """The versions of an API in a release; its request and its response have the same versions.

    - `versions`: the versions in the release's clients. `unstable`: the versions in `versions` that
      are not final, and that a user must enable.
    - `placeholder` (0.8.2 only): versions with a schema that no broker implemented. They are not in
      `versions`.
    - `flexible`: empty before 2.4.0, because earlier releases do not declare it.
    - `listeners`: the servers that accept the request; empty before 2.8.0, for the same reason.
    - `deprecated`: empty before 3.7.0, for the same reason.
    - `name`: the newest name of the API; `called`: the name of the API in the release.
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
        """Returns the versions below the unstable ones."""
        if not self.unstable:
            return self.versions
        highest = self.unstable.lowest - 1
        if highest < self.versions.lowest:
            return NO_VERSIONS
        return Versions(self.versions.lowest, highest)

    def to_json(self) -> dict[str, Any]:
        """Returns this range as JSON data, without empty values."""
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
    """The parsed data file.

    `number` has the index of each release in `releases`. `names` has the newest name by api key.
    `keys` has the api key by newest and former names. `rows` has, by api key, the indexes of the
    releases that changed the API, and the `ApiRange` since each of these releases.
    """

    releases: tuple[str, ...]
    number: dict[str, int]
    names: dict[int, str]
    keys: dict[str, int]
    rows: dict[int, tuple[list[int], list[ApiRange]]]

    def range(self, key: int, number: int) -> ApiRange | None:
        """Returns the range of an API in the release with index `number`.

        Returns None for a release before the first that has the API.
        """
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
    """Returns the releases, ordered by number: "0.8.2.0" to "4.4.0"."""
    return _table().releases


def release_number(release: str) -> int:
    """Returns the index of `release` in `releases()`. Raises UnknownNameError if it is unknown."""
    number = _table().number.get(release)
    if number is None:
        raise unknown_name_error("no release is called", release, reversed(releases()))
    return number


def newest_release(name: str) -> str:
    """Returns the newest release whose number is `name` or begins with it: "0.9.0.1" for "0.9".

    Raises UnknownNameError if there is none.
    """
    for release in reversed(releases()):
        if release == name or release.startswith(f"{name}."):
            return release
    raise unknown_name_error("no release is called", name, reversed(releases()))


def api_names() -> dict[int, str]:
    """Returns the names of all APIs by api key, as in the newest release that has the API."""
    return dict(_table().names)


def former_api_names() -> dict[str, str]:
    """Returns the newest names of renamed APIs, by their former names."""
    table = _table()
    return {name: table.names[key] for name, key in table.keys.items() if name != table.names[key]}


def api_name(api: int | str) -> tuple[int, str]:
    """Returns the key and the newest name of an API.

    `api` is its key, its name or a former name; a name may end with Request or Response. Raises
    UnknownNameError for an unknown API.
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
    """Returns the ranges, by api key, of the APIs that have at least one version in a release.

    Raises UnknownNameError for an unknown release.
    """
    number = release_number(release)
    table = _table()
    found = ((key, table.range(key, number)) for key in sorted(table.names))
    return {key: each for key, each in found if each is not None and each.versions}


def added_in(api: int | str, version: int, *, unstable: bool = False) -> str | None:
    """Returns the first release in which a version of an API is stable; None if there is none.

    With `unstable`, returns the first release that has the version, stable or not. Raises
    UnknownNameError for an unknown API.
    """
    key, _ = api_name(api)
    number = _first(key, version, unstable=unstable)
    return None if number is None else releases()[number]


def removed_in(api: int | str, version: int) -> str | None:
    """Returns the release that removed a version of an API; None if the newest release has it.

    Also returns None for a version that never existed. If a later release restored the version, the
    removal does not count: 4.0.0 removed JoinGroup 0 and 1, and 4.0.1 restored them. Raises
    UnknownNameError for an unknown API.
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
