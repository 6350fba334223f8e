"""The limits of Kafka's wire format."""

from __future__ import annotations

from typing import Final

#: The longest string in bytes of UTF-8. A string has an int16 length; Kafka applies the same limit
#: to compact strings, whose length is a varint.
MAX_STRING_BYTES: Final = 32767

#: The maximum number of elements of an array; Kafka 4.4 refuses to read an array with more.
MAX_ARRAY_ELEMENTS: Final = 1_000_000

#: The maximum number of tagged fields of a struct; Kafka 4.4 refuses to read a struct with more.
MAX_TAGGED_FIELDS: Final = 10_000

#: The highest tag. Kafka's writers use the largest int as an end marker, and so cannot write it as
#: a tag.
MAX_TAG: Final = 0x7FFFFFFE

#: The maximum size in bytes of an unsigned varint of 32 bits. Kafka refuses longer varints too.
MAX_VARINT_BYTES: Final = 5

#: The maximum length in bytes: the largest int32.
MAX_LENGTH: Final = 0x7FFFFFFF
