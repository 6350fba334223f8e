"""Emits the code that reads each value: with calls (BRANCHING, NATIVE) or inline (STRAIGHT style).

Inline code is fast for three reasons. A single Struct reads neighboring numbers together with the
length or count after them, and skips an array that is mostly empty. A single Struct reads all
structs of an array if they have the same size. Short strings, bytes and arrays are read without a
call. For a long or invalid value, the code calls the functions of `kproto.wire.reading` at the same
position, or raises WireFault.
"""

from __future__ import annotations

from struct import calcsize
from typing import Final, NamedTuple

from kproto.schema.layout import FORMATS, FieldForm

from .blocks import StructCodeEmitter, elements_function, value_function
from .code import Code, Condition, For, Statement, choose, when
from .imports import Imports
from .plan import FieldPlan, FieldRun, Form, StructPlan, Style, TaggedFieldsForm, ValueKind

__all__ = ["READERS", "ReadCodeEmitter", "fixed_size_elements", "uniform_elements"]

#: From this many elements on, a single Struct for all is faster than reading each.
_SEVERAL: Final = 5


class ReadCodeEmitter(StructCodeEmitter):
    """Emits calls of `kproto.wire.reading`. The emitted code reads at `pos` and advances it."""

    def flush(self) -> None:
        if self.numbers:
            name, size = self.imports.shape([kind for kind, _ in self.numbers])
            exprs = ", ".join(expr for _, expr in self.numbers)
            targets = exprs if len(self.numbers) > 1 else f"({exprs},)"
            self.code += [f"{targets} = {name}.unpack_from(data, pos)", f"pos += {size}"]
            self.numbers = []

    def number(self, field: FieldPlan, expr: str) -> None:
        self.numbers.append((field.spec.type, expr))

    def uuid(self, field: FieldPlan, expr: str) -> None:
        self.flush()
        self.imports.wire("uuid", "Uuid")
        self.code += [f"{expr} = Uuid(data[pos : pos + 16])", "pos += 16"]

    def string(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self.flush()
        self.code.append(f"{expr}, pos = {self.function('string', form)}(data, pos)")

    def octets(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self.flush()
        self.code.append(f"{expr}, pos = {self.function('bytes', form)}(data, pos)")

    def nested(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        def read(pos: str) -> str:
            return f"({expr},), pos = _read_{field.struct_snake}(data, {pos}, 1, version)"

        if not form.nullable:
            self.code.append(read("pos"))
        elif form.compact:
            self.imports.wire("reading", "read_struct_mark")
            self.code += [
                "present, pos = read_struct_mark(data, pos)",
                when("present", [read("pos")], [f"{expr} = None"]),
            ]
        else:
            null = [f"{expr} = None", "pos += 1"]
            self.code.append(when("data[pos] > 127", null, [read("pos + 1")]))

    def array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self.flush()
        self.code.append(f"length, pos = {self.function('array_length', form)}(data, pos)")
        self.code += self.elements(field, form, expr)

    def absent(self, field: FieldPlan, expr: str) -> None:
        self.imports.default(field)
        self.code.append(f"{expr} = {field.first_value()}")

    def tagged(self, field: FieldPlan, expr: str) -> None:
        self.absent(field, expr)  # sets the default, which reading the tag replaces

    def end(self, form: TaggedFieldsForm) -> None:
        self.flush()
        none = f"{self.target}._unknown_tags = None"
        if form.flexible:
            self.code.append(when("data[pos]", [self.tags("pos")], [none, "pos += 1"]))
        else:
            self.code.append(none)

    def function(self, kind: str, form: FieldForm) -> str:
        """Returns the name of the function that reads a value of `kind`; registers its import."""
        name = value_function("read", kind, form)
        self.imports.wire("reading", name)
        return name

    def tags(self, start: str) -> str:
        """Returns the code that reads the tagged fields at `start`."""
        if self.plan.tagged:
            return f"pos = _read_{self.plan.snake_name}_tags({self.target}, data, {start}, version)"
        self.imports.wire("reading", "read_unknown_tags")
        return f"{self.target}._unknown_tags, pos = read_unknown_tags(data, {start})"

    def elements(self, field: FieldPlan, form: FieldForm, expr: str) -> Code:
        """Returns the code that reads the elements of an array into `expr`.

        At run time, the variable `length` has the number of elements; a negative number means null.
        """
        read: Code
        several = elements_function("read", field, form)
        if field.element_kind is ValueKind.STRUCT:
            read = [f"{expr}, pos = _read_{field.struct_snake}(data, pos, length, version)"]
        elif several is not None:
            function, extra = several
            self.imports.wire("reading", function)
            read = [f"{expr}, pos = {function}(data, pos, length{extra})"]
        else:
            function = self.function("bytes", form._replace(nullable=False))
            each = (f"element, pos = {function}(data, pos)", f"{expr}.append(element)")
            read = [f"{expr} = []", For("_ in range(length)", each)]
        if form.nullable:
            return [when("length < 0", [f"{expr} = None"], read)]
        return read


class _BranchingReadEmitter(ReadCodeEmitter):
    """Emits function calls (BRANCHING style).

    A bool field gets inline code if the fields before and after it are not numbers.
    """

    def flush(self) -> None:
        match self.numbers:
            case [("bool", expr)]:
                self.code += [f"{expr} = data[pos] != 0", "pos += 1"]
                self.numbers = []
            case _:
                super().flush()


class _ArrayBetweenNumbers(NamedTuple):
    """An array, usually empty, whose count is read together with the numbers around the array."""

    #: The index of the array's count among the collected numbers.
    count_index: int
    array: tuple[FieldPlan, FieldForm, str]


class _InlineReadEmitter(ReadCodeEmitter):
    """Emits inline code for short values, and function calls for other values (STRAIGHT style)."""

    _after_numbers: tuple[Statement, ...] = ()  # statements that use the collected numbers
    _deferred: _ArrayBetweenNumbers | None = None

    def flush(self) -> None:
        deferred, self._deferred = self._deferred, None
        if deferred is None:
            super().flush()
        elif deferred.count_index + 1 == len(self.numbers):  # no numbers follow the array
            self.numbers.pop()
            self._general_array(*deferred.array)
        else:
            self._flush_deferred(deferred)
        self.code += self._after_numbers
        self._after_numbers = ()

    def _flush_deferred(self, deferred: _ArrayBetweenNumbers) -> None:
        """Emits code that reads the numbers before and after an array together.

        The numbers after the array are right only if the array is empty or null. If the array has
        elements, the code then reads the array, and reads the numbers after it again.
        """
        field, form, expr = deferred.array
        following = self.numbers[deferred.count_index + 1 :]
        _, size = self.imports.shape([kind for kind, _ in following])
        super().flush()
        before = len(self.code)
        if form.compact:  # keeps null, because an unnecessarily long varint may encode it
            present, start = form, f"pos - {size + 1}"
        else:
            present, start = form._replace(nullable=False), f"pos - {size + 4}"
        self.code.append(f"length, pos = {self.function('array_length', present)}(data, {start})")
        self.code += self.elements(field, present, expr)
        self.numbers = following
        super().flush()
        slow, self.code = self.code[before:], self.code[:before]
        null, none = ("0", "1") if form.compact else ("-1", "0")
        made = f"{field.element}Collection()" if field.collection else "[]"
        branches = [(f"held == {none}", [f"{expr} = {made}"])]
        if form.nullable:
            branches.insert(0, (f"held == {null}", [f"{expr} = None"]))
        self.code.append(choose(branches, slow))

    def uuid(self, field: FieldPlan, expr: str) -> None:
        self.imports.wire("uuid", "Uuid")
        self.numbers.append(("uuid", field.attribute))
        self._after_numbers += (f"{expr} = Uuid({field.attribute})",)

    def string(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self._sized("string", "int16", "data[pos:end].decode()", form, expr)

    def octets(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        if form.compact and field.mostly_long:
            self._long_octets(form, expr)
        else:
            self._sized("bytes", "int32", "data[pos:end]", form, expr)

    def array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        if field.element_kind in (ValueKind.NUMBER, ValueKind.BOOL):
            self._numbers_array(field, form, expr)
        elif field.mostly_empty:
            if self._deferred:
                self.flush()
            self._deferred = _ArrayBetweenNumbers(len(self.numbers), (field, form, expr))
            self.numbers.append(("uint8" if form.compact else "int32", "held"))
        else:
            self._general_array(field, form, expr)

    def _general_array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        """Emits code that reads an array.

        The code reads a count below 128 inline, and calls a function for a larger or invalid count.
        """
        function = self.function("array_length", form)
        if form.compact:
            self._take_byte("length")
            # A compact count is encoded as count plus 1, and null as 0, which becomes -1.
            test = "length < 128" if form.nullable else "0 < length < 128"
            slow = f"length, pos = {function}(data, pos - 1)"
            self.code.append(when(test, ["length -= 1"], [slow]))
        else:
            self._take_length("int32", "length")
            lowest = "-1" if form.nullable else "0"
            slow = f"length, pos = {function}(data, pos - 4)"
            self.code.append(when(f"not {lowest} <= length < 128", [slow]))
        self.code += self.elements(field, form, expr)

    def end(self, form: TaggedFieldsForm) -> None:
        """Emits code that reads the tagged fields.

        The emitted code calls a function only if the number of tagged fields in the data is not 0.
        """
        if not form.flexible:
            super().end(form)
            return
        self._take_byte("tags")
        none = f"{self.target}._unknown_tags = None"
        self.code.append(when("tags", [self.tags("pos - 1")], [none]))

    def _take_length(self, kind: str, local: str) -> None:
        """Emits code that reads a length into `local`.

        If numbers precede the length, one Struct reads the numbers and the length.
        """
        self.numbers.append((kind, local))
        self.flush()

    def _take_byte(self, local: str) -> None:
        """Emits code that reads a byte into `local`.

        If numbers precede the byte, one Struct reads the numbers and the byte.
        """
        if self.numbers:
            self._take_length("uint8", local)
        else:
            self.code += [f"{local} = data[pos]", "pos += 1"]

    def _sized(self, kind: str, length: str, decoded: str, form: FieldForm, expr: str) -> None:
        """Emits the code that reads a string or bytes.

        `decoded` is the source of the expression that decodes `data[pos:end]`.
        """
        null = [f"{expr} = None"]
        if form.compact:
            self._take_byte("size")
            present, none, end = "0 < size < 128", "not size", "pos + size - 1"
            otherwise = f"{expr}, pos = {self.function(kind, form)}(data, pos - 1)"
        else:
            self._take_length(length, "size")
            present, none, end = "size >= 0", "size == -1", "pos + size"
            self.imports.wire("faults", "WireFault")
            otherwise = "raise WireFault"
        read = (present, [f"end = {end}", f"{expr} = {decoded}", "pos = end"])
        branches = [read, (none, null)] if form.nullable else [read]
        self.code.append(choose(branches, [otherwise]))

    def _long_octets(self, form: FieldForm, expr: str) -> None:
        """Emits the code for bytes whose length is mostly a varint of two bytes.

        The code always reads two bytes. Two bytes exist even if the length has only one byte,
        because the tagged fields at the end of the struct have at least one byte.
        """
        self.numbers.append(("uint8", "size"))
        self._take_length("uint8", "more")
        read = ["end = pos + size + (more << 7) - 129", f"{expr} = data[pos:end]", "pos = end"]
        otherwise = f"{expr}, pos = {self.function('bytes', form)}(data, pos - 2)"
        self.code.append(when("size > 127 and 0 < more < 128", read, [otherwise]))

    def _numbers_array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        function = self.function("array_length", form)
        shapes, _ = self.imports.array_shapes(field.spec.element_type)
        if form.compact:
            self._take_byte("length")
            present, count, none, null, start = (
                "1 < length < 128",
                "length - 1",
                "1",
                "0",
                "pos - 1",
            )
        else:
            self._take_length("int32", "length")
            present, count, none, null, start = "0 < length < 128", "length", "0", "-1", "pos - 4"
        read = [
            f"shape = {shapes}[{count}]",
            f"{expr} = list(shape.unpack_from(data, pos))",
            "pos += shape.size",
        ]
        slow = [f"length, pos = {function}(data, {start})", *self.elements(field, form, expr)]
        branches = [(present, read), (f"length == {none}", [f"{expr} = []"])]
        if form.nullable:
            branches.append((f"length == {null}", [f"{expr} = None"]))
        self.code.append(choose(branches, slow))


class _FixedSizeReadEmitter(_InlineReadEmitter):
    """Emits code that sets all fields of a struct from the tuple `fields`."""

    def __init__(self, plan: StructPlan, imports: Imports) -> None:
        super().__init__(plan, "entry", imports)
        self.shape = ""
        self.size = 0

    def flush(self) -> None:
        if not self.numbers:
            return
        self._take_shape([kind for kind, _ in self.numbers])
        exprs = [expr for kind, expr in self.numbers if kind != "skip"]
        self.numbers = []
        targets = ", ".join(exprs) if len(exprs) > 1 else f"({exprs[0]},)"
        self.code.append(f"{targets} = fields")
        super().flush()

    def _take_shape(self, kinds: list[str]) -> None:
        self.shape, self.size = self.imports.shape(kinds)

    def end(self, form: TaggedFieldsForm) -> None:
        self.numbers.append(("skip", ""))
        super().end(TaggedFieldsForm(flexible=False))


def fixed_size_elements(
    plan: StructPlan, imports: Imports, run: FieldRun, forms: tuple[Form, ...], each: Code
) -> Code:
    """Returns code that reads `count` structs of the same size with one `struct.Struct`.

    `each` is code that reads the structs one by one. The returned code runs `each` if there are few
    structs, if a struct has tagged fields, or if the data ends early.
    """
    reader = _FixedSizeReadEmitter(plan, imports)
    code = reader.struct(run, forms)
    new = f"entry = new({plan.class_name})"
    together: Code = [
        For(
            f"fields in {reader.shape}.iter_unpack(data[pos:stop])",
            (new, *code, "entries.append(entry)"),
        ),
        "pos = stop",
    ]
    tags = f"data[pos + {reader.size - 1} : stop : {reader.size}]"
    none = r'b"\0" * count'
    tests = (f"count >= {_SEVERAL}", f"{tags} == {none}")
    return [
        f"stop = pos + {reader.size} * count",
        when(Condition(tests, comment="no tagged fields"), together, each),
    ]


class _UniformReadEmitter(_FixedSizeReadEmitter):
    """Emits code like `_FixedSizeReadEmitter`, for structs that also have arrays of numbers.

    The emitted code sets each array to its bytes, and does not decode its elements.
    """

    def _take_shape(self, kinds: list[str]) -> None:
        *fields, _ = kinds  # the last is the number of tagged fields
        self.shape = self.imports.uniform_shapes(fields)

    def array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self.numbers.append((f"{field.spec.element_type}[]", expr))


def uniform_elements(
    plan: StructPlan, imports: Imports, run: FieldRun, forms: tuple[Form, ...], each: Code
) -> Code:
    """Returns code that reads `count` structs of equal size with a single `struct.Struct`.

    The arrays in the structs are read as bytes. The returned code runs the code `each` instead if
    there are few structs, or if `UniformStructs` refuses the structs, for example because their
    arrays have different counts.
    """
    reader = _UniformReadEmitter(plan, imports)
    code = reader.struct(run, forms)
    new = f"entry = new({plan.class_name})"
    together: Code = [
        "stop = pos + uniform.size * count",
        For("fields in uniform.iter_unpack(data[pos:stop])", (new, *code, "entries.append(entry)")),
        "pos = stop",
    ]
    return [
        f"uniform = {reader.shape}.of(data, pos, count) if count >= {_SEVERAL} else None",
        when("uniform is not None", together, each),
    ]


class _NativeReadEmitter(ReadCodeEmitter):
    """Emits a call for each value (NATIVE style), numbers included, and sets slots by index.

    The emitted code uses the variable `value`, and `default` for DEFAULT.
    """

    def flush(self) -> None:
        offset = 0
        for kind, expr in self.numbers:
            at = f"pos + {offset}" if offset else "pos"
            if kind == "bool":
                self._store(expr, f"data[{at}] != 0")
            else:
                self.imports.wire("number_reading", f"read_{kind}")
                self._store(expr, f"read_{kind}(data, {at})")
            offset += calcsize(f">{FORMATS[kind]}")
        if offset:
            self.code.append(f"pos += {offset}")
        self.numbers = []

    def uuid(self, field: FieldPlan, expr: str) -> None:
        self.flush()
        self.imports.wire("uuid", "Uuid")
        self._store(expr, "Uuid(data[pos : pos + 16])")
        self.code.append("pos += 16")

    def string(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        super().string(field, form, self.imports.variable("value"))
        self._store(expr, "value")

    def octets(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        super().octets(field, form, self.imports.variable("value"))
        self._store(expr, "value")

    def nested(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        super().nested(field, form, self.imports.variable("value"))
        self._store(expr, "value")

    def array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        super().array(field, form, self.imports.variable("value"))
        self._store(expr, "value")

    def absent(self, field: FieldPlan, expr: str) -> None:
        self.imports.default(field)
        value = field.first_value()
        self._store(expr, self.imports.variable("default") if value == "DEFAULT" else value)

    def end(self, form: TaggedFieldsForm) -> None:
        self.flush()
        none = self._stored("_unknown_tags", "None")
        if not form.flexible:
            self.code.append(none)
        elif self.plan.tagged:
            self.code.append(when("data[pos]", [self.tags("pos")], [none, "pos += 1"]))
        else:
            self.imports.wire("reading", "read_unknown_tags")
            read = f"{self.imports.variable('value')}, pos = read_unknown_tags(data, pos)"
            stored = self._stored("_unknown_tags", "value")
            self.code.append(when("data[pos]", [read, stored], [none, "pos += 1"]))

    def _store(self, expr: str, value: str) -> None:
        self.code.append(self._stored(expr.removeprefix(f"{self.target}."), value))

    def _stored(self, name: str, value: str) -> str:
        """Returns the code that sets the slot of the field or attribute `name`."""
        slot = next((f.slot for f in self.plan.fields if name in (f.attribute, f.slot)), name)
        self.imports.wire("c_functions", "set_slot")
        return f'set_slot({self.target}, "{slot}", {self.plan.slots.index(slot)}, {value})'

    def elements(self, field: FieldPlan, form: FieldForm, expr: str) -> Code:
        if field.spec.element_type != "int32":
            return super().elements(field, form, expr)
        self.imports.wire("c_functions", "int32s_at")
        read: Code = [f"{expr} = int32s_at(data, pos, length)", "pos += 4 * length"]
        if form.nullable:
            return [when("length < 0", [f"{expr} = None"], read)]
        return read


#: The emitter of the reading code, by style.
READERS: Final[dict[Style, type[ReadCodeEmitter]]] = {
    Style.BRANCHING: _BranchingReadEmitter,
    Style.STRAIGHT: _InlineReadEmitter,
    Style.NATIVE: _NativeReadEmitter,
}
