"""Which KIP brought a version of an API, and what it changed, in one line of our own words.

Owns reading `kips.toml`, which lies beside this file and names a source for every row. It has rows
for the APIs that clients use most; of other APIs it knows nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .data_files import read_data
from .release_table import api_name

__all__ = ["Kip", "VersionNote", "version_note", "version_notes"]


@dataclass(frozen=True, slots=True, order=True)
class Kip:
    """A Kafka Improvement Proposal; `title` and `address` are "" where no source told them."""

    number: int
    title: str
    address: str

    def __str__(self) -> str:
        return f"KIP-{self.number}"

    def to_json(self) -> dict[str, Any]:
        """This KIP as plain data."""
        out: dict[str, Any] = {"number": self.number}
        if self.title:
            out["title"] = self.title
        if self.address:
            out["address"] = self.address
        return out


@dataclass(frozen=True, slots=True)
class VersionNote:
    """What a version of an API changed, request and response together.

    `kips` are empty where no source names one. `source` is a definition (`definition 4.4.0`) or the
    address of the page that ties the KIPs to the change.
    """

    api: str
    version: int
    change: str
    kips: tuple[Kip, ...]
    source: str

    def to_json(self) -> dict[str, Any]:
        """This note as plain data."""
        return {
            "api": self.api,
            "version": self.version,
            "change": self.change,
            "kips": [kip.to_json() for kip in self.kips],
            "source": self.source,
        }


@cache
def _notes() -> Mapping[str, Mapping[int, VersionNote]]:
    tables = tomllib.loads(read_data("kips.toml"))
    kips = {
        int(number): Kip(int(number), row.get("title", ""), row.get("address", ""))
        for number, row in tables.pop("kips").items()
    }
    return {
        api: {
            int(version): VersionNote(
                api,
                int(version),
                row["change"],
                tuple(kips[number] for number in row.get("kips", ())),
                row["source"],
            )
            for version, row in rows.items()
        }
        for api, rows in tables.items()
    }


def version_notes(api: int | str) -> tuple[VersionNote, ...]:
    """What each version of an API changed, oldest first; none for an API that has no rows.

    The API is given by its key, by its name, or by that of its request or response. Raises
    UnknownNameError for one that there is none of.
    """
    _, name = api_name(api)
    return tuple(_notes().get(name, {}).values())


def version_note(api: int | str, version: int) -> VersionNote | None:
    """What a version of an API changed; None where there is no row. Raises as `version_notes`."""
    _, name = api_name(api)
    return _notes().get(name, {}).get(version)
