"""Ranks the messages and versions that bytes could be, with reasons.

Reads the bytes as each message at each version: as a body, and as a response after its header. If
the bytes begin with a request header, reads that request too. Also reads the bytes as the key or
value of a record of an internal topic. The messages that read to the last
byte are ranked by how plausible their values are: known error codes, printable strings, times of
this century, valid record batches. The numbers of bytes and nodes are limited, to limit the time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from ..messages.base import Message, Request, Response
from ..protocol.headers import response_header_version
from ..protocol.message_classes import (
    KAFKA_MESSAGES,
    MessageClasses,
    definitions_in,
    is_kafka_message,
)
from ..schema.layout import LayoutField, layout
from ..schema.naming import class_name
from ..stored.coordinator_records import COORDINATOR_TOPICS
from ..stored.metadata_log import METADATA_TOPICS
from ..wire.errors import ConfigurationError
from ..wire.uuid import ZERO_UUID, Uuid
from .embedded_messages import open_embedded
from .frames import Part, annotate_frame
from .meanings import meanings_for
from .message_reader import MessageReader, UnreadableError
from .node import Node, TreeSizeLimit, faults, nodes
from .record_batches import read_batches
from .records_context import RecordsContext
from .stored_parts import annotate_key, annotate_value, value_types
from .value_meanings import api_name, meaning_of, names_of

__all__ = ["MAX_GUESSED_BYTES", "MAX_GUESSED_NODES", "Guess", "guess"]

#: Maximum number of bytes for a guess, because reading the bytes as a message may copy them. Larger
#: frames are usually Produce requests, which name themselves, or Fetch responses.
MAX_GUESSED_BYTES: Final = 4_194_304

#: Maximum number of nodes that are read for each message and version; so many are enough for a
#: score.
MAX_GUESSED_NODES: Final = 400

#: Maximum number of bytes to which the compressed batches in a message may decompress.
_MAX_DECOMPRESSED_BYTES: Final = 1_048_576

#: 2000-01-01 and 2100-01-01, in ms since the Unix epoch.
_THIS_CENTURY: Final = range(946_684_800_000, 4_102_444_800_000)

#: Points of messages that are neither request nor response: connections do not carry them.
_NOT_SENT: Final = -3.0


class Guess(NamedTuple):
    """A message that the bytes could be.

    All `versions` read the bytes with the same result. `part` is `frame` (with size and header),
    `message` (with header), `body`, or the `key` or `value` of a record of the topic `records_of`.
    `score` is for ranking; a positive score supports the guess. `exact` is True if the message has
    no fault and no bytes follow it; after a request with a header, bytes may follow. Faults inside
    records or bytes fields of the message do not count. Only the first MAX_GUESSED_NODES nodes are
    checked. Guesses that are not exact are returned only if no guess is exact. `reasons` explain
    the score.
    """

    message: str
    versions: tuple[int, ...]
    part: Part | Literal["key", "value"]
    score: float
    exact: bool
    reasons: tuple[str, ...]
    records_of: str = ""

    @property
    def is_response(self) -> bool:
        """Returns True for a response; pass the result to `annotate_frame` as `response`."""
        return self.message.endswith("Response")


class _EnoughError(Exception):
    """Ends the reading of a candidate that has MAX_GUESSED_NODES nodes."""


class _RaisingSizeLimit(TreeSizeLimit):
    """Raises _EnoughError for a node above the limit, instead of counting it in `left_out`."""

    def add(self, parent: Node, child: Node) -> None:
        if self.spent:
            raise _EnoughError
        super().add(parent, child)


def guess(
    data: bytes,
    *,
    most: int = 10,
    messages: Collection[str] | None = None,
    version: int | None = None,
    classes: MessageClasses = KAFKA_MESSAGES,
) -> list[Guess]:
    """Returns up to `most` guesses for the bytes, the most plausible first.

    `messages` are names of messages such as FetchRequest: only these are considered, and with
    `version` only this version. If `classes` has packages besides Kafka's, only the messages of
    these packages are considered. Raises ConfigurationError for more than MAX_GUESSED_BYTES bytes.
    """
    if len(data) > MAX_GUESSED_BYTES:
        raise ConfigurationError(
            f"{len(data)} bytes; guess accepts at most {MAX_GUESSED_BYTES}: name the message"
        )
    wanted = _Wanted(None if messages is None else frozenset(messages), version)
    found = [
        *_requests_with_header(data, wanted, classes),
        *_other_candidates(data, wanted, classes),
    ]
    if classes.packages == KAFKA_MESSAGES.packages:
        found += _stored_candidates(data, wanted)
    exact = [one for one in found if one.exact]
    if not exact:
        found.sort(key=lambda one: -one.score)
    return sorted(_merged(exact or found[: 4 * most]), key=lambda one: -one.score)[:most]


class _Wanted(NamedTuple):
    """The messages and the version to which the caller limits the guesses; None for all."""

    messages: frozenset[str] | None
    version: int | None

    def includes(self, message: str, version: int) -> bool:
        return (self.messages is None or message in self.messages) and (
            self.version in (None, version)
        )


def _requests_with_header(data: bytes, wanted: _Wanted, classes: MessageClasses) -> Iterator[Guess]:
    """Yields a guess if the bytes begin with a known request header, with or without a size."""
    known = _classes(classes)
    for part, start in (("frame", 4), ("message", 0)):
        size = int.from_bytes(data[:4], "big", signed=True)
        if len(data) < start + 8 or (start and size != len(data) - 4):
            continue
        key = int.from_bytes(data[start : start + 2], "big", signed=True)
        version = int.from_bytes(data[start + 2 : start + 4], "big", signed=True)
        cls = classes.request(key)
        if cls is None or cls not in known or version not in cls.VALID_VERSIONS:
            continue
        if not wanted.includes(cls.__name__, version):
            continue
        root = annotate_frame(
            data,
            part=part,  # type: ignore[arg-type]  # one of the two above
            max_nodes=MAX_GUESSED_NODES,
            max_decompressed_bytes=_MAX_DECOMPRESSED_BYTES,
            classes=classes,
        )
        broken = [fault for fault in faults(root) if fault.layer == "message"]
        score, reasons = _plausibility(root, cls.__name__, is_kafka=is_kafka_message(cls))
        reasons.insert(0, f"api key {key} is {api_name(key, classes)}, which has v{version}")
        if start:
            reasons.insert(0, f"the first 4 bytes are the size, {size}")
        trailing = any(node.kind == "trailing" for node in root.children)
        score += 12 + 6 * bool(start) - 20 * bool(broken) - 3 * trailing
        reasons.append(_end_in_words(data, broken[0].offset if broken else None))
        yield Guess(cls.__name__, (version,), part, score, not broken, tuple(reasons))  # type: ignore[arg-type]


def _stored_candidates(data: bytes, wanted: _Wanted) -> Iterator[Guess]:
    """Yields the keys and values of records of internal topics that the bytes could be."""
    for topic, types in COORDINATOR_TOPICS.items():
        name = types.get(int.from_bytes(data[:2], "big", signed=True), "")
        key = annotate_key(data, topic, max_nodes=MAX_GUESSED_NODES)
        if data[2:] and name and not faults(key):
            why = f"type {int.from_bytes(data[:2], 'big')} of {topic} is {name}"
            yield from _stored(key, f"{name}Key", 0, "key", topic, why, wanted)
        for name in value_types(data, topic, max_nodes=MAX_GUESSED_NODES) if data[2:] else ():
            value = annotate_value(data, topic, message=name, max_nodes=MAX_GUESSED_NODES)
            version = int.from_bytes(data[:2], "big")
            why = f"version {version} of {name} in {topic}"
            yield from _stored(value, f"{name}Value", version, "value", topic, why, wanted)
    for topic in METADATA_TOPICS:
        value = annotate_value(data, topic, max_nodes=MAX_GUESSED_NODES)
        message = next((node for node in value.children if node.kind == "message"), None)
        if message is not None and not faults(value):
            version = int(str(message.value).rpartition("v")[2])
            why = f"frame version, type and version of {message.name} in {topic}"
            yield from _stored(value, message.name, version, "value", topic, why, wanted)


def _stored(
    root: Node,
    message: str,
    version: int,
    part: Literal["key", "value"],
    topic: str,
    why: str,
    wanted: _Wanted,
) -> Iterator[Guess]:
    if wanted.includes(message, version):
        score, reasons = _plausibility(root, message)
        all_reasons = (why, *reasons, _end_in_words(root.source, None))
        # 5 points, as any message that reads to the last byte, and a point for the known type.
        score = round(score + 6 + _NOT_SENT, 2)
        yield Guess(message, (version,), part, score, True, all_reasons, topic)


def _other_candidates(data: bytes, wanted: _Wanted, classes: MessageClasses) -> Iterator[Guess]:
    sized = len(data) >= 8 and int.from_bytes(data[:4], "big", signed=True) == len(data) - 4
    for cls in _classes(classes):
        is_api = issubclass(cls, Request | Response)
        for version in cls.VALID_VERSIONS:
            if not wanted.includes(cls.__name__, version):
                continue
            candidate = _candidate(data, cls, version, "body", 0)
            if candidate is not None:
                yield candidate if is_api else candidate._replace(score=candidate.score + _NOT_SENT)
            if not issubclass(cls, Response):
                continue
            header = 5 if response_header_version(cls, version) else 4
            for part, start in (("message", 0), ("frame", 4)):
                body = start + header
                if (start and not sized) or len(data) < body:
                    continue
                if header == 5 and data[body - 1]:  # response headers have no tagged fields yet
                    continue
                candidate = _candidate(data, cls, version, part, body)  # type: ignore[arg-type]
                if candidate is not None:
                    yield _with_size(candidate, len(data)) if start else candidate


def _with_size(candidate: Guess, size: int) -> Guess:
    """Returns a copy of `candidate` with a higher score, because a frame size precedes the message.

    Kafka puts the size of the frame before each request and response.
    """
    why = f"the first 4 bytes are the size, {size - 4}"
    return candidate._replace(score=candidate.score + 8, reasons=(why, *candidate.reasons))


@lru_cache(maxsize=4)
def _classes(classes: MessageClasses) -> tuple[type[Message], ...]:
    """Returns Kafka's messages, or those of the other packages of `classes` if there are any."""
    skipped = {"RequestHeader", "ResponseHeader"}
    packages = classes.packages[:-1] or classes.packages
    return tuple(
        getattr(package, class_name(name))
        for package in packages
        for name in definitions_in(package)
        if name not in skipped and definitions_in(package)[name].valid_versions
    )


def _candidate(
    data: bytes, cls: type[Message], version: int, part: Part, start: int
) -> Guess | None:
    """Returns the guess that the body of `cls` at `version` begins at `start`.

    Returns None if the bytes do not fit exactly and fewer than 4 of them can be read.
    """
    name = cls._definition().name
    context = RecordsContext(
        _RaisingSizeLimit(MAX_GUESSED_NODES), max_decompressed_bytes=_MAX_DECOMPRESSED_BYTES
    )

    def inside(node: Node, field: LayoutField, topic: str) -> None:
        content = node.value
        assert isinstance(content, bytes)
        if field.type.kind == "records":
            node.own_size -= len(content)
            node.value = len(content)
            read_batches(node, data, node.end - len(content), node.end, context)
        elif is_kafka:
            open_embedded(name, node, field, context.budget)

    is_kafka = is_kafka_message(cls)
    root = Node(name, "", "message", start, data)
    meanings = meanings_for(cls)
    reader = MessageReader(data, len(data), name, context.budget, inside=inside, meanings=meanings)
    stopped_at: int | None = None
    exact, is_read_in_part = True, False
    try:
        end = reader.read(layout(cls._definition(), version), root)
        exact = end == len(data)
        if not exact:
            stopped_at = end
    except UnreadableError as error:
        exact = False
        stopped_at = error.fault.offset
    except _EnoughError:
        is_read_in_part = True
    if not exact and (stopped_at or 0) - start < 4:
        return None
    score, reasons = _plausibility(root, name, is_kafka=is_kafka)
    if not exact:
        assert stopped_at is not None
        score += -20 + 10 * (stopped_at - start) / max(len(data) - start, 1)
    else:
        score += 5
    reasons.append(
        f"the first {MAX_GUESSED_NODES} nodes are read, without a fault"
        if is_read_in_part
        else _end_in_words(data, stopped_at)
    )
    return Guess(cls.__name__, (version,), part, round(score, 2), exact, tuple(reasons))


def _end_in_words(data: bytes, stopped_at: int | None) -> str:
    if stopped_at is None:
        return f"all {len(data)} bytes are read"
    return f"reads {stopped_at} of {len(data)} bytes"


def _plausibility(root: Node, message: str, *, is_kafka: bool = True) -> tuple[float, list[str]]:
    """Returns the points that the values in the tree score, and the reasons for the points."""
    score = 0.0
    counts: dict[str, int] = {}
    for node in nodes(root):
        points, why = _points(node, message, is_kafka=is_kafka)
        score += points
        if why:
            counts[why] = counts.get(why, 0) + 1
    reasons = [f"{count} x {why}" if count > 1 else why for why, count in counts.items()]
    return round(score, 2), reasons


def _points(node: Node, message: str, *, is_kafka: bool) -> tuple[float, str]:
    """Returns the points for a node, positive if it supports the guess, and the reason or ""."""
    value, name = node.value, node.name
    if node.fault is not None and node.fault.layer != "message":
        return -6.0, "records that are broken"
    if node.notes and node.kind != "unknown tag":
        return -4.0, node.notes[0] if len(node.notes[0]) < 60 else "odd bytes"
    if node.kind == "unknown tag":
        return -4.0, "a tag that no definition has"
    if node.kind == "record batch":
        return 6.0, "a record batch that is whole"
    if node.kind == "message" and _is_nested(node):
        return 4.0, "a message inside"
    if isinstance(value, str) and node.kind == "string":
        if not value:
            return 0.0, ""
        if value.isprintable():
            return 1.0 + min(len(value), 16) / 2, "text that is printable"
        return -8.0, "text that is not printable"
    if isinstance(value, Uuid):
        if value == ZERO_UUID:
            return 0.5, ""
        return (3.0, "a random uuid") if value[6] >> 4 == 4 else (-2.0, "")
    if node.kind == "array":
        return (1.0, "an array whose count fits") if value else (0.0, "")
    if isinstance(value, bytes):
        return -min(len(value), 200) / 40, ""
    if isinstance(value, int) and not isinstance(value, bool):
        if is_kafka and (known := _points_of_known(message, name, value)) is not None:
            return known
        return _points_of_number(name, node.kind, value)
    return 0.0, ""


def _is_nested(node: Node) -> bool:
    """Returns True if the message is inside a field or a record of another message."""
    return node.value is not None and bool(node.path)


def _points_of_known(message: str, name: str, value: int) -> tuple[float, str] | None:
    """Returns the points for an error code, or a value that has a name, of a message of Kafka.

    Returns None for any other value.
    """
    if name.endswith("error_code"):
        known = not meaning_of(message, "", name, value).startswith("UNKNOWN_CODE")
        return (1.5, "an error code that is known") if known else (-6.0, "an unknown error code")
    names = names_of(message, name)
    if names is not None and not name.endswith(("replica_id", "epoch", "leader", "timestamp")):
        return (1.0, f"{name} has a known value") if value in names else (-5.0, f"unknown {name}")
    return None


def _points_of_number(name: str, kind: str, value: int) -> tuple[float, str]:
    if name.endswith(("timestamp", "timestamp_ms")):
        if value in _THIS_CENTURY:
            return 3.0, "a time of this century"
        return (0.0, "") if -6 <= value <= 0 else (-3.0, "a time of another century")
    if name == "port":
        return (0.5, "") if 0 < value < 65536 else (-2.0, "")
    if kind == "int32" and (value < -2 or value > 1 << 24) and not name.endswith(_LARGE):
        return -2.0, "a number that is unlikely"
    if kind == "int64" and (value < -2 or value > 1 << 44):
        return -1.5, "a number that is unlikely"
    if kind == "int16" and (value < -2 or value > 1000):
        return -1.5, "a number that is unlikely"
    return 0.2, ""


#: Ends of the names of int32 fields whose values may be large.
_LARGE: Final = ("bytes", "_ms", "operations", "session_id", "timeout", "subscription_id")


def _merged(found: list[Guess]) -> list[Guess]:
    """Merges guesses that differ only in their versions."""
    together: dict[tuple[object, ...], Guess] = {}
    for one in found:
        key = (one.message, one.part, one.score, one.exact, one.reasons)
        merged = together.get(key)
        versions = one.versions if merged is None else merged.versions + one.versions
        together[key] = one._replace(versions=versions)
    return list(together.values())
