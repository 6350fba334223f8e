"""Compares an implementation's answer with the judge's answer, and classifies the difference.

`right` is the judge's answer, `given` is the implementation's answer.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Container
from enum import Enum
from typing import Any, Final, NamedTuple

from ..schema.json_converter import json_name
from ..schema.layout import StructLayout, struct_of
from .case import ONE_WAY, Answer, Case, Operation, Outcome
from .lenient_reader import DeviationFromKafka, Oddity, UnreadableMessageError, walk_message
from .lossless_strings import same_but_lossless, without_escapes

__all__ = ["BEYOND_INT8", "TRAILING_BYTES", "Fault", "Verdict", "judge", "without_records"]


class Fault(Enum):
    """A kind of fault in an implementation's answers; the value describes the fault."""

    LOOSER = "accepts what the judge refuses"
    STRICTER = "refuses what the judge accepts"
    BYTES = "writes other bytes than the judge"
    JSON = "reads other values than the judge"
    END = "reads more or fewer bytes than the judge"
    FAILED = "reports a failure of its own"
    CRASHED = "ends, or closes its output"
    HUNG = "does not answer in time"
    LATE = "answers late"
    GARBAGE = "writes lines that are not answers"
    ORDER = "answers out of order"
    STRICTER_ON_ODD = "refuses odd content, which the judge accepts and no writer creates"


#: Faults that do not affect messages as Kafka writes them.
HARMLESS: Final = frozenset({Fault.STRICTER_ON_ODD})

_BY_OUTCOME: Final = {
    Outcome.FAILED: Fault.FAILED,
    Outcome.CRASHED: Fault.CRASHED,
    Outcome.HUNG: Fault.HUNG,
    Outcome.LATE: Fault.LATE,
    Outcome.GARBAGE: Fault.GARBAGE,
}

_PROTOCOL_FAULTS: Final = {"garbage": Fault.GARBAGE, "order": Fault.ORDER}

#: The trait of a case whose bytes continue after the message. A trait is a property of the case
#: that may explain a fault.
TRAILING_BYTES: Final = "bytes after the message"

#: The trait of JSON whose numbers Kafka's converter changes: 128 becomes 0.
BEYOND_INT8: Final = "a number from 128 to 256 for an int8"

#: The trait of each deviation: a description of the bytes, without their effect on a reader.
TRAITS: Final[dict[DeviationFromKafka, str]] = {
    DeviationFromKafka.LENGTH: "a length or count below -1",
    DeviationFromKafka.TAG_COUNT: "a count of 2^31 tagged fields or more",
    DeviationFromKafka.TAG_ORDER: "tags twice or out of order",
    DeviationFromKafka.TAG_SIZE: "a known tag whose declared size is wrong",
    DeviationFromKafka.UTF8: "bytes that are not UTF-8",
    DeviationFromKafka.TAG_NUMBER: "a tag of 2^31-1 or more",
    DeviationFromKafka.TAG_VERSION: "a tag that is a field of other versions",
}


class Verdict(NamedTuple):
    """A fault of an answer, the traits of its case, and the cause of the fault.

    `trait` has the traits separated by commas; "" if the case has none.
    Faults with equal verdicts in the same operation are grouped as a finding.
    """

    fault: Fault
    trait: str
    cause: str


def judge(case: Case, right: Answer, given: Answer, *, by_kproto: bool) -> list[Verdict] | None:
    """Returns the faults of the answer `given`; an empty list if it is right, None if undecided.

    An answer is undecided if the implementation does not support the case, or does not support its
    operation because it only reads or only writes the message version. READ_ONLY as answer to
    REWRITE is judged as the answer of an implementation that has read the bytes, without a
    comparison of written bytes. An answer is also undecided if the judge refused the case, the
    implementation answered it, and one of these applies:
    - The judge decoded the message and could not encode it again.
    - `by_kproto` is True, so kproto is the judge, and `lenient_reader` finds a deviation:
      bytes that kproto refuses and Kafka's classes accept.

    If strings of the case are not UTF-8, an answer is right both if it has U+FFFD for the wrong
    bytes, as Kafka's classes write it, and if it has the bytes of the case (`same_but_lossless`).

    If an undecided answer has `Answer.faults`, only the verdicts on these faults are returned.
    """
    if given == right or (given.outcome is right.outcome is Outcome.REFUSED and not given.faults):
        return []
    traits, end = _traits(case)
    trait = ", ".join(sorted(traits.values()))
    found = [Verdict(_PROTOCOL_FAULTS[kind], "", _cause(reason)) for kind, reason in given.faults]
    has_read = given.outcome is Outcome.READ_ONLY and case.operation is Operation.REWRITE
    if given.outcome is Outcome.UNSUPPORTED or (given.outcome in ONE_WAY and not has_read):
        return found or None
    if given.outcome in _BY_OUTCOME:
        cause = "" if given.outcome is Outcome.HUNG else _cause(given.reason)
        return [*found, Verdict(_BY_OUTCOME[given.outcome], trait, cause)]
    refused = given.outcome is Outcome.REFUSED
    undecided = by_kproto and any(isinstance(each, DeviationFromKafka) for each in traits)
    if right.outcome is Outcome.REFUSED:
        # If the judge decoded the message but could not encode it, both answers are right.
        if (undecided or right.taken is not None) and not refused:
            return found or None
        return found if refused else [*found, Verdict(Fault.LOOSER, trait, _cause(right.reason))]
    has_trailing_bytes = _has_trailing_bytes(case, right, end)
    if refused:
        if has_trailing_bytes:  # an implementation may refuse bytes after the message
            return found
        oddities = sorted(
            words for each, words in traits.items() if isinstance(each, DeviationFromKafka)
        )
        if case.operation is Operation.ENCODE and _beyond_int8(case):
            oddities.append(BEYOND_INT8)
        if oddities:
            return [*found, Verdict(Fault.STRICTER_ON_ODD, ", ".join(oddities), "")]
        return [*found, Verdict(Fault.STRICTER, trait, _cause(given.reason))]
    if has_trailing_bytes:
        trait = ", ".join(filter(None, (trait, TRAILING_BYTES)))
    different = None if has_read else _difference(case, right, given, traits)
    if different:
        return [*found, Verdict(different[0], trait, different[1])]
    if given.taken is not None and right.taken is not None and given.taken != right.taken:
        cause = "fewer bytes" if given.taken < right.taken else "more bytes"
        return [*found, Verdict(Fault.END, trait, cause)]
    return found


def _has_trailing_bytes(case: Case, right: Answer, end: int | None) -> bool:
    """Returns True if bytes follow the message in the content of a case.

    The message ends at `right.taken`, or at `end` if `right.taken` is None. Returns False if both
    `right.taken` and `end` are None.
    """
    if isinstance(case.content, str):
        return False
    taken = right.taken if right.taken is not None else end
    return taken is not None and taken < len(case.content)


def _difference(
    case: Case, right: Answer, given: Answer, traits: Container[DeviationFromKafka | Oddity]
) -> tuple[Fault, str] | None:
    shape = case.message_version.shape
    lossy = DeviationFromKafka.UTF8 in traits
    if case.operation is Operation.DECODE:
        expected, actual = right.value, given.value
        if lossy:
            expected, actual = map(without_escapes, (expected, actual))
        path = _first_difference(
            without_records(shape, expected), without_records(shape, actual), ""
        )
        return None if path is None else (Fault.JSON, path)
    if given.value == right.value:
        return None
    content = case.content
    if (
        lossy
        and isinstance(content, bytes)
        and same_but_lossless(shape, content, right.value, given.value)
    ):
        return None
    less = len(given.value) - len(right.value)
    return Fault.BYTES, "fewer bytes" if less < 0 else "more bytes" if less else "as many bytes"


def _first_difference(right: Any, given: Any, path: str) -> str | None:
    """Describes, with its path, the first difference of two JSON values; None if they are equal.

    The path has no indexes, so that it is the same for all elements of an array.
    """
    if isinstance(right, dict) and isinstance(given, dict):
        for key in right:
            if key not in given:
                return f"{path}.{key} is missing"
            found = _first_difference(right[key], given[key], f"{path}.{key}")
            if found is not None:
                return found
        more = sorted(set(given) - set(right))
        return f"{path}.{more[0]} is not of this version" if more else None
    if isinstance(right, list) and isinstance(given, list) and len(right) == len(given):
        for left_item, right_item in zip(right, given, strict=True):
            found = _first_difference(left_item, right_item, f"{path}[]")
            if found is not None:
                return found
        return None
    same = right == given and isinstance(right, bool) == isinstance(given, bool)
    return None if same else path or "the whole"


def without_records(shape: StructLayout, node: Any) -> Any:
    """Returns JSON with an empty string for `records` fields, as Kafka's converter writes them."""
    if not isinstance(node, dict):
        return node
    made = dict(node)
    for field in shape.all_fields():
        name = json_name(field.name)
        value = made.get(name)
        inner = struct_of(field.type)
        if value is None:
            continue
        if field.type.kind == "records":
            made[name] = ""
        elif inner is not None and isinstance(value, list):
            made[name] = [without_records(inner, part) for part in value]
        elif inner is not None:
            made[name] = without_records(inner, value)
    return made


def _beyond_int8(case: Case) -> bool:
    """Returns True if the JSON has a number from 128 to 256 in an int8 field (BEYOND_INT8)."""
    try:
        node = json.loads(case.content)
    except (ValueError, RecursionError):
        return False
    return _has_beyond_int8(case.message_version.shape, node)


def _has_beyond_int8(shape: StructLayout, node: Any) -> bool:
    if not isinstance(node, dict):
        return False
    for field in shape.all_fields():
        value = node.get(json_name(field.name))
        of = field.type.element or field.type
        parts = value if isinstance(value, list) else [value]
        if of.struct is not None:
            if any(_has_beyond_int8(of.struct, part) for part in parts):
                return True
        elif of.kind == "int8" and any(type(part) is int and 128 <= part <= 256 for part in parts):
            return True
    return False


def _traits(case: Case) -> tuple[dict[DeviationFromKafka | Oddity, str], int | None]:
    """Returns the traits (unusual properties) of the bytes of a case, and the end of the message.

    The end is None if the content is JSON or cannot be read.
    """
    if isinstance(case.content, str):
        return {}, None
    try:
        found = walk_message(case.message_version.shape, case.content)
    except (UnreadableMessageError, RecursionError):
        return {}, None
    traits: dict[DeviationFromKafka | Oddity, str] = {
        each: TRAITS[each] for each in found.deviations
    }
    traits.update({each: each.value for each in found.oddities})
    return traits, found.end


#: The reason for a JSON line that is not an answer. The content of the line varies between cases.
_OTHER_LINE: Final = re.compile(r"(a second answer to one question|an id that was not asked): .*")

#: Maximum number of characters of a cause in a verdict.
_CAUSE: Final = 90


def _cause(reason: str) -> str:
    """Returns a reason without numbers, names and quoted text; similar cases get the same cause."""
    text = re.sub(r"^\w+ v\d+(?:, [^:]*)?: ", "", reason)
    text = re.sub(r"^(\w+): [A-Z]\w+: ", r"\1: ", text)  # Java's error names the message class
    text = _OTHER_LINE.sub(r"\1", text)
    text = re.sub(r"(['\"`]).*?\1", "…", text)
    text = re.sub(r"\b(field|which|element of) \S+", r"\1 …", text)
    text = re.sub(r"0x[0-9a-fA-F]+|[0-9a-fA-F]{16,}", "#", text)
    text = re.sub(r"-?\b\d[\d.,]*", "#", text)
    text = re.sub(r"\S*#\S*(?:, \S*#\S*)+", "#", text)
    return textwrap.shorten(text, _CAUSE, placeholder=" …")
