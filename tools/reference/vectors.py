"""Golden vectors: messages as JSON and as bytes, for authors of codecs in any language.

`kproto.fuzz.vectors` chooses the messages and formats a line; this module adds the releases that
have the message (see tests/vectors/README.md). Tests compare the bytes with Kafka's own classes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from kproto.fuzz.vectors import vector_line, vector_messages
from kproto.messages.base import Message
from kproto.schema.definitions import union

from .pairs import KprotoMessageVersion, ReleaseMessageVersion, forms

__all__ = ["FOLDER", "Vector", "lines", "pair_of", "read", "vectors", "write"]

FOLDER: Final = Path(__file__).resolve().parents[2] / "tests" / "vectors"


class Vector(NamedTuple):
    """One message at one version: its name, its JSON and its bytes.

    `releases` maps each release to the name and version of the message in that release.
    """

    form: KprotoMessageVersion
    api_key: int | None
    releases: dict[str, tuple[str, int]]
    json: dict[str, Any]
    data: bytes

    def line(self) -> str:
        """Returns the vector as a line of its file."""
        made = self.form.message.decode(self.data, self.form.version)
        return vector_line(made, self.form.version, self.releases)


def vectors() -> Iterator[Vector]:
    """Yields every vector, in order of message, version and values.

    The vectors of a message version have different bytes.
    """
    for form, pairs in forms().items():
        names = {pair.release: (pair.name, pair.version) for pair in pairs}
        found: dict[bytes, Message] = {}
        for made in vector_messages(form.message, form.version):
            found.setdefault(made.encode(form.version), made)
        for data, made in found.items():
            yield Vector(form, form.message.API_KEY, names, made.to_json(form.version), data)


def lines() -> dict[str, list[str]]:
    """Returns the lines of each file by its name; there is one file per module of Kafka."""
    found: dict[str, list[str]] = {}
    for vector in vectors():
        module = union()[vector.form.name].module
        found.setdefault(f"{module}.jsonl", []).append(vector.line())
    return found


def write() -> str:
    """Regenerates the files in tests/vectors; returns a summary in one line."""
    count = size = 0
    for old in FOLDER.glob("*.jsonl"):
        old.unlink()
    for name, content in lines().items():
        text = "".join(f"{line}\n" for line in content)
        (FOLDER / name).write_text(text, encoding="utf-8")
        count += len(content)
        size += len(text)
    return f"{count} vectors, {size} bytes, in {FOLDER}"


def read() -> list[Vector]:
    """Returns the vectors that the files in tests/vectors contain."""
    found = []
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            node = json.loads(line)
            releases = {
                release: (entry["message"], entry["version"])
                for release, entry in node["releases"].items()
            }
            form = KprotoMessageVersion(node["message"], node["version"])
            data = bytes.fromhex(node["hex"])
            found.append(Vector(form, node["apiKey"], releases, node["json"], data))
    return found


def pair_of(vector: Vector) -> ReleaseMessageVersion:
    """Returns the vector's message version in the newest release that has it."""
    release = max(vector.releases)
    name, version = vector.releases[release]
    return ReleaseMessageVersion(release, name, version, vector.form)
