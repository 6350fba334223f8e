"""What each release of Apache Kafka speaks: the version range of every API, from 0.8.2.0 on.

The file beside this one is made from the clients jars of all releases at Maven Central: from 2.2.0
on by their message definitions, before that by the class ApiKeys, which declares ranges alone. It
has one row of an API for each release in which something changed.

Releases are ordered by number, not by date: 0.10.2.2 stands before 0.11.0.0, after which it came.
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
    """One API in one release. Ranges are those of its requests; responses have the same.

    `versions` are all that the release's clients have, `unstable` those of them that are not final
    and are spoken only by who opts in. `placeholder` are versions that had a schema and were
    answered by no broker (0.8.2); they are no part of `versions`. `flexible` is known from 2.4.0
    on, `listeners` (which servers take the request) from 2.8.0, `deprecated` from 3.7.0; they are
    empty where the release says nothing. `called` is the release's own name of the API.
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
        """This range as plain data; keys that say nothing are left out."""
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
    """The file: the releases, and of each API its rows with the numbers of their releases."""

    releases: tuple[str, ...]
    number: dict[str, int]
    names: dict[int, str]
    keys: dict[str, int]
    rows: dict[int, tuple[list[int], list[ApiRange]]]

    def range(self, key: int, number: int) -> ApiRange | None:
        """Returns the API in the release of that number; None before its first."""
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
    """Returns the place of a release among all. Raises UnknownNameError."""
    number = _table().number.get(release)
    if number is None:
        raise unknown_name_error("no release is called", release, reversed(releases()))
    return number


def newest_release(name: str) -> str:
    """Returns the newest release that is called so, or whose number begins so: "0.9" is 0.9.0.1.

    Raises UnknownNameError.
    """
    for release in reversed(releases()):
        if release == name or release.startswith(f"{name}."):
            return release
    raise unknown_name_error("no release is called", name, reversed(releases()))


def api_names() -> dict[int, str]:
    """Returns the name of every API by its key, as the newest release that has it calls it."""
    return dict(_table().names)


def former_api_names() -> dict[str, str]:
    """Returns the names that releases had for an API before, each with the newest name."""
    table = _table()
    return {name: table.names[key] for name, key in table.keys.items() if name != table.names[key]}


def api_name(api: int | str) -> tuple[int, str]:
    """The key and the newest name of an API that is given by its key or by any name it ever had.

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
    """Returns the APIs of a release by their keys; those without any version are left out.

    Raises UnknownNameError for a release that there is none of.
    """
    number = release_number(release)
    table = _table()
    found = ((key, table.range(key, number)) for key in sorted(table.names))
    return {key: each for key, each in found if each is not None and each.versions}


def brought_by(api: int | str, version: int, *, unstable: bool = False) -> str | None:
    """Returns the first release that has a version of an API; None when none of them has it.

    A version counts from the release on that calls it stable; with `unstable`, from the first that
    has it at all. Raises UnknownNameError for an API that there is none of.
    """
    key, _ = api_name(api)
    number = _first(key, version, unstable=unstable)
    return None if number is None else releases()[number]


def dropped_by(api: int | str, version: int) -> str | None:
    """Returns the release since which no release has a version of an API; None while it stands.

    None, too, for what never was. A version that a release left out and a later one took up again
    stands: 4.0.0 alone is without JoinGroup 0 and 1. Raises UnknownNameError for an API that there
    is none of.
    """
    key, _ = api_name(api)
    stood = False
    gone: int | None = None
    for start, row in zip(*_table().rows[key], strict=True):
        if version in row.versions:
            stood, gone = True, None
        elif stood and gone is None:
            gone = start
    return None if gone is None else releases()[gone]


def _first(key: int, version: int, *, unstable: bool) -> int | None:
    for start, row in zip(*_table().rows[key], strict=True):
        if version in (row.versions if unstable else row.stable):
            return start
    return None
