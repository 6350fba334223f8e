"""The type system of CloudEvents: the types, their rules and canonical strings.

The Python type of a native value determines its CloudEvents type:

    Boolean  bool     Integer  int (32 bit)     Binary  bytes     String  str
    URI  Uri          URI-reference  UriReference          Timestamp  Timestamp
    Map  JsonMap (versions before 1.0)

The last four are subclasses of str: they compare and hash as strings, and keep the text as it was
written. A Timestamp also compares with a datetime. This module imports no attributes, versions or
bindings.
"""

from __future__ import annotations

import binascii
import operator
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple

from ..errors import CloudEventError, quoted
from .json_text import (
    COMPARING_DECODER,
    JSON_DECODER,
    UNIQUE_NAMES_DECODER,
    dump_json,
    parse_json,
)

__all__ = [
    "BINARY",
    "BOOLEAN",
    "INTEGER",
    "INTEGER_MAX",
    "INTEGER_MIN",
    "MAP",
    "STRING",
    "TIMESTAMP",
    "TYPES",
    "URI",
    "URI_REFERENCE",
    "AttributeInput",
    "AttributeType",
    "AttributeValue",
    "JsonMap",
    "Timestamp",
    "Uri",
    "UriReference",
    "base64_bytes",
    "canonical",
    "exact_time",
    "json_of",
    "native",
    "same_map",
    "same_time",
    "type_of",
    "utf8",
]

#: The bounds of Integer: signed, 32 bit.
INTEGER_MIN: Final = -(2**31)
INTEGER_MAX: Final = 2**31 - 1

#: The value of an attribute in an event.
AttributeValue = str | bool | int | bytes
#: A value for setting an attribute; None means unset, a datetime becomes a Timestamp.
AttributeInput = str | bool | int | bytes | datetime | None


class Uri(str):
    """An attribute value of type URI: absolute, without a fragment (RFC 3986, 4.3)."""

    __slots__ = ()


class UriReference(str):
    """An attribute value of type URI-reference (RFC 3986, 4.1)."""

    __slots__ = ()


class Timestamp(str):
    """An attribute value of type Timestamp: the RFC 3339 text as it was written.

    Compares with an aware datetime as an exact instant. Never equals a naive datetime, and an order
    comparison with a naive datetime raises TypeError. Compares with a str as text, and is therefore
    hashed as text.
    """

    __slots__ = ()

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, datetime):
            return other.utcoffset() is not None and exact_time(self) == _exact_time_of(other)
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other if isinstance(other, datetime) else str.__ne__(self, other)

    def __lt__(self, other: object) -> bool:
        return self._ordered(other, operator.lt)

    def __le__(self, other: object) -> bool:
        return self._ordered(other, operator.le)

    def __gt__(self, other: object) -> bool:
        return self._ordered(other, operator.gt)

    def __ge__(self, other: object) -> bool:
        return self._ordered(other, operator.ge)

    def _ordered(self, other: object, holds: Callable[[Any, Any], bool]) -> bool:
        """Returns what the comparison `holds`, such as `operator.lt`, returns for self and `other`.

        If `other` is a datetime, compares instants; otherwise compares the text with `other`.
        Raises TypeError if `other` is a naive datetime.
        """
        if not isinstance(other, datetime):
            return holds(str(self), other)
        if other.utcoffset() is None:
            raise TypeError("a Timestamp cannot be ordered with a datetime without a UTC offset")
        exact = exact_time(self)
        if exact is None:
            raise _no_timestamp_error(self)
        return holds(exact, _exact_time_of(other))

    @classmethod
    def from_datetime(cls, value: datetime) -> Timestamp:
        """Returns the canonical text of an aware datetime; UTC is written `Z`.

        If the UTC offset has seconds, which RFC 3339 cannot express, converts the time to UTC.
        Raises CloudEventError for a naive datetime, and if the conversion leaves the years 1 to
        9999.
        """
        offset = value.utcoffset()
        if offset is None:
            raise CloudEventError(
                f"the datetime {value.isoformat()} has no UTC offset: set its tzinfo",
                clauses=('CloudEvents 1.0 "Timestamp"',),
            )
        if offset % timedelta(minutes=1):
            try:
                value = value.astimezone(UTC)
            except OverflowError:
                raise CloudEventError(
                    f"the datetime {value.isoformat()} cannot be written: its offset has seconds, "
                    "and in UTC it is beyond the years 1 to 9999",
                    clauses=('CloudEvents 1.0 "Timestamp"',),
                ) from None
        text = value.isoformat()
        return cls(text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text)

    @property
    def datetime(self) -> datetime:
        """Returns the time as an aware datetime with the UTC offset as written.

        Cuts digits beyond microseconds. A leap second (`:60`) becomes the first instant of the next
        minute, as in POSIX time. Raises CloudEventError for text that is not RFC 3339, and for
        times that a datetime cannot represent (the year 0000, a leap second at the end of 9999).
        """
        match = _TIMESTAMP.fullmatch(self)
        if match is None or _timestamp_fault(self) is not None:
            raise _no_timestamp_error(self)
        try:
            return _datetime_of(match)
        except (ValueError, OverflowError):
            raise CloudEventError(
                f"{quoted(self)} is a valid time that a datetime cannot hold: read the text",
                clauses=('CloudEvents 1.0 "Timestamp"',),
            ) from None


class JsonMap(str):
    """The text of a JSON object, as an attribute value of type Map. CloudEvents 1.0 has no Maps.

    Two JsonMaps are equal only if their texts are equal, including the order of the names. Events
    compare their Maps as JSON values.
    """

    __slots__ = ()

    @classmethod
    def of(cls, entries: Mapping[str, Any]) -> JsonMap:
        """Returns a mapping as a JsonMap. Raises CloudEventError if JSON cannot represent it."""
        return cls(dump_json(dict(entries)))

    def value(self) -> dict[str, Any]:
        """Returns the entries as a new dict. Raises CloudEventError if the text is no object."""
        entries = parse_json(self)
        if isinstance(entries, dict):
            return entries
        raise CloudEventError(
            f"{quoted(self)} is no JSON object", clauses=('CloudEvents 0.3 "Type System"',)
        )


class AttributeType(NamedTuple):
    """A type of the type system, with the functions that check and convert its texts.

    `fault(text)` returns the fault of a text, or None if the text is valid. `parse(text)` returns
    the native value of a valid text. `quick(text)` is truthy only for a valid text; if the result
    is falsy, `fault` must decide. `quick` is a C function, because it runs for every attribute of
    every event.
    """

    name: str
    fault: Callable[[str], str | None]
    parse: Callable[[str], AttributeValue]
    quick: Callable[[str], object]


def canonical(value: AttributeInput) -> str:
    """Returns the canonical string of a native value (CloudEvents 1.0 "Type System").

    Raises CloudEventError for a value of no CloudEvents type, for an Integer beyond 32 bits, and
    for a datetime that cannot become a Timestamp, such as one without a UTC offset.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if INTEGER_MIN <= value <= INTEGER_MAX:
            return int.__repr__(value)  # str() of an enum member would be its name
        raise CloudEventError(
            "the integer is beyond 32 bits: send it as a String",
            clauses=('CloudEvents 1.0 "Integer"',),
        )
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode("ascii")
    if isinstance(value, datetime):
        return Timestamp.from_datetime(value)
    raise CloudEventError(
        f"{type(value).__name__} is no attribute value: use str, bool, int, bytes or datetime",
        clauses=('CloudEvents 1.0 "Type System"',),
    )


def json_of(value: AttributeValue) -> str:
    """Returns the JSON of an attribute's value: a string, except for a Boolean, Integer or Map.

    Raises CloudEventError as `canonical` does.
    """
    text = canonical(value)
    return text if isinstance(value, bool | int | JsonMap) else encode_basestring(text)


def native(value: AttributeInput) -> AttributeValue:
    """Returns the value as an event stores it; a datetime becomes a Timestamp.

    Raises CloudEventError as `canonical` does.
    """
    text = canonical(value)
    if isinstance(value, datetime):
        return text
    if isinstance(value, str | bool | int | bytes):
        return value
    raise AssertionError("canonical() has refused every other type")


def type_of(value: AttributeValue) -> AttributeType:
    """Returns the CloudEvents type for the Python type of a value."""
    for kind, attribute_type in _TYPE_OF:
        if isinstance(value, kind):
            return attribute_type
    return STRING


# --- Boolean, Integer, Binary -------------------------------------------------------------------

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
#: The length of the lowest Integer, which is the longest. Longer text is refused unconverted.
_INTEGER_LENGTH = len(str(INTEGER_MIN))


def _boolean_fault(text: str) -> str | None:
    return None if text in ("true", "false") else "is neither true nor false"


def _integer_fault(text: str) -> str | None:
    if _INTEGER.fullmatch(text) is None:
        return "is no whole number in decimal"
    if len(text) > _INTEGER_LENGTH or not INTEGER_MIN <= int(text) <= INTEGER_MAX:
        return "is beyond 32 bits"
    return None


def base64_bytes(text: str) -> bytes | None:
    """Returns the bytes of Base64 text (RFC 4648, 4); None if the text is not Base64."""
    # Python's strict mode accepts padding after a complete group of four characters.
    if len(text) % 4 or text.endswith("==="):
        return None
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None


def _binary_fault(text: str) -> str | None:
    return "is not Base64" if base64_bytes(text) is None else None


def _map_fault(text: str) -> str | None:
    if _SURROGATE.search(text) is not None:
        return "has an unpaired surrogate"
    for decoder, fault in ((UNIQUE_NAMES_DECODER, None), (JSON_DECODER, "has a name twice")):
        try:
            return fault if isinstance(parse_json(text, decoder), dict) else "is no JSON object"
        except CloudEventError:
            continue
    return "is no JSON object"


# --- String -------------------------------------------------------------------------------------

_DISALLOWED = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufdd0-\\ufdef"
    + "".join(f"\\U{plane:04x}fffe\\U{plane:04x}ffff" for plane in range(17))
    + "]"
)


_SURROGATE = re.compile("[\\ud800-\\udfff]")


def utf8(text: str, *, where: str | None, clauses: tuple[str, ...] = ()) -> bytes:
    """Returns the text in UTF-8. Raises CloudEventError if it has an unpaired surrogate."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise CloudEventError(
            "the text has an unpaired surrogate", where=where, clauses=clauses
        ) from None


def _string_fault(text: str) -> str | None:
    # Printable text has no control character, surrogate or noncharacter. Other text may be valid,
    # too: a no-break space, for example, is allowed but not printable.
    if text.isprintable():
        return None
    found = _DISALLOWED.search(text)
    if found is None:
        return None
    return f"has U+{ord(found[0]):04X}, which is not allowed in a String"


# --- URI and URI-reference (RFC 3986, Appendix A) -----------------------------------------------

_UNRESERVED = r"A-Za-z0-9\-._~"
_SUB_DELIMS = r"!$&'()*+,;="
_PERCENT = "%[0-9A-Fa-f]{2}"
_PCHAR = f"(?:[{_UNRESERVED}{_SUB_DELIMS}:@]|{_PERCENT})"
_NO_COLON = f"(?:[{_UNRESERVED}{_SUB_DELIMS}@]|{_PERCENT})"
_QUERY = f"(?:[{_UNRESERVED}{_SUB_DELIMS}:@/?]|{_PERCENT})*"
_USERINFO = f"(?:(?:[{_UNRESERVED}{_SUB_DELIMS}:]|{_PERCENT})*@)?"
_IP_LITERAL = rf"\[(?:v[0-9A-Fa-f]+\.[{_UNRESERVED}{_SUB_DELIMS}:]+|(?P<ipv6>[0-9A-Fa-f:.]+))\]"
_REG_NAME = f"(?:[{_UNRESERVED}{_SUB_DELIMS}]|{_PERCENT})*"
_AUTHORITY = f"{_USERINFO}(?:{_IP_LITERAL}|{_REG_NAME})(?::[0-9]*)?"
_ABEMPTY = f"(?:/{_PCHAR}*)*"
_ABSOLUTE = f"/(?:{_PCHAR}+{_ABEMPTY})?"

_URI_PATTERN = re.compile(
    f"[A-Za-z][A-Za-z0-9+.-]*:(?://{_AUTHORITY}{_ABEMPTY}|{_ABSOLUTE}|{_PCHAR}+{_ABEMPTY}|)"
    rf"(?:\?{_QUERY})?(?P<fragment>#{_QUERY})?"
)
_RELATIVE_PATTERN = re.compile(
    f"(?://{_AUTHORITY}{_ABEMPTY}|{_ABSOLUTE}|{_NO_COLON}+{_ABEMPTY}|)"
    rf"(?:\?{_QUERY})?(?:#{_QUERY})?"
)
#: Matches URI-references that are a path of unreserved characters.
_PLAIN_PATH = re.compile(r"/?[A-Za-z0-9\-._~]+(?:/[A-Za-z0-9\-._~]+)*/?")


def _uri_fault(text: str) -> str | None:
    match = _URI_PATTERN.fullmatch(text)
    if match is None or not _host_is_right(match):
        return "is not an absolute URI (RFC 3986)"
    if match["fragment"] is not None:
        return "has a fragment, which an absolute URI must not have (RFC 3986, 4.3)"
    return None


def _uri_reference_fault(text: str) -> str | None:
    match = _URI_PATTERN.fullmatch(text) or _RELATIVE_PATTERN.fullmatch(text)
    if match is None or not _host_is_right(match):
        return "is not a URI-reference (RFC 3986)"
    return None


def _host_is_right(match: re.Match[str]) -> bool:
    """Returns False if the host is an invalid IPv6 address in brackets.

    The grammar of IPv6 addresses is too long for the pattern.
    """
    address = match["ipv6"]
    if address is None:
        return True
    import ipaddress  # rarely needed, and slow to import

    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True


# --- Timestamp (RFC 3339, 5.6) ------------------------------------------------------------------

_OFFSET = "(?:[Zz]|(?P<sign>[+-])(?P<hours>[01][0-9]|2[0-3]):(?P<minutes>[0-5][0-9]))"
_TIMESTAMP = re.compile(
    "(?P<year>[0-9]{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12][0-9]|3[01])"
    "[Tt](?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9]|60)"
    rf"(?:\.(?P<fraction>[0-9]+))?{_OFFSET}"
)
#: Matches times that are valid without a calendar: days up to 28, no leap second. The pattern has
#: no groups, which makes it twice as fast, and it never backtracks.
_PLAIN_TIMESTAMP = re.compile(
    "[0-9][0-9][0-9][0-9]-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    "[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(?:\.[0-9]++)?+(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _timestamp_fault(text: str) -> str | None:
    if _PLAIN_TIMESTAMP.fullmatch(text) is not None:
        return None
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return "is not RFC 3339"
    year, month = int(match["year"]), int(match["month"])
    if int(match["day"]) > _month_length(year, month):
        return "is not RFC 3339: the month has no such day"
    if match["second"] == "60" and not _may_be_leap_second(match):
        return "is not RFC 3339: a leap second ends a month, at 23:59:60 UTC"
    return None


def _month_length(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _MONTH_LENGTHS[month - 1]


def _may_be_leap_second(match: re.Match[str]) -> bool:
    """Returns True if the time is in the last minute of a month in UTC (RFC 3339, 5.7)."""
    minute_of_day = int(match["hour"]) * 60 + int(match["minute"]) - _offset_minutes(match)
    day, year, month = int(match["day"]), int(match["year"]), int(match["month"])
    days, minute_of_day = divmod(minute_of_day, 24 * 60)
    day += days
    if minute_of_day != 24 * 60 - 1:
        return False
    # Day 0 is the last day of the previous month.
    return day in (0, _month_length(year, month))


def _offset_minutes(match: re.Match[str]) -> int:
    if match["sign"] is None:
        return 0
    minutes = int(match["hours"]) * 60 + int(match["minutes"])
    return -minutes if match["sign"] == "-" else minutes


def _datetime_of(match: re.Match[str]) -> datetime:
    minutes = _offset_minutes(match)
    zone = timezone(timedelta(minutes=minutes)) if minutes else UTC
    leap = match["second"] == "60"
    value = datetime(
        int(match["year"]),
        int(match["month"]),
        int(match["day"]),
        int(match["hour"]),
        int(match["minute"]),
        0 if leap else int(match["second"]),
        0 if leap else int((match["fraction"] or "0")[:6].ljust(6, "0")),
        tzinfo=zone,
    )
    return value + timedelta(minutes=1) if leap else value


#: An exact time that sorts chronologically: the minutes in UTC since 0000-12-31 (negative before),
#: the second (60 for a leap second), and the digits of the fraction without trailing zeros.
ExactTime = tuple[int, int, str]

_MINUTES_OF_DAY: Final = 24 * 60
_DAYS_OF_400_YEARS: Final = 146_097
_YEAR_ONE: Final = datetime(1, 1, 1, tzinfo=UTC)


def exact_time(text: str) -> ExactTime | None:
    """Returns an RFC 3339 time of any year and precision as an ExactTime; None for other text."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None or _timestamp_fault(text) is not None:
        return None
    # Python's calendar has no year 0. The calendar repeats every 400 years, so shift the year.
    cycles, year = divmod(int(match["year"]), 400)
    day = date(400 + year, int(match["month"]), int(match["day"])).toordinal()
    day += (cycles - 1) * _DAYS_OF_400_YEARS
    minute = int(match["hour"]) * 60 + int(match["minute"]) - _offset_minutes(match)
    fraction = (match["fraction"] or "").rstrip("0")
    return day * _MINUTES_OF_DAY + minute, int(match["second"]), fraction


def _exact_time_of(value: datetime) -> ExactTime:
    """Returns an aware datetime as an ExactTime."""
    # Subtract the offset separately: the first and last hours may have no datetime in UTC.
    since = value.replace(tzinfo=UTC) - _YEAR_ONE - (value.utcoffset() or timedelta())
    minute, rest = divmod(since, timedelta(minutes=1))
    digits = f"{rest.microseconds:06}".rstrip("0")
    return minute + _YEAR_ONE.toordinal() * _MINUTES_OF_DAY, rest.seconds, digits


def _no_timestamp_error(text: str) -> CloudEventError:
    return CloudEventError(
        f"{quoted(text)} is not RFC 3339", clauses=('CloudEvents 1.0 "Timestamp"',)
    )


# --- two texts, one value -----------------------------------------------------------------------


def same_time(one: str, other: str) -> bool:
    """Returns True if two texts are times of the same instant, with any UTC offsets."""
    first = exact_time(one)
    return first is not None and first == exact_time(other)


def same_map(one: str, other: str) -> bool:
    """Returns True if two texts are Maps with the same JSON value."""
    if _map_fault(one) is not None or _map_fault(other) is not None:
        return False
    try:
        same: bool = parse_json(one, COMPARING_DECODER) == parse_json(other, COMPARING_DECODER)
    except RecursionError:
        return False
    return same


# --- the table ----------------------------------------------------------------------------------

#: Never matches: the quick check of types that are rare in events.
_NO_QUICK_CHECK = re.compile("(?!)").match

BOOLEAN: Final = AttributeType(
    "Boolean", _boolean_fault, lambda text: text == "true", _NO_QUICK_CHECK
)
INTEGER: Final = AttributeType("Integer", _integer_fault, int, _NO_QUICK_CHECK)
STRING: Final = AttributeType("String", _string_fault, str, str.isprintable)
BINARY: Final = AttributeType("Binary", _binary_fault, binascii.a2b_base64, _NO_QUICK_CHECK)
URI: Final = AttributeType("URI", _uri_fault, Uri, _NO_QUICK_CHECK)
URI_REFERENCE: Final = AttributeType(
    "URI-reference", _uri_reference_fault, UriReference, _PLAIN_PATH.fullmatch
)
TIMESTAMP: Final = AttributeType(
    "Timestamp", _timestamp_fault, Timestamp, _PLAIN_TIMESTAMP.fullmatch
)

MAP: Final = AttributeType("Map", _map_fault, JsonMap, _NO_QUICK_CHECK)

#: All types, by their name in the specification.
TYPES: Final = {
    each.name: each
    for each in (BOOLEAN, INTEGER, STRING, BINARY, URI, URI_REFERENCE, TIMESTAMP, MAP)
}

#: The CloudEvents type by Python type, in the order of the checks: bool comes before int, its base
#: class. The last four Python types are subclasses of str.
_TYPE_OF: Final[tuple[tuple[type, AttributeType], ...]] = (
    (bool, BOOLEAN),
    (int, INTEGER),
    (bytes, BINARY),
    (Timestamp, TIMESTAMP),
    (Uri, URI),
    (UriReference, URI_REFERENCE),
    (JsonMap, MAP),
)
