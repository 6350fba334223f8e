"""Emits the code that writes each value: with calls (BRANCHING style) or inline (STRAIGHT style).

Inline code is fast for two reasons. A single Struct writes neighboring numbers together with the
length or count after them, or the numbers of an array together with their count. Most strings are
written without a call.
"""

from __future__ import annotations

from typing import ClassVar, Final

from kproto.schema.layout import FieldForm

from .blocks import StructCodeEmitter, elements_function, value_function
from .code import Code, For, choose, when
from .plan import FieldPlan, Style, TaggedFieldsForm, ValueKind

__all__ = ["WRITERS", "NonNullWriteEmitter", "WriteCodeEmitter"]

#: The bytes of null if the type is not compact; a compact null is 0.
_NULL_STRUCT: Final = r"\xff"
_NULL_STRING: Final = r"\xff\xff"
_NULL_INT32: Final = r"\xff\xff\xff\xff"


class WriteCodeEmitter(StructCodeEmitter):
    """Emits calls of `kproto.wire.writing`. The emitted code passes all bytes to `append`."""

    #: The source of the function to which the emitted code itself passes bytes.
    append: ClassVar[str] = "append"

    def flush(self) -> None:
        match self.numbers:
            case []:
                return
            case [("uuid", value)]:  # bytes, which need no Struct
                self.code.append(f"{self.append}({value})")
            case _:
                name, _ = self.imports.shape([kind for kind, _ in self.numbers])
                values = ", ".join(value for _, value in self.numbers)
                self.code.append(f"{self.append}({name}.pack({values}))")
        self.numbers = []

    def number(self, field: FieldPlan, expr: str) -> None:
        value = self.bool_value(expr) if field.kind is ValueKind.BOOL else expr
        self.numbers.append((field.spec.type, value))

    def uuid(self, field: FieldPlan, expr: str) -> None:
        self.flush()
        self.numbers.append(("uuid", self.uuid_value(expr)))
        self.flush()

    def string(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self._whole("string", field, form, expr)

    def octets(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self._whole("bytes", field, form, expr)

    def _whole(self, kind: str, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self.flush()
        self.refuse_null(field, form, expr)
        self.code.append(self.call(value_function("write", kind, form), expr))

    def nested(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self.refuse_null(field, form, expr)
        write = [self.structs(field, f"({expr},)")]
        if form.nullable:
            write.insert(0, f'{self.append}(b"\\x01")')
        self.or_null(form, expr, _NULL_STRUCT, write)

    def array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self.flush()
        self.refuse_null(field, form, expr)
        length = self.call(_function_of_present("array_length", form), f"len({expr})")
        self.or_null(form, expr, _NULL_INT32, [length, *self.elements(field, form, expr)])

    def absent(self, field: FieldPlan, expr: str) -> None:
        if not field.spec.ignorable:
            self.imports.default_tests(field)
            self.imports.wire("faults", "WireFault")
            _, is_set = field.default_tests(expr)
            self.code.append(when(is_set, ["raise WireFault"]))

    def tagged(self, field: FieldPlan, expr: str) -> None:
        pass  # `end` writes the tagged fields

    def end(self, form: TaggedFieldsForm) -> None:
        """Emits code that writes the tagged fields; without tagged fields it writes the byte 0.

        If the layout is not flexible, the code raises WireFault for unknown tagged fields.
        """
        self.flush()
        tags = self.variable(f"{self.target}._unknown_tags")
        if not form.flexible:
            self.imports.wire("faults", "WireFault")
            self.code.append(when(tags, ["raise WireFault"]))
        elif self.plan.tagged:
            self.code.append(f"_write_{self.plan.snake_name}_tags(append, {self.target}, version)")
        else:
            self.imports.wire("writing", "write_tags")
            write = f"write_tags(append, (), {tags})"
            self.code.append(when(tags, [write], [f'{self.append}(b"\\0")']))

    def variable(self, expr: str) -> str:
        """Returns the source of the value of `expr`; may emit code that sets a variable to it."""
        return expr

    def call(self, function: str, value: str) -> str:
        """Returns the source of a call of a `kproto.wire.writing` function, and imports it."""
        self.imports.wire("writing", function)
        return f"{function}(append, {value})"

    def structs(self, field: FieldPlan, entries: str) -> str:
        """Returns the source of a call that writes the structs in `entries`.

        In NATIVE style, the called function gets the list `pieces` besides its method `append`.
        """
        pieces = "pieces, " if self.plan.style is Style.NATIVE else ""
        return f"_write_{field.struct_snake}({pieces}append, {entries}, version)"

    def bool_value(self, expr: str) -> str:
        """Returns the source that converts a bool for a Struct.

        The source raises KeyError or TypeError for a value that equals no bool.
        """
        self.imports.wire("writing", "BOOLS")
        return f"BOOLS[{expr}]"

    def uuid_value(self, expr: str) -> str:
        """Returns the source that converts a uuid to 16 bytes, for a Struct."""
        self.imports.wire("writing", "uuid_bytes")
        return f"uuid_bytes({expr})"

    def refuse_null(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        """Emits a check that raises WireFault for None, if this version does not allow null.

        Emits nothing if no version of the field allows null.
        """
        if field.nullable and not form.nullable:
            self.imports.wire("faults", "WireFault")
            self.code.append(when(f"{expr} is None", ["raise WireFault"]))

    def or_null(self, form: FieldForm, expr: str, null: str, write: Code) -> None:
        """Emits the code `write`, which writes a value that is not null.

        If the layout allows null, the emitted code tests for None first, and writes null instead.
        In a compact layout, null is the byte 0. In any other layout, null is the bytes whose source
        is `null`.
        """
        self.flush()
        if form.nullable:
            empty = r"\0" if form.compact else null
            self.code.append(when(f"{expr} is None", [f'{self.append}(b"{empty}")'], write))
        else:
            self.code += write

    def elements(self, field: FieldPlan, form: FieldForm, expr: str) -> Code:
        """Returns the code that writes the elements of an array, without its count."""
        if field.element_kind is ValueKind.STRUCT:
            return [self.structs(field, expr)]
        several = elements_function("write", field, form)
        if several is None:
            self.imports.wire("writing", "elements")
            function = _function_of_present("bytes", form)
            return [For(f"element in elements({expr})", (self.call(function, "element"),))]
        function, extra = several
        if field.element_kind is ValueKind.BOOL:
            self.imports.wire("writing", "elements")
            expr = f"[{self.bool_value('value')} for value in elements({expr})]"
        return [self.call(function, expr + extra)]


class NonNullWriteEmitter(WriteCodeEmitter):
    """Emits calls for a value that is never None, without tests for None."""

    def refuse_null(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        pass

    def or_null(self, form: FieldForm, expr: str, null: str, write: Code) -> None:
        self.flush()
        self.code += write


class _InlineWriteEmitter(WriteCodeEmitter):
    """Emits inline code for strings, counts and arrays of numbers (STRAIGHT style)."""

    def uuid(self, field: FieldPlan, expr: str) -> None:
        self.numbers.append(("uuid", self.uuid_value(expr)))

    def string(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self.refuse_null(field, form, expr)
        if form.compact:
            self.imports.wire("writing", "UVARINT")
            self.imports.wire("writing", "compact_string_length")
            write = [
                f"text = {expr}.encode()",
                "size = len(text)",
                f"{self.append}(UVARINT[size + 1] if size < 127 else compact_string_length(size))",
                f"{self.append}(text)",
            ]
            self.or_null(form, expr, _NULL_STRING, write)
        elif form.nullable:
            self.or_null(form, expr, _NULL_STRING, [self.call("write_string", expr)])
        else:
            self.code.append(f"text = {expr}.encode()")
            self.numbers.append(("int16", "len(text)"))
            self.flush()
            self.code.append(f"{self.append}(text)")

    def octets(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        """Emits a call, not inline code: the called function also accepts buffers besides bytes."""
        self.refuse_null(field, form, expr)
        function = _function_of_present("bytes", form)
        self.or_null(form, expr, _NULL_INT32, [self.call(function, expr)])

    def array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self.refuse_null(field, form, expr)
        if field.element_kind is ValueKind.NUMBER:
            self._numbers_array(field, form, expr)
            return
        elements = self.elements(field, form, expr)
        if form.compact:
            self.imports.wire("writing", "UVARINT")
            self.imports.wire("writing", "uvarint")
            count = [
                f"count = len({expr})",
                f"{self.append}(UVARINT[count + 1] if count < 127 else uvarint(count + 1))",
            ]
            self.or_null(form, expr, _NULL_INT32, [*count, *elements])
            return
        length = f"len({expr})"
        if form.nullable:
            length = f"-1 if {expr} is None else {length}"
            elements = [when(f"{expr} is not None", elements)]
        self.numbers.append(("int32", length))
        self.flush()
        self.code += elements

    def _numbers_array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        count_type = "uint8" if form.compact else "int32"
        shapes = self.imports.counted_shapes(count_type, field.spec.element_type)
        empty, count = (r"\x01", "count + 1") if form.compact else (r"\0\0\0\0", "count")
        write_length = _function_of_present("array_length", form)
        others: Code = [
            self.call(write_length, "count"),
            *self.elements(field, form, "values"),
        ]
        if field.packed:
            _, size = self.imports.array_shapes(field.spec.element_type)
            if form.compact:
                self.imports.wire("writing", "UVARINT")
                length = f"{self.append}(UVARINT[count // {size} + 1])"
            else:
                length = self.call(write_length, f"count // {size}")
            packed = [length, f"{self.append}(bytes(values))"]
            others = [when("type(values) is PACKED", packed, others)]
        branches: list[tuple[str, Code]] = [
            ("type(values) is not list or count > 126", others),
            ("count", [f"{self.append}({shapes}[count].pack({count}, *values))"]),
        ]
        self.flush()
        self.code.append(f"values = {expr}")
        write: Code = ["count = len(values)", choose(branches, [f'{self.append}(b"{empty}")'])]
        self.or_null(form, "values", _NULL_INT32, write)


class _NativeWriteEmitter(_InlineWriteEmitter):
    """Emits code like that of the STRAIGHT style, which gets slots by index (NATIVE style).

    In the emitted code, the variable `kind` is the class of the struct. mypyc inlines a call of
    `append` that names the list.
    """

    append = "pieces.append"

    def variable(self, expr: str) -> str:
        slot = expr.removeprefix(f"{self.target}.")
        if slot not in self.plan.slots:  # a property
            return expr
        self.imports.wire("c_functions", "get_slot")
        name = f"{slot.lstrip('_')}_value"
        index = self.plan.slots.index(slot)
        self.code.append(f'{name} = get_slot({self.target}, kind, "{slot}", {index})')
        return name

    def _take(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        super()._take(field, form, self.variable(expr))

    def absent(self, field: FieldPlan, expr: str) -> None:
        if not field.spec.ignorable:
            super().absent(field, self.variable(expr))

    def _numbers_array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        if field.spec.element_type != "int32" or not form.compact:
            super()._numbers_array(field, form, expr)
            return
        self.flush()
        self.imports.wire("c_functions", "compact_int32s")
        self.code.append(f"encoded = compact_int32s({expr})")
        code, self.code = self.code, []
        super()._numbers_array(field, form, expr)
        self.code = [*code, when("encoded is not None", [f"{self.append}(encoded)"], self.code)]

    def string(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        self.flush()
        self.refuse_null(field, form, expr)
        for name in ("utf8", "compact_string_length", "UVARINT") if form.compact else ("utf8",):
            self.imports.wire("writing", name)
        write = [f"text = utf8({expr})", "size = len(text)"]
        if form.compact:
            length = "UVARINT[size + 1] if size < 127 else compact_string_length(size)"
        else:
            name, _ = self.imports.shape(["int16"])
            length = f"{name}.pack(size)"
        write.append(f"{self.append}({length})")
        self.or_null(form, expr, _NULL_STRING, [*write, f"{self.append}(text)"])


def _function_of_present(kind: str, form: FieldForm) -> str:
    """Returns the name of the function that writes a value that is not null."""
    return value_function("write", kind, form._replace(nullable=False))


#: The emitter of the writing code, by style.
WRITERS: Final[dict[Style, type[WriteCodeEmitter]]] = {
    Style.BRANCHING: WriteCodeEmitter,
    Style.STRAIGHT: _InlineWriteEmitter,
    Style.NATIVE: _NativeWriteEmitter,
}
