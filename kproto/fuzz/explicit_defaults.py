"""Adds tagged fields with their defaults to valid encodings: bytes that every reader accepts.

A reader must return the same message as without these fields, and a writer leaves them out. So
these cases find a reader that takes a tagged field for absent only if its bytes are absent.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

from ..schema.layout import LayoutField
from ..wire.writing import uvarint
from .default_values import encoded_default
from .lenient_reader import TagSection

__all__ = ["absent_tags", "with_explicit_defaults"]


def absent_tags(section: TagSection) -> list[LayoutField]:
    """Returns the tagged fields of the version that the section lacks, ordered by tag."""
    present = {tag for tag, _ in section.entries}
    return [field for field in section.shape.tagged if field.tag not in present]


def with_explicit_defaults(
    data: bytes, sections: Sequence[TagSection], source: random.Random
) -> bytes | None:
    """Returns `data` with one or more tagged fields that have their defaults.

    `sections` are those of `data`; all added fields are in one of them. Returns None if no section
    lacks a tagged field of the version.
    """
    open_sections = [(each, absent) for each in sections if (absent := absent_tags(each))]
    if not open_sections:
        return None
    section, absent = source.choice(open_sections)
    chosen = source.sample(absent, source.randint(1, len(absent)))
    begins = [*section.entries, (1 << 31, section.stop)]
    fields = [(tag, data[begin:after]) for (tag, begin), (_, after) in pairwise(begins)]
    for field in chosen:
        value = encoded_default(field)
        tag = field.tag or 0
        fields.append((tag, uvarint(tag) + uvarint(len(value)) + value))
    content = b"".join(part for _, part in sorted(fields, key=lambda each: each[0]))
    return data[: section.begin] + uvarint(len(fields)) + content + data[section.stop :]
