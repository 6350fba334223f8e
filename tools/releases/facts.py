"""The facts of one API in one release, as plain data.

This module reads the facts from the message definitions, which clients jars have since 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kproto_codegen.releases.importer import read_release_at

from kproto.schema.specs import MessageSpec
from kproto.schema.versions import NO_VERSIONS, Versions

__all__ = ["ReleaseApi", "facts_of_definitions"]

CLIENTS = "clients"


@dataclass(frozen=True, slots=True)
class ReleaseApi:
    """An API in one release. `versions` are those of its requests, including unstable ones.

    `placeholder` are versions with a schema that no broker of the release implemented. The other
    fields are empty if the release does not state them.
    """

    name: str
    versions: Versions
    placeholder: Versions = NO_VERSIONS
    flexible: Versions = NO_VERSIONS
    unstable: Versions = NO_VERSIONS
    deprecated: Versions = NO_VERSIONS
    listeners: tuple[str, ...] = ()

    def to_json(self, known_as: str) -> dict[str, Any]:
        """Returns the row of this API in the table of releases; leaves out empty values.

        The caller adds the release to the row. The row has `name` only if the name differs from
        `known_as`.
        """
        row: dict[str, Any] = {"versions": str(self.versions)}
        for key in ("placeholder", "flexible", "unstable", "deprecated"):
            if getattr(self, key):
                row[key] = str(getattr(self, key))
        if self.listeners:
            row["listeners"] = list(self.listeners)
        if self.name != known_as:
            row["name"] = self.name
        return row


def facts_of_definitions(jar: Path) -> dict[int, ReleaseApi]:
    """Returns the facts by api key from the definitions in a jar. Raises DefinitionError."""
    requests = (
        message
        for message in read_release_at(jar).messages
        if message.type == "request" and message.module == CLIENTS
    )
    return {message.api_key: _facts(message) for message in requests if message.api_key is not None}


def _facts(request: MessageSpec) -> ReleaseApi:
    versions = request.valid_versions
    unstable = NO_VERSIONS
    if request.latest_version_unstable and versions:
        unstable = Versions.single(versions.highest)
    return ReleaseApi(
        request.name.removesuffix("Request"),
        versions,
        flexible=request.flexible_versions,
        unstable=unstable,
        deprecated=request.deprecated_versions,
        listeners=request.listeners,
    )
