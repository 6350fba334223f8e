"""The limits of the wire format, each with where it comes from."""

from __future__ import annotations

from typing import Final

#: Longest string in bytes of UTF-8; the plain form has an int16 length, and Kafka's readers and
#: writers keep to it in the compact form too.
MAX_STRING_BYTES: Final = 32767

#: Most elements that one array may announce. Kafka 4.4's readers refuse more.
MAX_ARRAY_ELEMENTS: Final = 1_000_000

#: Most tagged fields that one struct may announce. Kafka 4.4's readers refuse more.
MAX_TAGGED_FIELDS: Final = 10_000

#: The highest number of a tagged field. Kafka's writers take the largest int for the end of their
#: known tags, and so can write neither it nor what is above it.
MAX_TAG: Final = 0x7FFFFFFE

#: Longest unsigned varint, in bytes: 32 bits, seven a byte. Longer forms are refused, as in Kafka.
MAX_VARINT_BYTES: Final = 5

#: Largest length that a compact form can carry and an int32 can hold.
MAX_LENGTH: Final = 0x7FFFFFFF
