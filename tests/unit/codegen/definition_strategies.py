"""Draws valid definitions, and definition texts that may be invalid."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from hypothesis import strategies as st

from kproto.schema.naming import snake_case

#: Default values of each type, as definitions write them.
DEFAULTS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "bool": st.sampled_from(["true", "FALSE", True, ""]),
    "int8": st.sampled_from(["-128", "0x7f", "010", 5]),
    "int16": st.integers(-(2**15), 2**15 - 1).map(str),
    "uint16": st.sampled_from(["0xffff", "65535", "0177777"]),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.sampled_from(["0xffffffff", "037777777777", 4294967295]),
    "int64": st.integers(-(2**63), 2**63 - 1).map(str),
    "float64": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "uuid": st.binary(min_size=16, max_size=16).map(
        lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("=")
    ),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(
        lambda text: text != "null"
    ),
}
NULLABLE: Final = ("string", "bytes", "records")
#: The greatest depth of drawn structs.
MAX_DEPTH: Final = 3
PRIMITIVES: Final = (*DEFAULTS, "bytes", "records")

WORDS: Final = ("Topic", "Id", "Class", "Self", "Size", "List", "Type", "Foo", "KRaft", "ISR", "X1")
NAMES: Final = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("".join)


def _unique(names: st.SearchStrategy[str], most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(names, min_size=1, max_size=most, unique_by=snake_case)


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """Draws a valid message definition: types, versions, tags, defaults, nulls, inner structs."""
    lowest = draw(st.integers(0, 3))
    highest = lowest + draw(st.integers(0, 3))
    flexible = draw(st.none() | st.integers(0, highest + 1))
    kind = draw(st.sampled_from(["request", "response", "data", "metadata", "header"]))
    maker = _Maker(draw, lowest, highest, flexible)
    name = "Drawn" + {"request": "Request", "response": "Response"}.get(kind, "")
    made: dict[str, Any] = {
        "type": kind,
        "name": name,
        "validVersions": f"{lowest}-{highest}" if highest > lowest else str(lowest),
        "flexibleVersions": "none" if flexible is None else f"{flexible}+",
    }
    common: list[dict[str, Any]] = []
    for index in range(draw(st.integers(0, 2))):  # a common struct may use earlier common structs
        fields = maker.fields(MAX_DEPTH, inner=True)
        common.append({"name": f"Common{index}", "versions": "0+", "fields": fields})
        maker.common = [struct["name"] for struct in common]
    made["fields"] = maker.fields(0, inner=False) if draw(st.integers(0, 9)) else []
    if common:
        made["commonStructs"] = common
    if kind in {"request", "response", "metadata"} or draw(st.booleans()):
        made["apiKey"] = draw(st.sampled_from([0, 7, 32767, "12"]))
    if kind == "request":
        made["listeners"] = draw(st.lists(st.sampled_from(["broker", "controller"]), unique=True))
        made["latestVersionUnstable"] = draw(st.sampled_from([True, False, "true"]))
    return made


class _Maker:
    """Draws the fields of one message; each struct name ends with a different number."""

    def __init__(self, draw: st.DrawFn, lowest: int, highest: int, flexible: int | None) -> None:
        self.draw = draw
        self.lowest = lowest
        self.highest = highest
        self.flexible = flexible
        self.common: list[str] = []
        self.structs = 0

    def fields(self, depth: int, *, inner: bool) -> list[dict[str, Any]]:
        """Draws the fields of a struct; tagged fields have the tags 0, 1, 2, … in a drawn order.

        If `inner`, the struct is inside another struct, and begins with an int8 field that exists
        in every version. So each element of an array has at least one byte: like Kafka, kproto
        refuses an array count above the number of remaining bytes.
        """
        names = self.draw(_unique(NAMES, 4))
        made: list[dict[str, Any]] = []
        if inner:
            made.append({"name": names.pop(), "type": "int8", "versions": "0+"})
        made += [self.field(name, depth, inner=inner) for name in names]
        tagged = [entry for entry in made if "taggedVersions" in entry]
        numbers = self.draw(st.permutations(range(len(tagged))))
        for entry, number in zip(tagged, numbers, strict=True):
            entry["tag"] = self.draw(st.sampled_from([number, str(number)]))
        return made

    def field(self, name: str, depth: int, *, inner: bool) -> dict[str, Any]:
        draw = self.draw
        kinds = [*PRIMITIVES, *(f"[]{kind}" for kind in PRIMITIVES if kind != "records")]
        kinds += [*self.common, *(f"[]{name}" for name in self.common)]
        kinds += ["S", "[]S"] * 4 if depth < MAX_DEPTH else []
        kind = draw(st.sampled_from(kinds))
        made: dict[str, Any] = {"name": name, "type": kind, "versions": self.versions(inner=inner)}
        if kind.removeprefix("[]") in self.common:
            made["versions"] = f"{self._begin(made)}+"
        if kind.removeprefix("[]") == "S":
            self.structs += 1
            made["type"] = f"{kind}truct{self.structs}"
            # no end: a tagged field of the struct may begin after the last valid version
            made["versions"] = f"{self._begin(made)}+"
            made["fields"] = self.fields(depth + 1, inner=True)
        taggable = kind != "records" and self.flexible is not None
        if taggable and draw(st.integers(0, 3)) == 0:
            made["taggedVersions"] = f"{max(self.flexible or 0, self._begin(made))}+"
            made["versions"] = f"{self._begin(made)}+"
            known = "S" not in kind or (self.flexible or 0) <= self.highest
            if known and draw(st.booleans()):
                made["versions"] = made["taggedVersions"]
        self.add_null_and_default(made, kind)
        if draw(st.booleans()):
            made["ignorable"] = draw(st.sampled_from([True, "true", "false"]))
        own = kind in {"string", "bytes"} and "taggedVersions" not in made
        if own and draw(st.integers(0, 4)) == 0:
            later = "none" if self.flexible is None else f"{max(self.flexible, self.highest)}+"
            made["flexibleVersions"] = draw(st.sampled_from(["none", later]))
        if kind == "bytes" and draw(st.booleans()):
            made["zeroCopy"] = True
        keyable = inner and kind not in {"records", *self.common} and "S" not in kind
        if keyable and "[]" not in kind and "taggedVersions" not in made:
            made["mapKey"] = draw(st.booleans())
        if draw(st.booleans()):
            made["about"] = draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
        return made

    def add_null_and_default(self, made: dict[str, Any], kind: str) -> None:
        """Makes the field nullable or not, and adds a default or none; the choices are drawn.

        Only types that allow null become nullable. The default is null or a value.
        """
        draw = self.draw
        if (kind not in DEFAULTS or kind in NULLABLE) and draw(st.booleans()):
            begin = self._begin(made)
            # null is the default of records, so every version must be nullable
            if kind == "records":
                begin = 0
            elif "taggedVersions" not in made:
                begin = draw(st.integers(0, self.highest))
            made["nullableVersions"] = f"{begin}+"
            if begin <= self._begin(made) and draw(st.booleans()):
                made["default"] = "null"
                return
        if kind in DEFAULTS and draw(st.booleans()):
            made["default"] = draw(DEFAULTS[kind])

    def versions(self, *, inner: bool) -> str:
        """Draws a field's versions; for a field inside a struct (`inner`), returns all versions."""
        low = 0 if inner else self.draw(st.integers(0, self.highest))
        if inner or self.draw(st.booleans()):
            return f"{low}+"
        return f"{low}-{self.draw(st.integers(max(low, self.lowest), self.highest))}"

    @staticmethod
    def _begin(made: dict[str, Any]) -> int:
        return int(made["versions"].rstrip("+").partition("-")[0])


@st.composite
def mutated_texts(draw: st.DrawFn) -> str:
    """Draws the text of a definition after up to 3 changes of keys and 2 changes of characters."""
    node = draw(definitions())
    for _ in range(draw(st.integers(0, 3))):
        _change(draw, node)
    text = json.dumps(node, indent=draw(st.sampled_from([None, 1])))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 3))
        put = draw(st.sampled_from(["", '"', "'", "{", "]", ",", ":", "//", "/*", "\\", "9", "\n"]))
        text = text[:at] + put + text[at + cut :]
    return text


ODD_VALUES: Final[st.SearchStrategy[Any]] = st.sampled_from(
    [
        *("", "none", "null", "0+", "0-1", "3-1", "1", "010", "08", "9" * 5000, "\x00"),
        *(-1, 0, 7, 10**30, 1.5, True, None, [], {}, ["x"]),
        *("[]", "[][]int8", "int32", "Int32", "[]string", "uuid", "S", "class", "records"),
        *("../../x", "A B", "Ä", "data", "request", "coordinator-key"),
    ]
)


def _change(draw: st.DrawFn, node: dict[str, Any]) -> None:
    """Adds, changes or removes one key of the message, of a field or of a common struct."""
    holders = [node]
    for holder in holders:
        for key in ("fields", "commonStructs"):
            inner = holder.get(key)
            if isinstance(inner, list):
                holders += [entry for entry in inner if isinstance(entry, dict)]
    holder = draw(st.sampled_from(holders))
    known = sorted({*holder, "tag", "taggedVersions", "default", "mapKey", "entityType", "fields"})
    key = draw(st.sampled_from(known))
    if draw(st.integers(0, 4)) == 0:
        holder.pop(key, None)
    else:
        holder[key] = draw(ODD_VALUES)
