"""Creates golden vectors: messages as JSON and as bytes, to test codecs in other languages.

The messages are Kafka's, or those of a package that kproto-codegen generated.
tests/vectors/README.md describes the lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

from .. import messages
from ..messages.base import Message
from ..protocol.message_classes import definitions_in
from ..schema import study
from ..schema.naming import class_name
from ..testing.instances import Fill, instance, instances
from ..testing.sized_instances import sized_fields, sized_instance
from ..wire.errors import ConfigurationError
from .packages import message_class

__all__ = [
    "introduced_by",
    "size_vector_messages",
    "vector_line",
    "vector_lines",
    "vector_messages",
]

#: The fills of the vectors (see `Fill`), besides the instances with nulls.
_FILLS: Final = (Fill.LEAST, Fill.FULL, Fill.LOW)


def vector_messages(message: type[Message], version: int) -> Iterator[Message]:
    """Yields the messages of the vectors: with defaults, with all fields set, with the smallest
    numbers, and with nulls.
    """
    for fill in _FILLS:
        yield instance(message, version, fill, unknown_tags=False)
    # `instances` returns an instance of each fill except LONG, then those with nulls.
    built = instances(message, version, unknown_tags=False)
    yield from built[len(Fill) - 1 :]


#: Lengths of each field of each version: a varint of a length has one byte up to 126, and two
#: bytes from 127 on; a byte has a length up to 255.
_SIZES: Final = (1, 126, 127, 128, 255, 256)

#: Longer lengths, for the first field of each kind of the highest version only, because such a
#: vector may have 100,000 characters.
_LONG_SIZES: Final = (16382, 16383, 16384, 32767)


def size_vector_messages(message: type[Message], version: int) -> Iterator[Message]:
    """Yields messages in which one field has a length or count at the border of an encoding.

    All other fields have their defaults.
    """
    seen: set[tuple[int, ...]] = set()
    for field in sized_fields(message, version):
        is_long = version == message.VALID_VERSIONS[-1] and field.sizes not in seen
        wanted = (*_SIZES, *(_LONG_SIZES if is_long else ()))
        seen.add(field.sizes)
        for size in wanted:
            if size in field.sizes:
                yield sized_instance(message, version, field.path, size)


def introduced_by(message: type[Message], version: int) -> dict[str, tuple[str, int]]:
    """Returns the first Kafka release, from 0.8.2.0 on, in which `version` is stable, as a dict.

    The only key is the release, and its value is (name of the message in that release, `version`).
    The dict is empty for a message without an API, such as a header or a record, and if `version`
    is stable in no release.
    """
    spec = message._definition()
    if spec.type not in {"request", "response"} or spec.api_key is None:
        return {}
    release = study.added_in(spec.api_key, version)
    if release is None:
        return {}
    there = study.ranges(release)[spec.api_key].called
    return {release: (there + spec.type.capitalize(), version)}


def vector_line(
    message: Message, version: int, releases: Mapping[str, tuple[str, int]] | None = None
) -> str:
    """Returns a vector as a line of JSON.

    `releases` has, by Kafka release, the message's name and version in that release.
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
    package: ModuleType = messages, names: frozenset[str] | None = None, *, sizes: bool = False
) -> Iterator[tuple[str, str]]:
    """Yields two strings for each golden vector of a generated package.

    The first string is the Kafka module of the message, the second string is the vector as a line
    of JSON. The vectors are ordered by message and version; duplicates are left out. For Kafka's
    own messages, a line names the release that introduced the version (`introduced_by`). If `names`
    is not None, only these messages are included. With `sizes`, the vectors of each version are
    followed by those of `size_vector_messages`. Raises ConfigurationError if `package` is not
    generated, and for an unknown name.
    """
    known = definitions_in(package)
    for name in sorted(known if names is None else names):
        if name not in known:
            raise ConfigurationError(f"{package.__name__} has no message {name!r}")
        if names is not None and not known[name].valid_versions:
            raise ConfigurationError(f"{name} of {package.__name__} has no valid version")
    for name in sorted(known if names is None else names, key=class_name):
        if not known[name].valid_versions:  # such a message has no class
            continue
        cls = message_class(package.__name__, name)
        for version in cls.VALID_VERSIONS:
            releases = introduced_by(cls, version) if package is messages else {}
            message_by_bytes: dict[bytes, Message] = {}
            for made in _values(cls, version, sizes=sizes):
                message_by_bytes.setdefault(made.encode(version), made)
            for made in message_by_bytes.values():
                yield cls._definition().module, vector_line(made, version, releases)


def _values(message: type[Message], version: int, *, sizes: bool) -> Iterator[Message]:
    yield from vector_messages(message, version)
    if sizes:
        yield from size_vector_messages(message, version)
