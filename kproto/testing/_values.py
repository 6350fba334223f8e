"""Hypothesis strategies for the primitive types of message definitions, and for tagged fields.

`strategies` combines them into messages. Import them through `strategies`, which raises a clear
error if hypothesis is not installed.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import hypothesis.strategies as st
from hypothesis.strategies import SearchStrategy

from ..records import encode_batch
from ..wire.limits import MAX_STRING_BYTES, MAX_TAG
from ..wire.tags import RawTaggedField
from ..wire.uuid import ZERO_UUID, Uuid
from .instances import INTEGER_BOUNDS

__all__ = ["Values", "primitive", "record_batches", "unknown_tags"]

Values: TypeAlias = SearchStrategy[Any]

#: Lengths around which the varint of a compact string or bytes (length + 1) gets a byte longer.
EDGE_LENGTHS: Final = (126, 127, 128, 16382, 16383, 16384)


def _long_text(length: int) -> str:
    return "x" * length


def _long_bytes(length: int) -> bytes:
    return b"\xff" * length


# Samples lengths and builds the values from them, because hypothesis prints all sampled values.
_EDGE_TEXTS: Final = st.one_of(
    st.sampled_from(("\0", "é" * 63)),
    st.sampled_from((*EDGE_LENGTHS, MAX_STRING_BYTES)).map(_long_text),
)
_EDGE_BYTES: Final = st.one_of(st.just(b"\0"), st.sampled_from(EDGE_LENGTHS).map(_long_bytes))

#: Short values are three times as likely as long ones, so that messages with many fields stay
#: small.
_BYTES: Final = st.one_of(
    st.binary(max_size=20),
    st.binary(max_size=20),
    st.binary(max_size=20),
    _EDGE_BYTES,
)
_TEXTS: Final = st.one_of(
    st.text(max_size=20), st.text(max_size=20), st.text(max_size=20), _EDGE_TEXTS
)

_HEADERS: Final = st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8))

#: Key, value, headers and timestamp (ms), as `encode_batch` accepts them.
_RECORDS: Final = st.tuples(
    st.none() | st.binary(max_size=8),
    st.none() | st.binary(max_size=20),
    st.lists(_HEADERS, max_size=2),
    st.integers(0, 2**41),
)


def record_batches() -> SearchStrategy[bytes]:
    """Draws an encoded record batch (magic 2) of one to three records."""
    return st.builds(
        encode_batch,
        st.lists(_RECORDS, min_size=1, max_size=3),
        base_offset=st.integers(0, 2**62),
    )


def _integers(low: int, high: int) -> SearchStrategy[int]:
    return st.one_of(st.integers(low, high), st.sampled_from((low, high)))


_PRIMITIVES: Final[dict[str, Values]] = {
    **{kind: _integers(*bounds) for kind, bounds in INTEGER_BOUNDS.items()},
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "string": _TEXTS,
    "bytes": _BYTES,
    "records": st.one_of(_BYTES, record_batches()),
    "uuid": st.one_of(
        st.sampled_from((ZERO_UUID, Uuid(b"\xff" * 16))),
        st.binary(min_size=16, max_size=16).map(Uuid),
    ),
}


def primitive(kind: str, default: object = None) -> Values:
    """Draws values of a primitive type, not null.

    They shrink to `default`, if it is not None.
    """
    values = _PRIMITIVES[kind]
    if default is None:
        return values
    if kind == "bool":
        return st.sampled_from((default, not default))
    if kind == "uuid":
        assert isinstance(default, bytes)
        default = Uuid(default)
    return st.one_of(st.just(default), values)


def unknown_tags(lowest: int) -> SearchStrategy[list[RawTaggedField]]:
    """Draws up to two tagged fields in ascending order, with tags from `lowest` on."""
    tags = st.one_of(st.integers(lowest, MAX_TAG), st.sampled_from((lowest, MAX_TAG)))
    drawn = st.dictionaries(tags, _BYTES, max_size=2)
    return drawn.map(
        lambda data_by_tag: [RawTaggedField(tag, data_by_tag[tag]) for tag in sorted(data_by_tag)]
    )
