"""The base classes of every generated class; the only hand-written module of this package.

A generated struct has `__slots__` and a keyword `__init__`; a generated message also has
`_read_fields` and `_write_fields`, which support every version, and raise errors without text. The
classes here add the public codec, equality, printing, copying, and the explanation of errors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
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
    "decode_error",
    "decode_in_python",
    "number_list",
    "pieces_in_python",
    "string_list",
    "use_compiled_code",
]

T = TypeVar("T")
R = TypeVar("R", bound="Response")
M = TypeVar("M", bound="Message")


class _Default:
    """The class of DEFAULT; a copy or pickle of DEFAULT is the same object."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "DEFAULT"

    def __repr__(self) -> str:
        return "DEFAULT"


#: The value of an argument that is not passed, if None means null; and the value of a struct field
#: before its first access, which creates the struct.
DEFAULT: Final[Any] = _Default()


def string_list(values: Iterable[str]) -> list[str]:
    """Returns a list of `values`. Raises EncodeError for a str, which would become its letters."""
    if isinstance(values, str):
        raise EncodeError("a list of str is wanted, not one str: put it in brackets")
    return list(values)


#: The type of an array of numbers that was decoded and not accessed yet.
PACKED: Final[Any] = bytes


def number_list(values: Any) -> Any:
    """Returns the value for a slot that may be PACKED: bytes become a list."""
    return list(values) if type(values) is PACKED else values


class Struct:
    """The base class of generated structs; one class for all versions.

    Two structs are equal if they have the same class, equal fields, and equal unknown tagged fields
    in any order, because the writer sorts them by number. Mutable, so not hashable.
    """

    __slots__ = ("_unknown_tags",)

    #: Attributes that carry a secret and are never printed.
    _SECRETS: ClassVar[frozenset[str]] = frozenset()

    _unknown_tags: list[RawTaggedField] | None

    @property
    def unknown_tagged_fields(self) -> list[RawTaggedField]:
        """The tagged fields that the definition lacks.

        Decoding a message stores them; encoding writes them, in the order of their tags.
        """
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

    def __getstate__(self) -> object:
        """Returns the slots; without this method, the pickle protocols 0 and 1 refuse slots."""
        return super().__getstate__()

    def __repr__(self) -> str:
        parts = [f"{name}={self._shown(name)}" for name in self._names()]
        if self._unknown_tags:
            parts.append(f"unknown_tagged_fields={self._unknown_tags!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    @classmethod
    def _names(cls) -> list[str]:
        """Returns the names of the fields.

        Some fields are properties: the slot of such a field has an underscore in front of the name.
        """
        return [slot.lstrip("_") for slot in cls._generated().__slots__]

    @classmethod
    def _generated(cls) -> type[Self]:
        """Returns the generated class.

        That is this class itself, or the generated base class of a user's subclass.
        """
        near = [made for made in cls.__mro__ if made.__base__ is Struct]
        # Mixins of a user have no fields, because fields are slots.
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
        from copy import deepcopy  # imported at the first copy only

        return deepcopy(self)


class KeyedList(list[T]):
    """A list of structs whose definition has a key (mapKey), with a look-up by that key.

    The generated subclasses define `find` with the fields of the key. A look-up first indexes the
    elements that were appended since the last look-up. The index is only a hint, which the found
    element must confirm, so that appended, removed and changed elements never yield a wrong result.
    A look-up of a missing key examines every element (some 30 ns each), because a key may have been
    changed in place. If many keys may be missing, build a dict.
    """

    __slots__ = ("_index", "_indexed")

    _KEY: ClassVar[tuple[str, ...]] = ()

    _index: dict[tuple[Any, ...], int]
    #: The number of indexed elements.
    _indexed: int

    def _find(self, *key: object) -> T | None:
        """Returns an element with that key, or None.

        If several elements have the key, returns the first of them. If keys were changed or
        elements moved after a look-up, it may return a later one of them: detecting the change
        would examine every element.
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
        """Returns the element that the index has for `key`.

        Returns None if there is none, or if the key of the element has changed since.
        """
        at = self._index.get(key, -1)
        return self[at] if 0 <= at < len(self) and self._key_of(self[at]) == key else None

    def _index_the_rest(self) -> None:
        for position in range(self._indexed, len(self)):
            self._index.setdefault(self._key_of(self[position]), position)
        self._indexed = len(self)

    def _is_somewhere(self, key: tuple[Any, ...]) -> bool:
        """Returns True if any element has the key; searches all elements without the index."""
        wanted = key[0] if len(key) == 1 else key
        return wanted in map(attrgetter(*self._KEY), self)

    def _find_all(self, *key: object) -> list[T]:
        """Returns every element with the key `key`, in order."""
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
    #: The highest version that the definitions do not mark as unstable; -1 if there is none.
    LATEST_STABLE: ClassVar[int]

    # Every generated message overrides both.

    @classmethod
    def _read_fields(cls, data: bytes, pos: int, version: int) -> tuple[Self, int]:
        raise NotImplementedError

    @classmethod
    def _read_in_python(cls, data: bytes, pos: int, version: int) -> tuple[Self, int]:
        """Reads as `_read_fields` does, in interpreted code; `use_compiled_code` sets it."""
        raise NotImplementedError

    def _write_fields(self, append: Append, version: int) -> None:
        raise NotImplementedError

    @classmethod
    def _generated(cls) -> type[Self]:
        # Mixins of a user read nothing.
        return next(made for made in cls.__mro__ if "_read_fields" in vars(made))

    def encode(self, version: int) -> bytes:
        """Returns the message as bytes, without a header; raises the errors of `encoded_pieces`."""
        return b"".join(self.encoded_pieces(version))

    def encoded_pieces(self, version: int) -> list[bytes]:
        """Returns the message as bytes, without a header, in pieces to be joined.

        A large value that is bytes already, such as records, is a piece by itself and not copied.
        Raises EncodeError for a version that is not in VALID_VERSIONS. Raises EncodeError if a
        value cannot be written at that version: a wrong type or range, null in a field that is not
        nullable, or a value other than the default in a field that the version lacks and that is
        not ignorable.
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
            # An object in a field raised this error, so it stays as the cause.
            raise _why_not_written(self, version, fault) from fault
        return pieces

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview, version: int) -> Self:
        """Reads a message from the whole of `data`; `bytes` are read without a copy.

        Raises DecodeError, which names field, offset and reason, if `data` is not exactly one
        message, or if `version` is not in VALID_VERSIONS.
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
            pass  # frees what was read before the bytes are read again
        raise _why_not_read(cls, data, 0, version, trailing=False)

    @classmethod
    def decode_from(
        cls, data: bytes | bytearray | memoryview, offset: int, version: int
    ) -> tuple[Self, int]:
        """Reads a message that begins at `offset` (bytes); returns it and the offset after it.

        Ignores bytes after the message. Raises DecodeError, as `decode` does.
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
            pass  # frees what was read before the bytes are read again
        raise _why_not_read(cls, data, offset, version, trailing=True)

    def size(self, version: int) -> int:
        """Returns the length in bytes of `encode(version)`; raises the same errors."""
        return len(self.encode(version))

    def to_json(self, version: int) -> dict[str, Any]:
        """Returns the message as JSON data, as Kafka's JsonConverter writes it.

        Raises EncodeError.
        """
        from ..schema.json_converter import to_json

        self.encode(version)
        return to_json(self._definition(), version, self)

    @classmethod
    def from_json(cls, node: dict[str, Any], version: int, *, fill_defaults: bool = False) -> Self:
        """Reads the JSON of `to_json` or of Kafka's JsonConverter. Raises DecodeError.

        With `fill_defaults` a missing field takes its default, and an unknown name is an error.
        """
        from ..schema.json_converter import from_json

        if version not in cls.VALID_VERSIONS:
            raise DecodeError(_no_such_version(cls, version), message=cls.__name__)
        classes = {**cls._classes(), cls._generated().__name__: cls}
        definition = cls._definition()
        message = from_json(definition, version, node, classes, fill_defaults=fill_defaults)
        assert isinstance(message, cls)
        return message

    @classmethod
    def _definition(cls) -> MessageSpec:
        """Returns the definition from which the class was generated."""
        from ..schema.definitions import definitions_of

        made = cls._generated()
        return definitions_of(made.__module__)[made.__name__.removesuffix("_")]

    @classmethod
    def _classes(cls) -> Mapping[str, Any]:
        """Returns the namespace of the message's module, which has the classes of its structs."""
        return vars(sys.modules[cls._generated().__module__])


class Response(Message):
    """A response; `kproto.protocol.headers.response_header_version` returns its header version."""

    __slots__ = ()

    # These class variables are never assigned to, so that a narrower type is safe.
    API_KEY: ClassVar[int]  # pyright: ignore[reportIncompatibleVariableOverride]


class Request(Message, Generic[R]):
    """A request; its type parameter is the class of its response."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __class_getitem__(cls, response: object) -> type[Request]:
            """Ignores the response, which only type checkers use; typing is slow to import."""
            return cls

    API_KEY: ClassVar[int]  # pyright: ignore[reportIncompatibleVariableOverride]
    #: The listeners that accept the request: `broker`, `controller` or `zkBroker`.
    LISTENERS: ClassVar[tuple[str, ...]]


def decode_in_python(cls: type[M], data: Any, version: Any) -> M:
    """Decodes as `Message.decode` does, which compiled code replaces in some classes."""
    message: M = vars(Message)["decode"].__func__(cls, data, version)
    return message


def pieces_in_python(message: Message, version: Any) -> list[bytes]:
    """Encodes as `Message.encoded_pieces` does, which compiled code replaces in some classes."""
    return Message.encoded_pieces(message, version)


def decode_error(cls: type[Message], data: bytes, version: int) -> DecodeError:
    """Returns the error that explains why `data` is not exactly one message."""
    return _why_not_read(cls, data, 0, version, trailing=False)


def use_compiled_code(cls: type[Message]) -> None:
    """Replaces `_read_fields`, `decode` and some properties by the functions for compiled code.

    Does nothing if Python has placed the slots of a class in another order than the compiled code
    expects. The module of the functions imports the class, so the class's own module calls this at
    its end.
    """
    from ..wire.c_functions import has_slots  # only compiled code needs it

    package, _, module = cls.__module__.rpartition(".")
    reader = import_module(f"{package}.compiled.{module}")
    if all(map(has_slots, reader.CLASSES)):
        cls._read_in_python = vars(cls)["_read_fields"]  # type: ignore[method-assign]
        for name, method in reader.METHODS.items():
            setattr(cls, name, method)
        for made, attribute, descriptor in getattr(reader, "DESCRIPTORS", ()):
            setattr(made, attribute, descriptor)


def _has_fields(made: type[Struct]) -> bool:
    return any(not slot.startswith("__") for slot in vars(made).get("__slots__", ()))


def _same_tags(first: list[RawTaggedField] | None, second: list[RawTaggedField] | None) -> bool:
    """Returns True if two lists of unknown tagged fields are equal after sorting by tag."""
    if not first or not second or first == second:
        return bool(first) == bool(second)
    try:
        return sorted(first, key=itemgetter(0)) == sorted(second, key=itemgetter(0))
    except (TypeError, LookupError):  # not RawTaggedFields; encode refuses them
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
    except ValueError:  # Python refuses to convert thousands of digits to text
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
