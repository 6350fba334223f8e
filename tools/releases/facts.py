"""What one release says of one API, as plain data, and a release's APIs by key.

From definitions, which clients jars hold since 2.2. Knows no Java and nothing of other releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kproto_codegen.releases.importer import read_any

from kproto.schema.specs import MessageSpec
from kproto.schema.versions import NO_VERSIONS, Versions

__all__ = ["Facts", "facts_of_definitions"]

CLIENTS = "clients"


@dataclass(frozen=True, slots=True)
class Facts:
    """An API in one release. `versions` are those that its requests have, unstable ones too.

    `placeholder` are versions that have a schema and that no broker of the release answered.
    `flexible`, `unstable`, `deprecated` and `listeners` are empty where nothing says them.
    """

    name: str
    versions: Versions
    placeholder: Versions = NO_VERSIONS
    flexible: Versions = NO_VERSIONS
    unstable: Versions = NO_VERSIONS
    deprecated: Versions = NO_VERSIONS
    listeners: tuple[str, ...] = ()

    def to_json(self, known_as: str) -> dict[str, Any]:
        """Returns a row without its release; keys that say nothing are left out."""
        row: dict[str, Any] = {"versions": str(self.versions)}
        for key in ("placeholder", "flexible", "unstable", "deprecated"):
            if getattr(self, key):
                row[key] = str(getattr(self, key))
        if self.listeners:
            row["listeners"] = list(self.listeners)
        if self.name != known_as:
            row["name"] = self.name
        return row


def facts_of_definitions(jar: Path) -> dict[int, Facts]:
    """What the definitions in a jar say of each api key. Raises DefinitionError."""
    requests = (
        message
        for message in read_any(jar).messages
        if message.type == "request" and message.module == CLIENTS
    )
    return {message.api_key: _facts(message) for message in requests if message.api_key is not None}


def _facts(request: MessageSpec) -> Facts:
    versions = request.valid_versions
    unstable = NO_VERSIONS
    if request.latest_version_unstable and versions:
        unstable = Versions.single(versions.highest)
    return Facts(
        request.name.removesuffix("Request"),
        versions,
        flexible=request.flexible_versions,
        unstable=unstable,
        deprecated=request.deprecated_versions,
        listeners=request.listeners,
    )
