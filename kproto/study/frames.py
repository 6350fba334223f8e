"""The functions that decode frames, messages and records to trees of `Node`s.

They detect the parts of a frame (size, header, body) and its message, and keep the bytes after a
fault as a node. `message_reader` reads a message, `record_batches` reads record batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from ..messages.base import Message, Request, Response
from ..protocol.headers import request_header_version, response_header_version
from ..protocol.message_classes import (
    KAFKA_MESSAGES,
    MessageClasses,
    definitions_in,
    is_kafka_message,
)
from ..records.codecs.compression import MAX_DECOMPRESSED_BYTES
from ..schema.definitions import union
from ..schema.layout import LayoutField, layout
from ..schema.message_lookup import find_messages
from ..schema.naming import class_name
from ..schema.unknown_names import UnknownNameError
from ..wire.errors import ConfigurationError
from .embedded_messages import open_embedded
from .meanings import KAFKA_MEANINGS, Meanings, header_meanings, meanings_for
from .message_reader import MessageReader, UnreadableError
from .node import DEFAULT_MAX_NODES, Fault, Node, TreeSizeLimit, nodes
from .node_builder import NodeBuilder
from .record_batches import read_batches
from .records_context import RecordsContext
from .secret_fields import has_secrets, secret_attributes_of

__all__ = [
    "PARTS",
    "Part",
    "annotate",
    "annotate_frame",
    "annotate_frames",
    "annotate_records",
    "detect_part",
    "find_message_class",
]

#: The parts in the input: size, header and body (`frame`), header and body (`message`), or only the
#: body.
Part: TypeAlias = Literal["frame", "message", "body"]
PARTS: Final[tuple[Part, ...]] = ("frame", "message", "body")

_SIZE_BYTES: Final = 4

#: Maximum number of digits of an api key, which is an int16.
_MAX_KEY_DIGITS: Final = 5
_UNSUPPORTED_VERSION: Final = (35).to_bytes(2, "big")

#: The kinds of nodes with undecoded bytes, which are hidden if they may contain secrets.
_RAW_KINDS: Final = frozenset({"unread", "trailing", "cut batch", "records of a batch"})


def annotate(
    data: bytes,
    message: type[Message] | str | int,
    version: int,
    *,
    response: bool = False,
    trailing: bool = False,
    records_of: str = "",
    max_nodes: int | None = DEFAULT_MAX_NODES,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    classes: MessageClasses = KAFKA_MESSAGES,
) -> Node:
    """Returns the body of a message, without header, as a tree.

    `message` is a class, a name or an api key of `classes` (see `find_message_class`). Invalid
    bytes raise no error: the tree has the nodes up to the fault, then a node `unread`. The first
    `Fault` with `layer` "message" has the reason, path and offset of the DecodeError that `decode`
    would raise. With `trailing`, bytes after the message are not a fault.

    Record batches in the message are decoded too; `records_of` is their topic if the message does
    not name it. The tree has at most `max_nodes` nodes (None for no limit). All batches together
    may decompress to at most `max_decompressed_bytes`. Raises ConfigurationError for an unknown
    message or version.
    """
    cls = find_message_class(message, response=response, classes=classes)
    check_version(cls, version)
    context = _context(max_nodes, records_of, max_decompressed_bytes)
    root = Node(cls.__name__, "", "message", 0, data, value=f"{cls.__name__} v{version}")
    _body(root, data, cls, version, context, records_of, trailing=trailing)
    return root


def annotate_frame(
    data: bytes,
    message: type[Message] | str | int | None = None,
    version: int | None = None,
    *,
    response: bool = False,
    part: Part | None = None,
    records_of: str = "",
    max_nodes: int | None = DEFAULT_MAX_NODES,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    classes: MessageClasses = KAFKA_MESSAGES,
) -> Node:
    """Returns a request or response, with or without size and header, as a tree.

    The children of the root are `size`, `header` and the message, if `part` includes them. If
    `part` is `body`, the root is the message. `part` is detected by default (see `detect_part`).
    Bytes after the body are a node `trailing`, not a fault, because brokers ignore them; but if
    `part` is `body`, they are a fault. The other arguments are those of `annotate`.

    The header of a request has its api key and version. `classes` has the request of each api key,
    by default Kafka's. For a response or a body, `message` and `version` are required; raises
    ConfigurationError without them.
    """
    cls = None
    if message is not None:
        cls = find_message_class(message, response=response, classes=classes)
    if cls is not None and version is not None:
        check_version(cls, version)
    is_response = response or (cls is not None and issubclass(cls, Response))
    if part is None:
        part = detect_part(data, cls, version, response=is_response, classes=classes)
    if part == "body" or (cls is not None and not issubclass(cls, Request | Response)):
        cls, version = _known(cls, version, is_response)
        return annotate(
            data,
            cls,
            version,
            records_of=records_of,
            max_nodes=max_nodes,
            max_decompressed_bytes=max_decompressed_bytes,
        )
    if is_response:
        cls, version = _known(cls, version, is_response)
    context = _context(max_nodes, records_of, max_decompressed_bytes)
    root = Node("frame", "", part, 0, data, size=len(data))
    limit = len(data)
    pos = 0
    builder = NodeBuilder(data, limit, context.budget, layer="message")
    try:
        if part == "frame":
            size, announced, pos = builder.number(root, "size", "int32", 0)
            if announced != limit - pos:
                reason = f"the size is {announced}, but {limit - pos} bytes follow it"
                builder.fault(size, reason, 0, f"{limit - pos}")
            limit = max(pos, min(limit, pos + announced))
        if is_response:
            assert cls is not None
            assert version is not None
            pos = _response_header(root, data, pos, limit, cls, version, context)
        else:
            cls, version, pos = _request_header(
                root, data, pos, limit, cls, version, context, classes
            )
    except UnreadableError as error:
        builder.rest(root, max(error.fault.offset, pos), len(data))
        _hide_rest(root, cls)
        return root
    if cls is None or version is None or version not in cls.VALID_VERSIONS:
        _unknown(root, builder, pos, cls, version)
        return root
    if cls.__name__ == "ApiVersionsResponse" and version > 0:
        version = _version_of_response(data, pos, version, root)
    root.value = f"{cls.__name__} v{version}"
    body = builder.node(root, cls.__name__, "message", pos)
    body.path = ""
    body.value = root.value
    _body(body, data, cls, version, context, records_of, trailing=True, limit=limit)
    builder.rest(root, body.end, len(data), "trailing")
    _hide_rest(root, cls)
    return root


def annotate_frames(
    data: bytes,
    *,
    records_of: str = "",
    max_nodes: int | None = DEFAULT_MAX_NODES,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
    classes: MessageClasses = KAFKA_MESSAGES,
) -> Iterator[Node]:
    """Yields the tree of each request in a sequence of frames, as `annotate_frame` returns it.

    Each frame begins with its size. Offsets count from the start of the frame. The last frame may
    be cut. If the bytes are not a sequence of frames, yields a single tree of all bytes.
    """
    bounds = _frame_bounds(data, classes)
    part: Part | None = "frame"
    if len(bounds) < 3:
        bounds, part = [0, len(data)], None
    for start, end in pairwise(bounds):
        yield annotate_frame(
            data[start:end],
            part=part,
            records_of=records_of,
            max_nodes=max_nodes,
            max_decompressed_bytes=max_decompressed_bytes,
            classes=classes,
        )


def annotate_records(
    data: bytes,
    *,
    records_of: str = "",
    max_nodes: int | None = DEFAULT_MAX_NODES,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Node:
    """Returns record batches and message sets as a tree, such as those of a log segment."""
    context = _context(max_nodes, records_of, max_decompressed_bytes)
    root = Node("records", "records", "records", 0, data, size=len(data), value=len(data))
    _batches(root, data, context)
    return root


def find_message_class(
    message: type[Message] | str | int,
    *,
    response: bool = False,
    classes: MessageClasses = KAFKA_MESSAGES,
) -> type[Message]:
    """Returns the class of a message, given as a class, name or api key; ignores case.

    By default, an api key, or a name without `Request` or `Response`, selects the request. With
    `response`, an api key and any name of the API select the response. The packages of `classes`
    are searched in turn, Kafka's last. Raises ConfigurationError, which suggests similar names of
    the first package, for an unknown name.
    """
    if isinstance(message, type):
        return message
    text = str(message)
    if text.isascii() and text.isdigit() and len(text) <= _MAX_KEY_DIGITS:
        of_key = classes.response if response else classes.request
        known_class = of_key(int(text))
        if known_class is not None:
            return known_class
    unknown: ConfigurationError | None = None
    for package in classes.packages:
        known = definitions_in(package)
        try:
            found = find_messages(text, known)
            if response and len(found) == 1 and found[0].type == "request":
                found = find_messages(found[0].name.removesuffix("Request"), known)
        except UnknownNameError as error:
            unknown = unknown or ConfigurationError(str(error))
            continue
        kind = "response" if response else "request"
        spec = next((each for each in found if each.type == kind), found[0])
        if not spec.valid_versions:
            raise ConfigurationError(f"{spec.name} has no valid version")
        made: type[Message] = getattr(package, class_name(spec.name))
        return made
    assert unknown is not None
    raise unknown from None


def check_version(cls: type[Message], version: int) -> None:
    """Raises ConfigurationError if the message does not have the version."""
    known = cls.VALID_VERSIONS
    if version not in known:
        text = f"{known.start} to {known.stop - 1}"
        raise ConfigurationError(f"{cls.__name__} has the versions {text}, not {version}")


def detect_part(
    data: bytes,
    cls: type[Message] | None,
    version: int | None,
    *,
    response: bool = False,
    classes: MessageClasses = KAFKA_MESSAGES,
) -> Part:
    """Returns the part that the bytes are most likely: `frame`, `message` or `body`.

    Reads the bytes as each possible part, and returns the part that fits best (see `_readable`). If
    `cls` or `version` is None, the bytes must be a request with a header.
    """
    size = int.from_bytes(data[:_SIZE_BYTES], "big", signed=True)
    is_sized = len(data) >= 8 and size == len(data) - _SIZE_BYTES
    if cls is None or version is None:
        return _part_of_any_request(data, is_sized, classes)
    if not issubclass(cls, Request | Response):
        return "body"
    fitting: list[Part] = []
    for part, start in (("frame", _SIZE_BYTES), ("message", 0)):
        if part == "frame" and not is_sized:
            continue
        if response or _names_request(data, start, cls, version):
            fitting.append(part)  # type: ignore[arg-type]
    fitting.append("body")
    reached = {part: _readable(data, part, cls, version, response) for part in fitting}
    return max(fitting, key=lambda part: reached[part])


def _part_of_any_request(data: bytes, is_sized: bool, classes: MessageClasses) -> Part:
    """Returns `frame` if the bytes of a request begin with a size field, otherwise `message`.

    `is_sized` is True if the first four bytes are the size of the bytes after them. If it is False,
    the position of the request header decides, because a frame may be truncated.
    """
    if is_sized:
        return "frame"
    fitting: dict[Part, tuple[int, int]] = {}
    for part, start in (("frame", _SIZE_BYTES), ("message", 0)):
        cls = classes.request(int.from_bytes(data[start : start + 2], "big", signed=True))
        version = int.from_bytes(data[start + 2 : start + 4], "big", signed=True)
        if len(data) >= start + 8 and cls is not None and version in cls.VALID_VERSIONS:
            fitting[part] = _readable(data, part, cls, version, False)  # type: ignore[index, arg-type]
    if fitting:
        return max(fitting, key=lambda part: fitting[part])
    return "frame" if len(data) >= _SIZE_BYTES + 8 else "message"


def _names_request(data: bytes, start: int, cls: type[Message], version: int) -> bool:
    """Returns True if the api key and version at `start` are those of `cls` and `version`."""
    expected = (cls.API_KEY or 0).to_bytes(2, "big", signed=True) + version.to_bytes(2, "big")
    return data[start : start + 4] == expected


def _readable(
    data: bytes, part: Part, cls: type[Message], version: int, response: bool
) -> tuple[int, int]:
    """Returns how well the bytes read as `part`, and how many bytes were read.

    The first item is 2 if all bytes were read, 1 if bytes follow the message, 0 for a fault.
    """
    context = RecordsContext(TreeSizeLimit(0))
    root = Node("", "", "message", 0, data)
    pos = _SIZE_BYTES if part == "frame" else 0
    try:
        if part != "body":
            if response:
                pos = _response_header(root, data, pos, len(data), cls, version, context)
            else:
                pos = _header_of(root, data, pos, len(data), cls, version, context)
        reader = MessageReader(data, len(data), cls.__name__, context.budget)
        body = Node("", "", "message", pos, data)
        end = reader.read(layout(cls._definition(), version), body)
    except UnreadableError as error:
        return 0, error.fault.offset
    return (2 if end == len(data) else 1), end


def _known(
    cls: type[Message] | None, version: int | None, response: bool
) -> tuple[type[Message], int]:
    if cls is None or version is None:
        what = "a response does" if response else "a body does"
        raise ConfigurationError(
            f"{what} not name its message: pass the message and its version, or guess"
        )
    return cls, version


def _frame_bounds(data: bytes, classes: MessageClasses) -> list[int]:
    """Returns the positions at which the frames in `data` begin, and the end of `data`.

    The last frame may be cut, if it names a known request, or if several whole frames precede it.
    Returns [0] if `data` is not a sequence of frames.
    """
    bounds = [0]
    pos = 0
    while pos < len(data):
        size = int.from_bytes(data[pos : pos + _SIZE_BYTES], "big", signed=True)
        end = pos + _SIZE_BYTES + size
        if size < 8 or end > len(data):
            key = int.from_bytes(data[pos + _SIZE_BYTES : pos + _SIZE_BYTES + 2], "big")
            is_request = len(data) - pos >= 2 * _SIZE_BYTES and classes.request(key) is not None
            if len(bounds) > 2 or (len(bounds) == 2 and size >= 8 and is_request):
                return [*bounds, len(data)]
            return [0]
        pos = end
        bounds.append(pos)
    return bounds


def _context(max_nodes: int | None, records_of: str, max_decompressed_bytes: int) -> RecordsContext:
    return RecordsContext(
        TreeSizeLimit(max_nodes), topic=records_of, max_decompressed_bytes=max_decompressed_bytes
    )


def _body(
    root: Node,
    data: bytes,
    cls: type[Message],
    version: int,
    context: RecordsContext,
    records_of: str,
    *,
    trailing: bool,
    limit: int | None = None,
) -> None:
    """Adds the fields of the message that begins at `root`, and the bytes after them, to `root`."""
    name = cls._definition().name
    shape = layout(cls._definition(), version)
    context.whole = issubclass(cls, Request)

    def inside(node: Node, field: LayoutField, topic: str) -> None:
        if field.type.kind == "records":
            content = node.value
            assert isinstance(content, bytes)
            context.topic = records_of or topic
            node.own_size -= len(content)
            node.value = len(content)
            _batches(node, data, context, node.end - len(content))
        elif is_kafka_message(cls):
            open_embedded(name, node, field, context.budget)

    end_of_data = len(data) if limit is None else limit
    reader = MessageReader(
        data,
        end_of_data,
        name,
        context.budget,
        secrets=lambda struct: secret_attributes_of(cls, struct),
        inside=inside,
        meanings=meanings_for(cls),
    )
    builder = NodeBuilder(data, end_of_data, context.budget, layer="message")
    rest_kind = "trailing"
    try:
        end = reader.read(shape, root)
    except UnreadableError as error:
        end = max(error.fault.offset, reader.reached)
        rest_kind = "unread"
    else:
        if end < end_of_data and not trailing:
            reason = (
                f"{end_of_data - end} bytes follow the end of the message; "
                "decode_from reads a message with bytes after it"
            )
            root.fault = Fault(reason, "", end, "the end of the message")
    if rest_kind == "unread" or limit is None:
        builder.rest(root, end, end_of_data, rest_kind)
        root.size = end_of_data - root.offset
    if has_secrets(cls):
        _hide(root, direct=True)


def _batches(node: Node, data: bytes, context: RecordsContext, start: int = 0) -> None:
    read_batches(node, data, start, node.end, context)
    if context.has_secrets:
        _hide(node)


def _hide(node: Node, *, direct: bool = False) -> None:
    """Marks the nodes with undecoded bytes as secret: `node` and all nodes inside it.

    If `direct` is True, considers only the children of `node`.
    """
    for found in node.children if direct else nodes(node):
        if found.kind in _RAW_KINDS:
            found.secret = True


def _hide_rest(root: Node, cls: type[Message] | None) -> None:
    """Marks the bytes after a message as secret, if the message has secrets or is unknown."""
    if cls is None or has_secrets(cls):
        _hide(root, direct=True)
    if cls is None:  # the frame may be a raw SASL token, whose bytes only look like a header
        for node in nodes(root):
            if node.name in ("correlation_id", "client_id"):
                node.secret = True


def _request_header(
    root: Node,
    data: bytes,
    pos: int,
    limit: int,
    cls: type[Message] | None,
    version: int | None,
    context: RecordsContext,
    classes: MessageClasses,
) -> tuple[type[Message] | None, int | None, int]:
    """Adds the request header to `root`; returns message class, version and start of the body.

    The class is None for an unknown api key. The header takes precedence over `cls` and `version`.
    """
    if limit - pos >= 4:
        key = int.from_bytes(data[pos : pos + 2], "big", signed=True)
        expected = int.from_bytes(data[pos + 2 : pos + 4], "big", signed=True)
        named = classes.request(key)
        if named is not None and (cls is None or (cls.API_KEY, version) != (key, expected)):
            cls, version = named, expected
        elif named is None:
            cls = cls if cls is not None and key == cls.API_KEY else None
            version = expected
    end = _header_of(root, data, pos, limit, cls, version, context, classes)
    return cls, version, end


def _header_of(
    root: Node,
    data: bytes,
    pos: int,
    limit: int,
    cls: type[Message] | None,
    version: int | None,
    context: RecordsContext,
    classes: MessageClasses = KAFKA_MESSAGES,
) -> int:
    """Adds the header of a request of `cls` to `root`; returns the start of the body."""
    header_version = 1 if cls is None or version is None else request_header_version(cls, version)
    meanings = header_meanings(classes)
    return _header(root, data, pos, limit, "RequestHeader", header_version, context, meanings)


def _response_header(
    root: Node,
    data: bytes,
    pos: int,
    limit: int,
    cls: type[Message],
    version: int,
    context: RecordsContext,
) -> int:
    header_version = response_header_version(cls, version)
    return _header(root, data, pos, limit, "ResponseHeader", header_version, context)


def _header(
    root: Node,
    data: bytes,
    pos: int,
    limit: int,
    name: str,
    version: int,
    context: RecordsContext,
    meanings: Meanings = KAFKA_MEANINGS,
) -> int:
    builder = NodeBuilder(data, limit, context.budget, layer="message")
    node = builder.node(root, "header", "header", pos)
    node.path = ""
    node.value = f"{name} v{version}"
    reader = MessageReader(data, limit, name, context.budget, meanings=meanings)
    return reader.read(layout(union()[name], version), node)


def _unknown(
    root: Node, builder: NodeBuilder, pos: int, cls: type[Message] | None, version: int | None
) -> None:
    """Adds a fault to the header field that has an unknown api key (`cls` is None) or version."""
    name = "request_api_key" if cls is None else "request_api_version"
    wrong = next((node for node in nodes(root) if node.name == name), root)
    if cls is None:
        reason, expected = f"no definition has the api key {wrong.value}", "a known api key"
    else:
        known = cls.VALID_VERSIONS
        expected = f"{known.start} to {known.stop - 1}"
        api = cls.__name__.removesuffix("Request")
        reason = f"{api} has the versions {expected}, not {version}"
    builder.fault(wrong, reason, wrong.offset, expected)
    builder.rest(root, pos, len(root.source))
    _hide_rest(root, cls)


def _version_of_response(data: bytes, pos: int, version: int, root: Node) -> int:
    """Returns 0 for an ApiVersions response with error 35 (UNSUPPORTED_VERSION), else `version`.

    Such a response has the layout of v0, whatever version was requested (KIP-511).
    """
    if data[pos : pos + 2] != _UNSUPPORTED_VERSION:
        return version
    root.notes.append(f"requested in v{version}; error 35 has the layout of v0")
    return 0
