"""Plans the generated code of a message: the encoding of each field in each version, and names.

Generated code tests the version only if the wire layout changes. An *item* is a field, or the
tagged fields at the end of a struct. The *form* of an item is its encoding. A *segment* is a range
of versions in which an item has the same form. A *run* is a group of neighboring items whose
segments begin at the same versions. `readers` and `writers` emit the code for each run.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from kproto.schema.layout import FORMATS, FieldForm, Presence, field_form
from kproto.schema.naming import attribute_name, class_name, snake_case
from kproto.schema.specs import PRIMITIVE_TYPES, FieldSpec, MessageSpec, StructSpec
from kproto.schema.versions import Versions

from ..struct_versions import versions_in_use
from .code import Condition, opposites
from .kafka_messages import UNIFORM_STRUCTS

__all__ = [
    "NEVER_LAZY",
    "FieldPlan",
    "FieldRun",
    "Form",
    "StructPlan",
    "Style",
    "TaggedFieldsForm",
    "ValueKind",
    "plan_structs",
]


class Style(Enum):
    """The style of a module's code; the module's head has the value, the name of the style."""

    BRANCHING = "branches on the version where the layout changes"
    STRAIGHT = "straight-line code for each layout"
    NATIVE = "a call for each value, which mypyc compiles to a call of C"


class ValueKind(Enum):
    """The kinds of values that need different code to read and write."""

    BOOL = "bool"
    NUMBER = "number"
    UUID = "uuid"
    STRING = "string"
    OCTETS = "octets"
    STRUCT = "struct"
    ARRAY = "array"


#: The kind by primitive type; all other primitive types are numbers.
_KINDS: Final = {
    "bool": ValueKind.BOOL,
    "uuid": ValueKind.UUID,
    "string": ValueKind.STRING,
    "bytes": ValueKind.OCTETS,
    "records": ValueKind.OCTETS,
}

#: The kinds whose values have a fixed size.
_FIXED_WIDTH: Final = frozenset({ValueKind.BOOL, ValueKind.NUMBER, ValueKind.UUID})

#: The Python type by primitive type; it is int for all other primitive types.
_PYTHON_TYPES: Final = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "uuid": "Uuid",
    "bytes": "bytes",
    "records": "bytes",
}


#: Attributes that cannot be properties: the property would hide a builtin that the class body uses,
#: or the slot of the property (`_` and the name) would hide an attribute that structs inherit.
NEVER_LAZY = frozenset(
    {
        *("bool", "bytes", "classmethod", "float", "frozenset"),
        *("int", "property", "range", "str", "tuple"),
        *("classes", "definition", "generated", "is_protocol", "names"),
        *("read_fields", "read_in_python", "shown", "unknown_tags", "write_fields"),
    }
)

#: The source of numbers that are easier to read as powers of 2.
_BOUNDS = {
    2**31 - 1: "2**31 - 1",
    -(2**31): "-(2**31)",
    2**32 - 1: "2**32 - 1",
    2**63 - 1: "2**63 - 1",
    -(2**63): "-(2**63)",
}


class TaggedFieldsForm(NamedTuple):
    """The form of the tagged fields at the end of a struct: they exist only if `flexible`."""

    flexible: bool


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """A field of a struct, with the names and types of its Python code.

    `collection` is True if the attribute is a keyed list.
    """

    spec: FieldSpec
    attribute: str
    collection: bool
    #: Whether only versions that are not flexible have the field, in STRAIGHT style.
    obsolete: bool = False
    #: Whether the field is an array of numbers that are kept as bytes until the first access.
    packed: bool = False

    @property
    def kind(self) -> ValueKind:
        """Returns the kind of the field."""
        return ValueKind.ARRAY if self.spec.is_array else self.element_kind

    @property
    def element_kind(self) -> ValueKind:
        """Returns the kind of the field, or of its elements if it is an array."""
        name = self.spec.element_type
        return _KINDS.get(name, ValueKind.NUMBER) if name in PRIMITIVE_TYPES else ValueKind.STRUCT

    @property
    def of_strings(self) -> bool:
        """Returns True if the field is an array of strings.

        For such a field, the generated `__init__` refuses a single str.
        """
        return self.spec.is_array and self.element_kind is ValueKind.STRING

    @property
    def struct_snake(self) -> str:
        """Returns the name of the struct (or of the elements' struct) in snake_case."""
        return snake_case(self.spec.element_type)

    @property
    def mostly_long(self) -> bool:
        """Returns True for a field of type records: its length mostly takes more than one byte."""
        return self.spec.type == "records"

    @property
    def mostly_empty(self) -> bool:
        """Returns True for a nullable array of structs; such arrays are mostly null or empty."""
        return self.spec.is_struct_array and bool(self.spec.nullable_versions)

    @property
    def nullable(self) -> bool:
        """Returns True if the attribute may be None in at least one version."""
        return self.spec.default_value() is None or (
            bool(self.spec.nullable_versions) and self.spec.type not in FORMATS
        )

    @property
    def null_is_not_default(self) -> bool:
        """Returns True if the field is a nullable struct whose default is not null."""
        return self.spec.is_struct and self.nullable and self.spec.default_value() is not None

    @property
    def lazy(self) -> bool:
        """Returns True if the field's slot has DEFAULT until the attribute is first read.

        A lazy field is a struct that is tagged in all its versions, or an obsolete array, because
        such fields are mostly absent. Lazy fields save the creation of three objects for each
        partition of a Fetch response. Nullable fields, and attributes in NEVER_LAZY, are not lazy.
        """
        spec = self.spec
        tagged = bool(spec.tagged_versions) and spec.tagged_versions.covers(spec.versions)
        absent = (spec.is_struct and tagged) or (spec.is_array and self.obsolete)
        return absent and not self.nullable and self.attribute not in NEVER_LAZY

    @property
    def slot(self) -> str:
        """Returns the name of the slot, which begins with an underscore if there is a property."""
        return f"_{self.attribute}" if self.lazy or self.packed else self.attribute

    @property
    def element(self) -> str:
        """Returns the Python type of the field, or of its elements if it is an array."""
        name = self.spec.element_type
        if name in PRIMITIVE_TYPES:
            return _PYTHON_TYPES.get(name, "int")
        return class_name(name)

    @property
    def annotation(self) -> str:
        """Returns the source code of the attribute's type annotation."""
        made = self.element
        if self.collection:
            made = f"{made}Collection"
        elif self.spec.is_array:
            made = f"list[{made}]"
        return f"{made} | None" if self.nullable else made

    @property
    def parameter(self) -> str:
        """Returns the source of the type of the `__init__` parameter."""
        made = f"Iterable[{self.element}]" if self.spec.is_array else self.element
        return f"{made} | None" if self.nullable or self.spec.is_struct else made

    @property
    def default(self) -> str:
        """Returns the source of the default of the `__init__` parameter."""
        value = self.spec.default_value()
        if self.null_is_not_default:
            return "DEFAULT"
        if value is None or self.spec.is_struct:
            return "None"
        if self.spec.is_array:
            return "()"
        return self._scalar(value)

    def default_tests(self, value: str) -> tuple[Condition, Condition]:
        """Returns the conditions that `value` is, and is not, the default of the field.

        `value` is an expression. If the default is not null, the first condition is false for None.
        If it were true, the generated code would write the default in place of null.
        """
        default = self.spec.default_value()
        if default is None:
            return opposites((f"{value} is None", f"{value} is not None"))
        if self.spec.is_struct:
            call = f"_is_default_{self.struct_snake}({value})"
            at_default = (call, f"not {call}")
        elif self.spec.is_array:
            at_default = (f"len(elements({value})) == 0", f"len(elements({value})) > 0")
        elif isinstance(default, bool):
            on, off = f"BOOLS[{value}]", f"not BOOLS[{value}]"
            at_default = (on, off) if default else (off, on)
        else:
            compared = f"index({value})" if "index" in self.test_names else value
            scalar = self._scalar(default)
            at_default = (f"{compared} == {scalar}", f"{compared} != {scalar}")
        if self.lazy:
            return opposites(
                (f"{value} is DEFAULT", f"{value} is not DEFAULT"), at_default, either=True
            )
        if self.nullable and (self.spec.is_struct or self.spec.is_array):
            return opposites((f"{value} is not None", f"{value} is None"), at_default)
        return opposites(at_default)

    @property
    def calls_struct_test(self) -> bool:
        """Returns True if `default_tests` calls the function that tests the struct."""
        return self.spec.is_struct and self.spec.default_value() is not None

    @property
    def test_names(self) -> frozenset[str]:
        """Returns the names that the code of `default_tests` must import.

        With these names, the code raises an error for a value of a wrong type that equals the
        default, such as 0.0 for an int.
        """
        if self.spec.default_value() is None:
            return frozenset()
        match self.kind:
            case ValueKind.ARRAY:
                return frozenset({"elements"})
            case ValueKind.BOOL:
                return frozenset({"BOOLS"})
            case ValueKind.NUMBER if self.element == "int":
                return frozenset({"index"})
        return frozenset()

    @property
    def default_names(self) -> frozenset[str]:
        """Returns the names to import for the source of the default."""
        if self.kind is not ValueKind.UUID:
            return frozenset()
        return frozenset({"ZERO_UUID" if self.spec.default_value() == bytes(16) else "Uuid"})

    def first_value(self) -> str:
        """Returns the source of the value that a reader gives the slot of an absent field.

        A field is absent if the version lacks it.
        """
        return "DEFAULT" if self.lazy else self.new_default()

    def new_default(self) -> str:
        """Returns the source that creates a default value, such as a new list or struct."""
        value = self.spec.default_value()
        if value is None:
            return "None"
        if self.spec.is_struct:
            return f"{self.element}()"
        if self.collection:
            return f"{self.element}Collection()"
        if self.spec.is_array:
            return "[]"
        return self._scalar(value)

    def _scalar(self, value: object) -> str:
        if self.spec.type == "uuid":
            zero = "ZERO_UUID" in self.default_names
            return "ZERO_UUID" if zero else f'Uuid.parse("{_uuid_text(value)}")'
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, bytes):
            return 'b""'
        if value in _BOUNDS:
            return _BOUNDS[value]
        return repr(value).replace("e+", "e")


Form: TypeAlias = FieldForm | TaggedFieldsForm


@dataclass(frozen=True, slots=True)
class FieldRun:
    """Neighboring fields of a struct whose code is emitted together, and their forms by segment.

    A segment is a range of versions in which the forms do not change.
    """

    items: tuple[FieldPlan | None, ...]  # None is the tagged fields
    segments: tuple[tuple[Versions, tuple[Form, ...]], ...]

    def is_fixed_size(self, forms: tuple[Form, ...]) -> bool:
        """Returns True if structs in one layout have a fixed size, apart from tagged fields.

        `forms` are the forms of the fields in that layout. Returns False for structs without
        fields. Also returns False for layouts that are not flexible: few clients use them, so
        faster code is not worth its length.
        """
        written = set()
        for item, form in zip(self.items, forms, strict=True):
            if isinstance(form, TaggedFieldsForm):
                if not form.flexible:
                    return False
            elif item is not None and form.presence is Presence.PLAIN:
                written.add(item.kind)
        return bool(written) and written <= _FIXED_WIDTH

    def is_uniform(self, forms: tuple[Form, ...]) -> bool:
        """Returns True if structs of this layout differ in size only by counts of packed arrays.

        A packed array is an array of numbers, which is stored as bytes. Returns False if the
        structs have no packed array, and for a layout that is not flexible.
        """
        written = [
            (item.packed, item.kind)
            for item, form in zip(self.items, forms, strict=True)
            if item is not None and not isinstance(form, TaggedFieldsForm)
            if form.presence is Presence.PLAIN
        ]
        return (
            forms[-1] == TaggedFieldsForm(flexible=True)
            and any(packed for packed, _ in written)
            and all(packed or kind in _FIXED_WIDTH for packed, kind in written)
        )


@dataclass(frozen=True, slots=True)
class StructPlan:
    """A struct of a message, or the message itself, in the versions that use it."""

    name: str
    is_message: bool
    #: Whether the struct is the element of an array.
    of_array: bool
    style: Style
    versions: Versions
    flexible: Versions
    fields: tuple[FieldPlan, ...]
    runs: tuple[FieldRun, ...]

    @property
    def class_name(self) -> str:
        """Returns the name of the generated class."""
        return class_name(self.name)

    @property
    def snake_name(self) -> str:
        """Returns the name in snake_case, for function names."""
        return snake_case(self.name)

    @property
    def slots(self) -> tuple[str, ...]:
        """Returns the names of all slots in the order in which CPython places them in memory.

        The slot of the base class is first; the slots of the class follow, sorted by name.
        """
        return ("_unknown_tags", *sorted(field.slot for field in self.fields))

    @property
    def keys(self) -> tuple[FieldPlan, ...]:
        """Returns the key fields (`mapKey`); arrays of a struct with key fields are keyed lists."""
        return tuple(field for field in self.fields if field.spec.map_key)

    @property
    def tagged(self) -> tuple[FieldPlan, ...]:
        """Returns the fields that at least one version tags, ordered by tag.

        A flexible version that lacks such a field refuses its tag, as Kafka does.
        """
        if not self.flexible_versions:
            return ()
        tagged = [field for field in self.fields if field.spec.tag is not None]
        return tuple(sorted(tagged, key=lambda field: field.spec.tag or 0))

    @property
    def flexible_versions(self) -> Versions:
        """Returns the versions in use that are flexible."""
        return self.versions.intersect(self.flexible)

    def tagged_versions(self, field: FieldPlan) -> Versions:
        """Returns the versions in use that tag `field`."""
        spec = field.spec
        return self.versions.intersect(spec.versions).intersect(spec.tagged_versions)

    def always_tagged(self, field: FieldPlan) -> bool:
        """Returns True if all flexible versions in use tag `field`."""
        return self.tagged_versions(field).covers(self.flexible_versions)


def plan_structs(message: MessageSpec, style: Style) -> list[StructPlan]:
    """Returns the plans of the structs of `message`, inner structs first, the message last.

    In STRAIGHT and NATIVE style all fields of a struct are in a single `FieldRun`, so that each
    layout gets its own code. In BRANCHING style a `FieldRun` has neighboring fields that change at
    the same versions.
    """
    uses = versions_in_use(message)
    structs = list(message.structs())
    keyed = {struct.name for struct in structs if any(field.map_key for field in struct.fields)}
    whole = StructSpec(message.name, message.valid_versions, message.fields)
    elements = {
        field.element_type
        for struct in (*structs, whole)
        for field in struct.fields
        if field.is_struct_array
    }
    return [
        _plan(message, struct, uses[struct.name], keyed, style, of_array=struct.name in elements)
        for struct in structs
    ] + [_plan(message, whole, message.valid_versions, keyed, style, is_message=True)]


def _plan(
    message: MessageSpec,
    struct: StructSpec,
    versions: Versions,
    keyed: set[str],
    style: Style,
    *,
    is_message: bool = False,
    of_array: bool = False,
) -> StructPlan:
    fields = tuple(
        FieldPlan(
            field,
            attribute_name(field.name, of_message=is_message),
            field.is_struct_array and field.element_type in keyed,
            style is not Style.BRANCHING
            and bool(message.flexible_versions)
            and field.versions.highest < message.flexible_versions.lowest,
            style is not Style.BRANCHING
            and (message.name, struct.name) in UNIFORM_STRUCTS
            and _may_pack(field),
        )
        for field in struct.fields
    )
    items: list[FieldPlan | None] = [*fields, None]

    def form(item: FieldPlan | None, version: int) -> Form:
        flexible = version in message.flexible_versions
        if item is None:
            return TaggedFieldsForm(flexible)
        return field_form(item.spec, version, flexible=flexible)

    forms = [tuple(form(item, version) for version in versions) for item in items]
    groups: list[list[int]]
    if style is not Style.BRANCHING:
        groups = [list(range(len(items)))]
    else:
        numbered = groupby(range(len(items)), key=lambda index: _changes(forms[index]))
        groups = [list(group) for _, group in numbered]
    runs = []
    for group in groups if versions else []:  # a struct that no version uses has no runs
        columns = tuple(zip(*(forms[index] for index in group), strict=True))
        segments = tuple(
            (Versions(versions.lowest + low, versions.lowest + high), columns[low])
            for low, high in _segments(columns)
        )
        runs.append(FieldRun(tuple(items[index] for index in group), segments))
    return StructPlan(
        struct.name,
        is_message,
        of_array,
        style,
        versions,
        message.flexible_versions,
        fields,
        tuple(runs),
    )


def _may_pack(field: FieldSpec) -> bool:
    return (
        field.is_array
        and field.element_type in PRIMITIVE_TYPES
        and field.element_type not in _KINDS
        and not field.nullable_versions
        and not field.tagged_versions
        and attribute_name(field.name, of_message=False) not in NEVER_LAZY
    )


def _changes(forms: tuple[Form, ...]) -> tuple[int, ...]:
    """Returns the indexes at which the form differs from the previous form."""
    return tuple(index for index in range(1, len(forms)) if forms[index] != forms[index - 1])


def _segments(columns: tuple[tuple[Form, ...], ...]) -> list[tuple[int, int]]:
    """Returns the index ranges (first, last) of consecutive columns that are equal."""
    starts = [0] + [i for i in range(1, len(columns)) if columns[i] != columns[i - 1]]
    ends = [start - 1 for start in starts[1:]] + [len(columns) - 1]
    return list(zip(starts, ends, strict=True))


def _uuid_text(value: object) -> str:
    assert isinstance(value, bytes)
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def _quoted(text: str) -> str:
    """Returns the source of a string: an ASCII literal in double quotes."""
    inner = ascii(text)[1:-1]
    if ascii(text).startswith("'"):
        inner = inner.replace('"', '\\"').replace("\\'", "'")
    return f'"{inner}"'
