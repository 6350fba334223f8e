"""Writes golden vectors: messages as JSON and as bytes, to test a codec in any language.

Chooses their values and formats the lines, which tests/vectors/README.md describes; for Kafka's
messages, or those of any package that kproto-codegen generated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

from .. import messages
from ..messages.base import Message
from ..schema import study
from ..schema.naming import class_name
from ..testing.instances import Fill, instance, instances
from ..wire.errors import ConfigurationError
from .packages import definitions_in, message_class

__all__ = ["introduced_by", "vector_line", "vector_lines", "vector_messages"]

#: The ways to choose a vector's values, beside the instances with nulls.
_FILLS: Final = (Fill.LEAST, Fill.FULL, Fill.LOW)


def vector_messages(message: type[Message], version: int) -> Iterator[Message]:
    """Yields the messages of the vectors: defaults, every field set, the smallest numbers,
    nulls.
    """
    for fill in _FILLS:
        yield instance(message, version, fill, unknown_tags=False)
    # After one instance of each fill follow those with nulls, one for each depth of nesting.
    built = instances(message, version, unknown_tags=False)
    yield from built[len(Fill) - 1 :]


def introduced_by(message: type[Message], version: int) -> dict[str, tuple[str, int]]:
    """Returns the first release with a version of one of Kafka's messages: its name and version
    there.

    Releases are those of `kproto.schema.study`, from 0.8.2.0 on, and count if the version is final
    there. Empty for messages without an API, such as headers and records, and for a version that is
    final in no release.
    """
    spec = message._definition()
    if spec.type not in {"request", "response"} or spec.api_key is None:
        return {}
    release = study.brought_by(spec.api_key, version)
    if release is None:
        return {}
    there = study.ranges(release)[spec.api_key].called
    return {release: (there + spec.type.capitalize(), version)}


def vector_line(
    message: Message, version: int, releases: Mapping[str, tuple[str, int]] | None = None
) -> str:
    """Returns one vector as a line of JSON; `releases` are names and versions by release, if
    known.
    """
    known = releases or {}
    content: dict[str, Any] = {
        "message": message._definition().name,
        "version": version,
        "apiKey": message.API_KEY,
        "releases": {
            release: {"message": name, "version": number}
            for release, (name, number) in known.items()
        },
        "json": message.to_json(version),
        "hex": message.encode(version).hex(),
    }
    return json.dumps(content, separators=(",", ":"))


def vector_lines(
    package: ModuleType = messages, names: frozenset[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yields every vector of a generated package: the module of its definition, and the line.

    With Kafka's own messages each line names the release that brought the version
    (`introduced_by`).    The order is by message, version and choice of values; no two of a version
    have the same bytes. `names` selects definitions. Raises ConfigurationError for any other
    package, and for an unknown name.
    """
    known = definitions_in(package)
    for name in sorted(known if names is None else names):
        if name not in known:
            raise ConfigurationError(f"{package.__name__} has no message {name!r}")
    for name in sorted(known if names is None else names, key=class_name):
        cls = message_class(package.__name__, name)
        for version in cls.VALID_VERSIONS:
            releases = introduced_by(cls, version) if package is messages else {}
            message_by_bytes: dict[bytes, Message] = {}
            for made in vector_messages(cls, version):
                message_by_bytes.setdefault(made.encode(version), made)
            for made in message_by_bytes.values():
                yield cls._definition().module, vector_line(made, version, releases)
