"""What every generated class inherits; the one module here that is written by hand.

A generated struct brings `__slots__` and a keyword `__init__`; a generated message brings
`_read_fields` and `_write_fields` too, which know every version and explain nothing. The classes
here add the public codec around them, equality, printing, copying, and the explanation of errors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from operator import attrgetter, index, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, SupportsIndex, TypeVar

from ..wire.buffers import octets
from ..wire.errors import DecodeError, EncodeError
from ..wire.faults import READ_FAULTS, WRITE_FAULTS
from ..wire.tags import MAX_SHOWN_BYTES, RawTaggedField
from ..wire.writing import Append

if TYPE_CHECKING:
    from ..schema.specs import MessageSpec

__all__ = [
    "DEFAULT",
    "PACKED",
    "KeyedList",
    "Message",
    "Request",
    "Response",
    "Struct",
    "number_list",
    "string_list",
]

T = TypeVar("T")
R = TypeVar("R", bound="Response")


class _Default:
    """There is one, DEFAULT, and it stays that one when it is copied or pickled."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "DEFAULT"

    def __repr__(self) -> str:
        return "DEFAULT"


#: Stands for the default where None means null, and for a struct that nobody has asked for yet.
DEFAULT: Final[Any] = _Default()


def string_list(values: Iterable[str]) -> list[str]:
    """A list of `values`. Raises EncodeError on a lone str, of which it would take the letters."""
    if isinstance(values, str):
        raise EncodeError("a list of str is wanted, not one str: put it in brackets")
    return list(values)


#: The type of an array of numbers that was read and that nobody has asked for yet.
PACKED: Final[Any] = bytes


def number_list(values: Any) -> Any:
    """What a slot holds that may be PACKED when somebody sets it: bytes are set as a list."""
    return list(values) if type(values) is PACKED else values


class Struct:
    """A group of fields: one class for all versions.

    Equal when of one class with equal fields and equal unknown tagged fields, whatever their order:
    they are written by number. Mutable, so not hashable.
    """

    __slots__ = ("_unknown_tags",)

    #: Attributes that carry a secret and are never printed.
    _SECRETS: ClassVar[frozenset[str]] = frozenset()

    _unknown_tags: list[RawTaggedField] | None

    @property
    def unknown_tagged_fields(self) -> list[RawTaggedField]:
        """Tagged fields the definition does not know; kept on reading, merged in on writing."""
        if self._unknown_tags is None:
            self._unknown_tags = []
        return self._unknown_tags

    @unknown_tagged_fields.setter
    def unknown_tagged_fields(self, fields: Iterable[RawTaggedField]) -> None:
        self._unknown_tags = list(fields)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        theirs = getattr(other, "_unknown_tags", None)
        if (self._unknown_tags or theirs) and not _same_tags(self._unknown_tags, theirs):
            return False
        return all(getattr(self, name) == getattr(other, name) for name in self._names())

    __hash__ = None  # type: ignore[assignment]  # mutable, as a list is

    def __repr__(self) -> str:
        parts = [f"{name}={self._shown(name)}" for name in self._names()]
        if self._unknown_tags:
            parts.append(f"unknown_tagged_fields={self._unknown_tags!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    @classmethod
    def _names(cls) -> list[str]:
        """Returns the fields; some are properties in front of a slot with an underscore."""
        return [slot.lstrip("_") for slot in cls._generated().__slots__]

    @classmethod
    def _generated(cls) -> type[Self]:
        """The class that the generator made: this one, or the one that it was derived from."""
        near = [made for made in cls.__mro__ if made.__base__ is Struct]
        # What a user mixed in has no fields, which are slots.
        return next(filter(_has_fields, near), near[0])

    def _shown(self, name: str) -> str:
        value = getattr(self, name)
        if name in self._SECRETS and value:
            return "<hidden>"
        if isinstance(value, bytes | bytearray | memoryview) and len(value) > MAX_SHOWN_BYTES:
            return f"<{len(value)} bytes>"
        return repr(value)

    def copy(self) -> Self:
        """Returns a deep copy."""
        from copy import deepcopy  # not loaded for those who copy nothing

        return deepcopy(self)


class KeyedList(list[T]):
    """An array whose elements have a key in the definition (mapKey).

    The generated subclasses give `find` the names and types of the key. The index grows at a
    look-up by what was appended since; it is only a hint, which the element found must confirm, so
    that appended, removed and changed elements never make it answer wrongly. That has a price: a
    key may have been changed in place, so one that is not there takes a look at every element
    (some 30 ns each). For many that may be missing, make a dict.
    """

    __slots__ = ("_index", "_indexed")

    _KEY: ClassVar[tuple[str, ...]] = ()

    _index: dict[tuple[Any, ...], int]
    #: How many elements the index has seen.
    _indexed: int

    def _find(self, *key: object) -> T | None:
        """Returns an element with that key, or None.

        Of several it is the first, unless keys or the places of elements were changed after a
        look-up: to see that would take a look at every element.
        """
        try:
            element = self._indexed_element(key)
        except AttributeError:
            self._index, self._indexed = {}, 0
            element = None
        if element is None and self._indexed < len(self):
            self._index_the_rest()
            element = self._indexed_element(key)
        if element is None and self._is_somewhere(key):
            self._index, self._indexed = {}, 0
            self._index_the_rest()
            element = self._indexed_element(key)
        return element

    def _indexed_element(self, key: tuple[Any, ...]) -> T | None:
        """What the index says has the key, if it still has it."""
        at = self._index.get(key, -1)
        return self[at] if 0 <= at < len(self) and self._key_of(self[at]) == key else None

    def _index_the_rest(self) -> None:
        for position in range(self._indexed, len(self)):
            self._index.setdefault(self._key_of(self[position]), position)
        self._indexed = len(self)

    def _is_somewhere(self, key: tuple[Any, ...]) -> bool:
        """Whether an element has the key, whatever the index says: it was changed, or moved."""
        wanted = key[0] if len(key) == 1 else key
        return wanted in map(attrgetter(*self._KEY), self)

    def _find_all(self, *key: object) -> list[T]:
        """Returns every element with that key, in order."""
        return [element for element in self if self._key_of(element) == key]

    def _key_of(self, element: T) -> tuple[Any, ...]:
        return tuple([getattr(element, name) for name in self._KEY])

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return type(self), (list(self),)


class Message(Struct):
    """A request, response, header, record or other message of the definitions."""

    __slots__ = ()

    #: The api key of a request or response, or the key or type of a stored record; else None.
    API_KEY: ClassVar[int | None] = None
    #: Every version that the class can read and write.
    VALID_VERSIONS: ClassVar[range]
    #: The versions with compact lengths and tagged fields (KIP-482).
    FLEXIBLE_VERSIONS: ClassVar[range]
    #: The highest version that is negotiated without opting in; -1 when there is none.
    LATEST_STABLE: ClassVar[int]

    # Every generated message brings both of its own.

    @classmethod
    def _read_fields(cls, data: bytes, pos: int, version: int) -> tuple[Self, int]:
        raise NotImplementedError

    def _write_fields(self, append: Append, version: int) -> None:
        raise NotImplementedError

    @classmethod
    def _generated(cls) -> type[Self]:
        # What a user mixed in reads nothing.
        return next(made for made in cls.__mro__ if "_read_fields" in vars(made))

    def encode(self, version: int) -> bytes:
        """Returns the message as bytes, without a header. Raises what `encoded_pieces` raises."""
        return b"".join(self.encoded_pieces(version))

    def encoded_pieces(self, version: int) -> list[bytes]:
        """Returns the message as bytes, without a header, in pieces to be joined.

        What is large and bytes already, such as records, is a piece of its own and not copied.
        Raises EncodeError when a value cannot be written at that version: of a wrong type or
        range, null where that is not allowed, or not at its default in a field that the version
        does not have and that is not ignorable.
        """
        if version not in self.VALID_VERSIONS:
            raise EncodeError(_no_such_version(type(self), version), message=type(self).__name__)
        pieces: list[bytes] = []
        try:
            self._write_fields(pieces.append, version)
        except WRITE_FAULTS as fault:
            error = _why_not_written(self, version, fault)
            raise error from error.__cause__
        except MemoryError:
            raise
        except Exception as fault:
            # Not ours, and so kept as the cause: an object in a field raised it.
            raise _why_not_written(self, version, fault) from fault
        return pieces

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview, version: int) -> Self:
        """Read a message from the whole of `data`; `bytes` are read without a copy.

        Raises DecodeError, which says where and why, on bytes that are not exactly one message.
        """
        if version not in cls.VALID_VERSIONS:
            raise DecodeError(_no_such_version(cls, version), message=cls.__name__)
        if type(data) is not bytes:
            data = _as_bytes(cls, version, data)
        try:
            message, end = cls._read_fields(data, 0, version)
            if end == len(data):
                return message
            del message
        except READ_FAULTS:
            pass  # what was read until then goes with the exception, before all is walked again
        raise _why_not_read(cls, data, 0, version, trailing=False)

    @classmethod
    def decode_from(
        cls, data: bytes | bytearray | memoryview, offset: int, version: int
    ) -> tuple[Self, int]:
        """Read a message that begins at `offset` (bytes); returns it and the offset behind it.

        Bytes behind the message are left alone. Raises DecodeError, as `decode` does.
        """
        if version not in cls.VALID_VERSIONS:
            raise DecodeError(_no_such_version(cls, version), message=cls.__name__)
        if type(data) is not bytes:
            data = _as_bytes(cls, version, data)
        if type(offset) is not int:
            offset = _as_offset(cls, version, offset)
        if not 0 <= offset <= len(data):
            reason = f"offset {_told(offset)} is outside the {len(data)} bytes of data"
            raise DecodeError(reason, message=cls.__name__, version=version, offset=0)
        try:
            message, end = cls._read_fields(data, offset, version)
            if end <= len(data):
                return message, end
            del message
        except READ_FAULTS:
            pass  # what was read until then goes with the exception, before all is walked again
        raise _why_not_read(cls, data, offset, version, trailing=True)

    def size(self, version: int) -> int:
        """Returns the length in bytes of `encode(version)`; raises what it raises."""
        return len(self.encode(version))

    def to_json(self, version: int) -> dict[str, Any]:
        """The message as Kafka's JsonConverter writes it. Raises EncodeError, as `encode` does."""
        from ..schema.json_converter import to_json

        self.encode(version)
        return to_json(self._definition(), version, self)

    @classmethod
    def from_json(cls, node: dict[str, Any], version: int) -> Self:
        """Read what `to_json`, or Kafka's JsonConverter, wrote. Raises DecodeError."""
        from ..schema.json_converter import from_json

        if version not in cls.VALID_VERSIONS:
            raise DecodeError(_no_such_version(cls, version), message=cls.__name__)
        classes = {**cls._classes(), cls._generated().__name__: cls}
        message = from_json(cls._definition(), version, node, classes)
        assert isinstance(message, cls)
        return message

    @classmethod
    def _definition(cls) -> MessageSpec:
        """Returns the definition that the class was made of."""
        from ..schema.definitions import definitions_of

        made = cls._generated()
        return definitions_of(made.__module__)[made.__name__.removesuffix("_")]

    @classmethod
    def _classes(cls) -> Mapping[str, Any]:
        """The classes of the message's structs by name, and whatever else its module holds."""
        return vars(sys.modules[cls._generated().__module__])


class Response(Message):
    """A response; its header version is that of `kproto.protocol.headers`."""

    __slots__ = ()

    # No class variable here is ever assigned to, so that a narrower type is safe.
    API_KEY: ClassVar[int]  # pyright: ignore[reportIncompatibleVariableOverride]


class Request(Message, Generic[R]):
    """A request, which names the class of its response."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __class_getitem__(cls, response: object) -> type[Request]:
            """Only type checkers look at the response; what typing makes here costs an import."""
            return cls

    API_KEY: ClassVar[int]  # pyright: ignore[reportIncompatibleVariableOverride]
    #: Who answers the request: broker, controller, raft, ….
    LISTENERS: ClassVar[tuple[str, ...]]


def _has_fields(made: type[Struct]) -> bool:
    return any(not slot.startswith("__") for slot in vars(made).get("__slots__", ()))


def _same_tags(first: list[RawTaggedField] | None, second: list[RawTaggedField] | None) -> bool:
    """Returns whether two lists of unknown tagged fields are written alike: by ascending number."""
    if not first or not second or first == second:
        return bool(first) == bool(second)
    try:
        return sorted(first, key=itemgetter(0)) == sorted(second, key=itemgetter(0))
    except (TypeError, LookupError):  # something else stands in them, which encode refuses
        return False


def _as_bytes(cls: type[Message], version: int, data: Any) -> bytes:
    try:
        return octets(data)
    except (TypeError, ValueError) as error:
        raise DecodeError(str(error), message=cls.__name__, version=version, offset=0) from None


def _as_offset(cls: type[Message], version: int, offset: Any) -> int:
    try:
        return index(offset)
    except TypeError:
        reason = f"an offset in bytes is wanted, a whole number, not {type(offset).__name__}"
        raise DecodeError(reason, message=cls.__name__, version=version) from None


def _no_such_version(cls: type[Message], version: int) -> str:
    known = cls.VALID_VERSIONS
    return f"version {_told(version)} is not one of {known.start} to {known.stop - 1}"


def _told(number: int) -> str:
    try:
        return repr(number)
    except ValueError:  # Python turns no number of thousands of digits into text
        return "of such length"


def _why_not_read(
    cls: type[Message], data: bytes, offset: int, version: int, *, trailing: bool
) -> DecodeError:
    from ..schema.explain import explain_decode

    found = explain_decode(cls._definition(), version, data, offset, trailing=trailing)
    return found or DecodeError("unreadable bytes", message=cls.__name__, version=version)


def _why_not_written(message: Message, version: int, fault: Exception) -> EncodeError:
    from ..schema.explain import explain_encode

    found = explain_encode(message._definition(), version, message)
    if found is not None:
        return found
    reason = f"an object in it changes while it is written ({type(fault).__name__})"
    return EncodeError(reason, message=type(message).__name__, version=version)
