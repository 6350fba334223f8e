"""Describes what each version of an API changed, in a sentence, and names the KIPs.

Reads `kips.toml` in this package, which has a row for each version of every API, and names a source
for each sentence.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from .data_files import read_data
from .release_table import api_name, api_names

__all__ = ["Kip", "VersionNote", "notes_of_kip", "version_note", "version_notes"]


@dataclass(frozen=True, slots=True, order=True)
class Kip:
    """A Kafka Improvement Proposal; `title` and `address` (URL) are "" if unknown."""

    number: int
    title: str
    address: str

    def __str__(self) -> str:
        return f"KIP-{self.number}"

    def to_json(self) -> dict[str, Any]:
        """Returns this KIP as JSON data."""
        out: dict[str, Any] = {"number": self.number}
        if self.title:
            out["title"] = self.title
        if self.address:
            out["address"] = self.address
        return out


@dataclass(frozen=True, slots=True)
class VersionNote:
    """Describes what a version of an API changed, in its request and response together.

    `kips` is empty if no source names a KIP. `source` is a definition (`definition 4.4.0`), or the
    URL of the page that names the KIPs for the change.
    """

    api: str
    version: int
    change: str
    kips: tuple[Kip, ...]
    source: str

    def to_json(self) -> dict[str, Any]:
        """Returns this note as JSON data."""
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
    """Returns the notes of an API's versions, lowest first; empty if `kips.toml` lacks it.

    `api` is the key of the API, its name, or the name of its request or response. Raises
    UnknownNameError for an unknown API.
    """
    _, name = api_name(api)
    return tuple(_notes().get(name, {}).values())


def version_note(api: int | str, version: int) -> VersionNote | None:
    """Returns the note of a version of an API; None if `kips.toml` lacks the API or version.

    `api` is as in `version_notes`. Raises UnknownNameError for an unknown API.
    """
    _, name = api_name(api)
    return _notes().get(name, {}).get(version)


def notes_of_kip(number: int) -> tuple[VersionNote, ...]:
    """Returns the notes that name a KIP, by API key and version; empty if no version names it."""
    return tuple(
        note
        for api in api_names().values()
        for note in version_notes(api)
        if any(kip.number == number for kip in note.kips)
    )
