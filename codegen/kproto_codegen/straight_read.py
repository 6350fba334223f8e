"""Emits straight-line reading for the messages on the data path, one block for each layout.

What makes it fast: neighbouring numbers are read by one Struct, together with the length or the
count that follows them; short strings, bytes and arrays are read in place; and whatever is long,
null where that is rare, or wrong is left to the functions of `kproto.wire.reading`, which the
block calls for the same position again.
"""

from __future__ import annotations

from kproto.schema.layout import FORMATS, FieldForm, Presence
from kproto.schema.specs import PRIMITIVE_TYPES

from .imports import Imports
from .plan import FieldPlan, Form, Run, StructPlan, TagsForm
from .read_values import nested_value, primitive_elements, reading_function
from .source import indent

__all__ = ["straight_read_block"]


def straight_read_block(
    plan: StructPlan, run: Run, forms: tuple[Form, ...], target: str, imports: Imports
) -> list[str]:
    """The lines that read one struct in one layout into `target`."""
    block = _Block(plan, target, imports)
    for item, form in zip(run.items, forms, strict=True):
        if isinstance(form, TagsForm):
            block.tags(form)
        else:
            assert item is not None
            block.field(item, form)
    block.flush()
    return block.lines


class _Block:
    """Lines, and the numbers that the next Struct is to read."""

    def __init__(self, plan: StructPlan, target: str, imports: Imports) -> None:
        self.plan = plan
        self.target = target
        self.imports = imports
        self.lines: list[str] = []
        self._numbers: list[tuple[str, str]] = []
        self._behind: list[str] = []

    def flush(self) -> None:
        """Read the numbers that wait."""
        if self._numbers:
            name, size = self.imports.shape([kind for kind, _ in self._numbers])
            places = ", ".join(place for _, place in self._numbers)
            target = places if len(self._numbers) > 1 else f"({places},)"
            self.lines += [f"{target} = {name}.unpack_from(data, pos)", f"pos += {size}"]
            self.lines += self._behind
            self._numbers, self._behind = [], []

    def field(self, field: FieldPlan, form: FieldForm) -> None:
        spec, place = field.spec, f"{self.target}.{field.slot}"
        if form.presence is not Presence.PLAIN:
            self.imports.default(field)
            self.lines.append(f"{place} = {field.fresh_default()}")
        elif spec.is_array:
            self._array(field, form, place)
        elif spec.is_struct:
            self.flush()
            self.lines += nested_value(field, form, place, self.imports)
        elif spec.type == "uuid":
            self.imports.wire("uuid", "Uuid")
            self._numbers.append(("uuid", field.attribute))
            self._behind.append(f"{place} = Uuid({field.attribute})")
        elif spec.type in FORMATS:
            self._numbers.append((spec.type, place))
        else:
            self._octets(field, form, place)

    def tags(self, form: TagsForm) -> None:
        """The end of the struct: mostly one byte, 0."""
        place = f"{self.target}._unknown_tags"
        if not form.flexible:
            self.flush()
            self.lines.append(f"{place} = None")
            return
        start = self._take_byte("tags")
        if self.plan.tagged:
            read = f"pos = _read_{self.plan.snake}_tags({self.target}, data, {start}, version)"
        else:
            self.imports.wire("reading", "read_unknown_tags")
            read = f"{place}, pos = read_unknown_tags(data, {start})"
        self.lines += ["if tags:", f"    {read}", "else:", f"    {place} = None"]

    def _take(self, kind: str, local: str) -> None:
        """Read a length along with the numbers in front of it."""
        self._numbers.append((kind, local))
        self.flush()

    def _take_byte(self, local: str) -> str:
        """Read a byte, `pos` being behind it then; returns the source of where it stood."""
        if self._numbers:
            self._take("uint8", local)
        else:
            self.lines += [f"{local} = data[pos]", "pos += 1"]
        return "pos - 1"

    def _octets(self, field: FieldPlan, form: FieldForm, place: str) -> None:
        """A string or bytes."""
        kind = "string" if field.spec.type == "string" else "bytes"
        function = reading_function(kind, form)
        decoded = "data[pos:end]" + (".decode()" if kind == "string" else "")
        read = ["    end = pos + size", f"    {place} = {decoded}", "    pos = end"]
        if form.compact and field.spec.type == "records":
            # Mostly too long for a length of one byte.
            self.flush()
            self.imports.wire("reading", function)
            self.lines.append(f"{place}, pos = {function}(data, pos)")
        elif form.compact:
            self._take_byte("size")
            self.imports.wire("reading", function)
            read[0] += " - 1"
            self.lines += ["if 0 < size < 128:", *read]
            if form.nullable:
                self.lines += ["elif not size:", f"    {place} = None"]
            self.lines += ["else:", f"    {place}, pos = {function}(data, pos - 1)"]
        else:
            self.imports.wire("faults", "WireFault")
            self._take("int16" if kind == "string" else "int32", "size")
            self.lines += ["if size >= 0:", *read]
            if form.nullable:
                self.lines += ["elif size == -1:", f"    {place} = None"]
            self.lines += ["else:", "    raise WireFault"]

    def _array(self, field: FieldPlan, form: FieldForm, place: str) -> None:
        """An array; its count is checked against the bytes left only where it is not small."""
        element = field.spec.element_type
        if element in FORMATS and element != "uuid":
            self._numbers_array(element, form, place)
            return
        function = reading_function("array_length", form)
        self.imports.wire("reading", function)
        if form.compact:
            self._take_byte("length")
            # Null is 0, so that one less is -1, as in the form that is not compact.
            test = "length < 128" if form.nullable else "0 < length < 128"
            self.lines += [f"if {test}:", "    length -= 1", "else:"]
            self.lines.append(f"    length, pos = {function}(data, pos - 1)")
        else:
            self._take("int32", "length")
            lowest = "-1" if form.nullable else "0"
            self.lines += [f"if not {lowest} <= length < 128:"]
            self.lines.append(f"    length, pos = {function}(data, pos - 4)")
        if element in PRIMITIVE_TYPES:
            read = primitive_elements(element, form, place, self.imports)
        else:
            call = f"_read_{self.imports.struct_snake(element)}(data, pos, length, version)"
            read = [f"{place}, pos = {call}"]
        if form.nullable:
            read = ["if length < 0:", f"    {place} = None", "else:", *indent(read)]
        self.lines += read

    def _numbers_array(self, element: str, form: FieldForm, place: str) -> None:
        function = reading_function("array_length", form)
        self.imports.wire("reading", function)
        shapes = self.imports.array_shapes(element)
        if form.compact:
            self._take_byte("length")
            some, count, none, null, start = "1 < length < 128", "length - 1", "1", "0", "pos - 1"
        else:
            self._take("int32", "length")
            some, count, none, null, start = "0 < length < 128", "length", "0", "-1", "pos - 4"
        slow = primitive_elements(element, form, place, self.imports)
        if form.nullable:
            slow = ["if length < 0:", f"    {place} = None", "else:", *indent(slow)]
        self.lines += [
            f"if {some}:",
            f"    shape = {shapes}[{count}]",
            f"    {place} = list(shape.unpack_from(data, pos))",
            "    pos += shape.size",
            f"elif length == {none}:",
            f"    {place} = []",
            *([f"elif length == {null}:", f"    {place} = None"] if form.nullable else []),
            "else:",
            f"    length, pos = {function}(data, {start})",
            *indent(slow),
        ]
