"""What the generated code of one message must do, version by version, as plain data.

The generator branches on versions only where the wire layout changes: a *segment* is a range of
versions in which an item (a field in its place, or the tagged fields behind a struct) has one
form, and a *run* is a group of neighbouring items whose segments begin at the same versions.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from kproto.schema.layout import FORMATS, FieldForm, field_form
from kproto.schema.naming import attribute_name, class_name, snake_case
from kproto.schema.specs import PRIMITIVE_TYPES, FieldSpec, MessageSpec, StructSpec
from kproto.schema.versions import Versions

from .presence import versions_in_use
from .source import chain, chains

__all__ = [
    "NEVER_LAZY",
    "PYTHON_TYPES",
    "FieldPlan",
    "Form",
    "Run",
    "StructPlan",
    "TagsForm",
    "plan_structs",
    "struct_body",
]

#: The Python type of each primitive type.
PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "uuid": "Uuid",
    "bytes": "bytes",
    "records": "bytes",
}


#: Attributes that are no property: in the body of a class it would hide a builtin that annotations
#: and decorators there name, or the slot behind it something that every struct inherits.
NEVER_LAZY = frozenset(
    {
        *("bool", "bytes", "classmethod", "float", "frozenset"),
        *("int", "property", "range", "str", "tuple"),
        *("classes", "definition", "generated", "is_protocol", "names"),
        *("read_fields", "shown", "unknown_tags", "write_fields"),
    }
)

#: Numbers that nobody knows by their digits.
_BOUNDS = {
    2**31 - 1: "2**31 - 1",
    -(2**31): "-(2**31)",
    2**32 - 1: "2**32 - 1",
    2**63 - 1: "2**63 - 1",
    -(2**63): "-(2**63)",
}


class TagsForm(NamedTuple):
    """The end of a struct in one version: tagged fields or none at all."""

    flexible: bool


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """One field of a struct as Python sees it."""

    spec: FieldSpec
    attribute: str
    collection: bool

    @property
    def nullable(self) -> bool:
        """True when the attribute may be None in some version."""
        return self.spec.default_value() is None or (
            bool(self.spec.nullable_versions) and self.spec.type not in FORMATS
        )

    @property
    def null_is_not_default(self) -> bool:
        """True for a struct that may be null and whose default is a struct of defaults."""
        return self.spec.is_struct and self.nullable and self.spec.default_value() is not None

    @property
    def lazy(self) -> bool:
        """True for a struct that is tagged wherever it exists: it is mostly absent.

        Its slot holds DEFAULT until somebody asks for it, which spares reading and writing three
        objects for each partition of a fetch. Where its property or its slot would get into the
        way of the class, it is there from the start.
        """
        spec = self.spec
        tagged = bool(spec.tagged_versions) and spec.tagged_versions.covers(spec.versions)
        return spec.is_struct and not self.nullable and tagged and self.attribute not in NEVER_LAZY

    @property
    def slot(self) -> str:
        """Where the value is stored."""
        return f"_{self.attribute}" if self.lazy else self.attribute

    @property
    def element(self) -> str:
        """The Python type of the field, or of an element of it."""
        name = self.spec.element_type
        if name in PRIMITIVE_TYPES:
            return PYTHON_TYPES.get(name, "int")
        return class_name(name)

    @property
    def annotation(self) -> str:
        """The type of the attribute."""
        made = self.element
        if self.collection:
            made = f"{made}Collection"
        elif self.spec.is_array:
            made = f"list[{made}]"
        return f"{made} | None" if self.nullable else made

    @property
    def parameter(self) -> str:
        """The type of the parameter of `__init__`."""
        made = f"Iterable[{self.element}]" if self.spec.is_array else self.element
        return f"{made} | None" if self.nullable or self.spec.is_struct else made

    @property
    def default(self) -> str:
        """The default of the parameter of `__init__`, as source."""
        value = self.spec.default_value()
        if self.null_is_not_default:
            return "DEFAULT"
        if value is None or self.spec.is_struct:
            return "None"
        if self.spec.is_array:
            return "()"
        return self._scalar(value)

    def is_not_default(self, value: str) -> str:
        """Source of the test that `value`, the source of an attribute, is not the default.

        It never takes None for a default that is merely empty: null must not vanish.
        """
        default = self.spec.default_value()
        if default is None:
            return f"{value} is not None"
        if self.spec.is_struct:
            test = f"not _is_default_{snake_case(self.spec.type)}({value})"
            if self.lazy:
                return f"{value} is not DEFAULT and {test}"
            return f"{value} is None or {test}" if self.nullable else test
        if self.spec.is_array:
            test = f"len(elements({value})) > 0"
            return f"{value} is None or {test}" if self.nullable else test
        if isinstance(default, bool):
            return f"not BOOLS[{value}]" if default else f"BOOLS[{value}]"
        return f"{self._compared(value)} != {self._scalar(default)}"

    def is_default(self, value: str) -> str:
        """Source of the test that `value` is the default: the opposite of `is_not_default`."""
        default = self.spec.default_value()
        if default is None:
            return f"{value} is None"
        if self.spec.is_struct:
            test = f"_is_default_{snake_case(self.spec.type)}({value})"
            if self.lazy:
                return f"{value} is DEFAULT or {test}"
            return f"{value} is not None and {test}" if self.nullable else test
        if self.spec.is_array:
            test = f"len(elements({value})) == 0"
            return f"{value} is not None and {test}" if self.nullable else test
        if isinstance(default, bool):
            return f"BOOLS[{value}]" if default else f"not BOOLS[{value}]"
        return f"{self._compared(value)} == {self._scalar(default)}"

    @property
    def compared_by(self) -> str | None:
        """What refuses, in a test of the default, a value that only equals it: 1.0 is no int."""
        if self.spec.default_value() is None or self.spec.is_struct:
            return None
        if self.spec.is_array:
            return "elements"
        kind = PYTHON_TYPES.get(self.spec.type, "int")
        return {"bool": "BOOLS", "int": "index"}.get(kind)

    def _compared(self, value: str) -> str:
        """Source of what stands for `value` in a comparison."""
        return f"index({value})" if self.compared_by == "index" else value

    def fresh_default(self) -> str:
        """Source that makes the default of the attribute, never a shared list or struct."""
        if self.lazy:
            return "DEFAULT"
        value = self.spec.default_value()
        if value is None:
            return "None"
        if self.spec.is_struct:
            return f"{class_name(self.spec.type)}()"
        if self.collection:
            return f"{self.element}Collection()"
        if self.spec.is_array:
            return "[]"
        return self._scalar(value)

    def _scalar(self, value: object) -> str:
        if self.spec.type == "uuid":
            return "ZERO_UUID" if value == bytes(16) else f'Uuid.parse("{_uuid_text(value)}")'
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, bytes):
            return 'b""'
        if value in _BOUNDS:
            return _BOUNDS[value]
        return repr(value).replace("e+", "e")


Form = FieldForm | TagsForm


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring items that change at the same versions, with their forms in each segment."""

    items: tuple[FieldPlan | None, ...]  # None stands for the tagged fields
    segments: tuple[tuple[Versions, tuple[Form, ...]], ...]


@dataclass(frozen=True, slots=True)
class StructPlan:
    """A struct of a message, or the message itself, over the versions in which it is used."""

    name: str
    is_message: bool
    versions: Versions
    flexible: Versions
    fields: tuple[FieldPlan, ...]
    runs: tuple[Run, ...]

    @property
    def class_name(self) -> str:
        """The name of the class."""
        return class_name(self.name)

    @property
    def snake(self) -> str:
        """The name inside function names."""
        return snake_case(self.name)

    @property
    def keys(self) -> tuple[FieldPlan, ...]:
        """The fields that are the key in a collection."""
        return tuple(field for field in self.fields if field.spec.map_key)

    @property
    def tagged(self) -> tuple[FieldPlan, ...]:
        """The fields that are tagged in some version, by number.

        Their numbers are taken in all flexible versions: in one that does not have the field, the
        tag is refused, as Kafka refuses it.
        """
        if not self.flexible_versions:
            return ()
        tagged = [field for field in self.fields if field.spec.tag is not None]
        return tuple(sorted(tagged, key=lambda field: field.spec.tag or 0))

    @property
    def flexible_versions(self) -> Versions:
        """The versions of use that are flexible."""
        return self.versions.intersect(self.flexible)

    def tagged_versions(self, field: FieldPlan) -> Versions:
        """The versions of use in which `field` is tagged."""
        spec = field.spec
        return self.versions.intersect(spec.versions).intersect(spec.tagged_versions)


def plan_structs(message: MessageSpec, *, straight: bool) -> list[StructPlan]:
    """Every struct of `message`, inner ones first, the message itself last.

    With `straight` all items of a struct form one run, so that every version has its own
    straight-line code; else only neighbours with equal segments do.
    """
    uses = versions_in_use(message)
    structs = list(message.structs())
    keyed = {struct.name for struct in structs if any(field.map_key for field in struct.fields)}
    whole = StructSpec(message.name, message.valid_versions, message.fields)
    return [
        _plan(message, struct, uses[struct.name], keyed, straight=straight) for struct in structs
    ] + [_plan(message, whole, message.valid_versions, keyed, straight=straight, is_message=True)]


def struct_body(
    plan: StructPlan,
    block: Callable[[Run, tuple[Form, ...]], list[str]],
    *,
    straight: bool,
) -> list[str]:
    """The lines that `block` makes of each run in each of its layouts, behind version tests.

    With `straight` every layout stands by itself; else what layouts share stands once.
    """
    runs = [
        [(versions, block(run, forms)) for versions, forms in run.segments] for run in plan.runs
    ]
    if straight:
        (layouts,) = runs
        return chain(layouts, plan.versions)
    return chains(runs, plan.versions)


def _plan(
    message: MessageSpec,
    struct: StructSpec,
    versions: Versions,
    keyed: set[str],
    *,
    straight: bool,
    is_message: bool = False,
) -> StructPlan:
    fields = tuple(
        FieldPlan(
            field,
            attribute_name(field.name, of_message=is_message),
            field.is_struct_array and field.element_type in keyed,
        )
        for field in struct.fields
    )
    items: list[FieldPlan | None] = [*fields, None]

    def form(item: FieldPlan | None, version: int) -> Form:
        flexible = version in message.flexible_versions
        if item is None:
            return TagsForm(flexible)
        return field_form(item.spec, version, flexible=flexible)

    forms = [tuple(form(item, version) for version in versions) for item in items]
    groups: list[list[int]]
    if straight:
        groups = [list(range(len(items)))]
    else:
        numbered = groupby(range(len(items)), key=lambda index: _changes(forms[index]))
        groups = [list(group) for _, group in numbered]
    runs = []
    for group in groups if versions else []:  # a field of no valid version may hold a struct
        columns = tuple(zip(*(forms[index] for index in group), strict=True))
        segments = tuple(
            (Versions(versions.lowest + low, versions.lowest + high), columns[low])
            for low, high in _segments(columns)
        )
        runs.append(Run(tuple(items[index] for index in group), segments))
    return StructPlan(
        struct.name, is_message, versions, message.flexible_versions, fields, tuple(runs)
    )


def _changes(forms: tuple[Form, ...]) -> tuple[int, ...]:
    """The indexes at which the form differs from the one before."""
    return tuple(index for index in range(1, len(forms)) if forms[index] != forms[index - 1])


def _segments(columns: tuple[tuple[Form, ...], ...]) -> list[tuple[int, int]]:
    """The index ranges, both ends included, in which the columns stay equal."""
    starts = [0] + [i for i in range(1, len(columns)) if columns[i] != columns[i - 1]]
    ends = [start - 1 for start in starts[1:]] + [len(columns) - 1]
    return list(zip(starts, ends, strict=True))


def _uuid_text(value: object) -> str:
    assert isinstance(value, bytes)
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def _quoted(text: str) -> str:
    """A str literal in double quotes that contains nothing but ASCII."""
    inner = ascii(text)[1:-1]
    if ascii(text).startswith("'"):
        inner = inner.replace('"', '\\"').replace("\\'", "'")
    return f'"{inner}"'
