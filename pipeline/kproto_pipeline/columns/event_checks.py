"""Checks the values of an attribute, a whole column at once, for the fast path of CloudEvents.

A check runs once per distinct value, or as one vectorized test. A check returns True for nulls, and
for values that are certainly valid in CloudEvents' binding for Kafka. False means that
`kproto_cloudevents` must read the record. Works on Arrow binary arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kproto_cloudevents.values.media_type import parse_media_type
from kproto_cloudevents.versions.version_tables import V1_0

from .arrow_numpy import boolean_values, integer_values, lengths, null_mask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .record_columns import Bools

__all__ = ["CHECKS", "check_plain_text"]


def check_plain_text(array: pa.Array) -> Bools:
    """Returns a mask: true for nulls, and for non-empty values of only printable ASCII."""
    data = array.buffers()[2]
    filled: Bools = lengths(array, null=1) > 0
    if data is None or data.size == 0:
        return filled
    text = np.frombuffer(data, dtype=np.uint8)
    if text.min() >= 0x20 and text.max() <= 0x7E:
        return filled
    return _matches(array, r"\A[ -~]+\z")


def _matches(array: pa.Array, pattern: str) -> Bools:
    return boolean_values(pc.match_substring_regex(array, pattern), null=True)


# RFC 3339, except for the times that the slow path checks: leap seconds, more than six digits of a
# fraction, years before 1000 and after 8999, and February 29.
_USUAL_TIME: Final = (
    r"\A[1-8][0-9]{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
    r"(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])\z"
)


def _check_time(array: pa.Array) -> Bools:
    return _matches(array, _USUAL_TIME)


def _check_each_value(is_right: Callable[[str], bool]) -> Callable[[pa.Array], Bools]:
    """Returns a check that calls `is_right` once per distinct value of an array.

    The sources and the types of events have few distinct values.
    """

    def check(array: pa.Array) -> Bools:
        encoded = array.dictionary_encode()
        right = [_is_text(raw, is_right) for raw in encoded.dictionary.to_pylist()]
        codes, missing = integer_values(encoded.indices), null_mask(encoded.indices)
        if missing is not None:
            codes = np.where(missing, len(right), codes)
        by_row: Bools = np.array([*right, True], dtype=np.bool_)[codes]
        return by_row

    return check


def _is_text(raw: bytes, is_right: Callable[[str], bool]) -> bool:
    try:
        return is_right(raw.decode())
    except UnicodeDecodeError:
        return False


def _obeys(attribute: str) -> Callable[[pa.Array], Bools]:
    spec = V1_0.attributes[attribute]
    return _check_each_value(lambda text: spec.fault(text) is None)


def _is_binary_mode(content_type: str) -> bool:
    """Returns True if a media type is valid and means binary mode."""
    media_type = parse_media_type(content_type)
    return (
        media_type is not None
        and not media_type.is_event_format
        and not media_type.is_batch_format
        and V1_0.attributes["datacontenttype"].fault(content_type) is None
    )


CHECKS: Final[Mapping[str, Callable[[pa.Array], Bools]]] = {
    "specversion": _check_each_value(lambda text: text == V1_0.label),
    "source": _obeys("source"),
    "type": _obeys("type"),
    "dataschema": _obeys("dataschema"),
    "datacontenttype": _check_each_value(_is_binary_mode),
    "time": _check_time,
}
