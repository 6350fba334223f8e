"""The limits of the wire format, each with its source."""

from __future__ import annotations

from typing import Final

#: The longest string in bytes of UTF-8. The plain form has an int16 length, and Kafka's readers and
#: writers apply the same limit to the compact form.
MAX_STRING_BYTES: Final = 32767

#: The most elements that one array may announce. Kafka 4.4's readers refuse more.
MAX_ARRAY_ELEMENTS: Final = 1_000_000

#: The most tagged fields that one struct may announce. Kafka 4.4's readers refuse more.
MAX_TAGGED_FIELDS: Final = 10_000

#: The highest number of a tagged field. Kafka's writers use the largest int as the end marker of
#: their known tags, and so cannot write that number or a higher one.
MAX_TAG: Final = 0x7FFFFFFE

#: The longest unsigned varint in bytes: 32 bits, seven a byte. Longer forms are refused, as in
#: Kafka.
MAX_VARINT_BYTES: Final = 5

#: The largest length that fits both a compact form and an int32.
MAX_LENGTH: Final = 0x7FFFFFFF
