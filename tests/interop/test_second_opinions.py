"""Tests that kafka-python and kio decode kproto's messages equally and encode them unchanged.

Each implementation gets instances of every message and version that it supports. Each known
difference has a rule below, with its reason. The test fails if a rule never applies, or if no rule
applies to a difference.

second_opinions.json lists the versions that each implementation covers. `KPROTO_WRITE=1` rewrites
that file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from kproto import messages as generated
from kproto.messages.base import Message, Struct
from kproto.schema.definitions import union
from kproto.schema.layout import StructLayout, WireType, layout
from kproto.schema.naming import class_name
from kproto.testing.instances import instances

HERE = Path(__file__).parent
SCRIPT = HERE / "peer_scripts" / "second_opinions.py"
COVERED = HERE / "second_opinions.json"

PEERS = ("kafka-python", "kio")

TIMEOUT_S = 300.0
"""Seconds for one process, which decodes and encodes thousands of messages."""


class Case(NamedTuple):
    """One message instance, its encoded bytes, and the version and layout of the encoding."""

    message: Message
    version: int
    shape: StructLayout
    data: bytes

    @property
    def name(self) -> str:
        return self.shape.name


class Rule(NamedTuple):
    """A known difference of an implementation: its reason, and a function that recognizes it."""

    peer: str
    why: str
    applies: Callable[[Case, dict[str, Any]], bool]


def is_error(answer: dict[str, Any], pattern: str) -> bool:
    return re.match(pattern, answer.get("error", "")) is not None


def has_error_code(case: Case, answer: dict[str, Any]) -> bool:
    return (
        case.name == "ApiVersionsResponse"
        and case.version > 0
        and getattr(case.message, "error_code", 0) != 0
        and ("hex" in answer or is_error(answer, "error: unpack_from requires"))
    )


def lost_its_unknown_tags(case: Case, answer: dict[str, Any]) -> bool:
    if not holds_unknown_tags(case.message) or "hex" not in answer:
        return False
    return bool(answer["hex"] == without_unknown_tags(case).hex())


def mixes_tags(case: Case, answer: dict[str, Any]) -> bool:
    return holds_unknown_tags(case.message) and is_error(answer, "AssertionError: $")


def is_refused_for_unknown_tags(case: Case, answer: dict[str, Any]) -> bool:
    return holds_unknown_tags(case.message) and is_error(
        answer, "KeyError: 'Unknown tagged field tag: 5000'"
    )


def holds_an_error_code_of_no_name(case: Case, answer: dict[str, Any]) -> bool:
    found = re.match(r"ValueError: (-?\d+) is not a valid ErrorCode", answer.get("error", ""))
    return found is not None and int(found[1]) in error_codes(case.shape, case.message)


def holds_a_time_beyond_its_range(case: Case, answer: dict[str, Any]) -> bool:
    return case.name in TIMES_OF_64_BITS and is_error(
        answer, "ValueError: timedelta milliseconds overflow"
    )


#: Messages with a 64-bit duration, which may exceed the range of a Python timedelta.
TIMES_OF_64_BITS: Final = {
    "CreateDelegationTokenRequest",
    "ExpireDelegationTokenRequest",
    "OffsetCommitRequest",
    "RenewDelegationTokenRequest",
}

RULES: Final = (
    Rule(
        "kafka-python",
        "reads a response with an error as version 0, in any version",
        has_error_code,
    ),
    Rule("kafka-python", "drops unknown tagged fields", lost_its_unknown_tags),
    Rule("kafka-python", "cannot write known tags after it read unknown ones", mixes_tags),
    Rule("kio", "refuses unknown tagged fields", is_refused_for_unknown_tags),
    Rule("kio", "refuses error codes that it has no name for", holds_an_error_code_of_no_name),
    Rule("kio", "refuses times beyond those of a timedelta", holds_a_time_beyond_its_range),
)

#: Lower-case names of fields that a peer names differently.
RENAMED: Final = {
    ("kafka-python", "DescribeClusterResponse"): {
        "clusterauthorizedoperations": "authorizedoperations"
    },
    ("kafka-python", "MetadataResponse"): {
        "clusterauthorizedoperations": "authorizedoperations",
        "topicauthorizedoperations": "authorizedoperations",
    },
    ("kafka-python", "TxnOffsetCommitRequest"): {"generationidormemberepoch": "generationid"},
    ("kio", "TxnOffsetCommitRequest"): {"generationidormemberepoch": "generationid"},
    ("kio", "StreamsGroupHeartbeatResponse"): {
        "acceptablerecoverylaglegacy": "acceptablerecoverylag"
    },
}

#: Values that the peers decode as None: no uuid, no authorized operations, an absent struct.
READ_AS_NONE: Final = {
    "kafka-python": ("00" * 16, -(2**31), {"replicaid": -1, "replicaepoch": -1}),
    "kio": ("00" * 16,),
}


def every_instance() -> Iterator[Case]:
    for name, spec in sorted(union().items()):
        cls: type[Message] = getattr(generated, class_name(name))
        for version in cls.VALID_VERSIONS:
            shape = layout(spec, version)
            for unknown_tags in {False, shape.flexible}:
                for message in instances(cls, version, unknown_tags=unknown_tags):
                    yield Case(message, version, shape, message.encode(version))


def answers(python: Path, peer: str, cases: list[Case]) -> list[dict[str, Any] | None]:
    lines = [
        json.dumps({"name": it.name, "version": it.version, "hex": it.data.hex()}) for it in cases
    ]
    ran = subprocess.run(
        [python, SCRIPT, peer],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(found) == len(cases)
    return found


@pytest.mark.exhaustive
@pytest.mark.peers
def test_other_implementations_agree_except_for_known_differences(peers_python: Path) -> None:
    cases = list(every_instance())
    covered: dict[str, dict[str, set[int]]] = {}
    used: set[Rule] = set()
    wrong: list[str] = []
    for peer in PEERS:
        agreed: dict[str, set[int]] = {}
        for it, answer in zip(cases, answers(peers_python, peer, cases), strict=True):
            if answer is None:
                continue
            rule = rule_for(peer, it, answer)
            if rule is not None:
                used.add(rule)
            elif answer.get("hex") != it.data.hex():
                wrong.append(f"{peer}: {it.name} v{it.version}: {it.data.hex()}: {answer}")
            else:
                agreed.setdefault(it.name, set()).add(it.version)
                wrong += [
                    f"{peer}: {it.name} v{it.version}, {path}"
                    for path in differences(peer, it, answer["value"])
                ]
        covered[peer] = agreed
    assert not wrong, f"{len(wrong)} differences, such as\n" + "\n".join(wrong[:20])
    unused = [rule.why for rule in RULES if rule not in used]
    assert not unused, f"these differences are gone: {unused}"
    compare_with_the_committed(covered)


def compare_with_the_committed(covered: dict[str, dict[str, set[int]]]) -> None:
    table = {
        peer: {name: spans(versions) for name, versions in sorted(item.items())}
        for peer, item in covered.items()
    }
    text = json.dumps(table, indent=1) + "\n"
    if os.environ.get("KPROTO_WRITE"):
        COVERED.write_text(text, encoding="utf-8")
    assert COVERED.read_text(encoding="utf-8") == text, (
        f"{COVERED.name} differs from these results: write it with KPROTO_WRITE=1"
    )


def rule_for(peer: str, case: Case, answer: dict[str, Any]) -> Rule | None:
    for rule in RULES:
        if rule.peer == peer and rule.applies(case, answer):
            return rule
    return None


def spans(versions: set[int]) -> str:
    """Returns versions as text: `0-4,7`."""
    parts: list[list[int]] = []
    for version in sorted(versions):
        if parts and parts[-1][1] == version - 1:
            parts[-1][1] = version
        else:
            parts.append([version, version])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def differences(peer: str, case: Case, theirs: Any) -> list[str]:
    """Returns the path and both values of each field that `peer` and kproto decoded differently."""
    ours = plain_struct(case.shape, case.message)
    renamed = RENAMED.get((peer, case.name), {})
    found: list[str] = []

    def compare(mine: Any, other: Any, path: str) -> None:
        if isinstance(mine, dict) and isinstance(other, dict):
            names = {
                name: next(
                    (
                        it
                        for it in (renamed.get(name), name, name.removesuffix("ms"))
                        if it in other
                    ),
                    name,
                )
                for name in mine
            }
            if set(names.values()) != set(other):
                found.append(f"{path}: fields {sorted(mine)} against {sorted(other)}")
                return
            for name, item in mine.items():
                compare(item, other[names[name]], f"{path}.{name}")
        elif isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
            for index, (item, its) in enumerate(zip(mine, other, strict=True)):
                compare(item, its, f"{path}[{index}]")
        elif mine != other and not (other is None and mine in READ_AS_NONE[peer]):
            found.append(f"{path}: {mine!r} against {other!r}")

    compare(ours, theirs, case.name)
    return found


def plain_struct(shape: StructLayout, struct: object) -> dict[str, Any]:
    """Returns the fields as plain data, in the form that the script `second_opinions` prints."""
    return {
        field.name.lower(): plain(field.type, getattr(struct, field.attribute))
        for field in shape.all_fields()
    }


def plain(kind: WireType, value: Any) -> Any:
    if value is None:
        return None
    if kind.element is not None:
        return [plain(kind.element, item) for item in value]
    if kind.struct is not None:
        return plain_struct(kind.struct, value)
    return value.hex() if isinstance(value, bytes) else value


def structs(item: object) -> Iterator[Struct]:
    """Yields a struct and all structs inside it."""
    if isinstance(item, Struct):
        yield item
        for name in item.__slots__:
            yield from structs(getattr(item, name))
    elif isinstance(item, list):
        for element in item:
            yield from structs(element)


def holds_unknown_tags(message: Message) -> bool:
    return any(struct.unknown_tagged_fields for struct in structs(message))


def without_unknown_tags(case: Case) -> bytes:
    bare = case.message.copy()
    for struct in structs(bare):
        struct.unknown_tagged_fields = []
    return bare.encode(case.version)


def error_codes(shape: StructLayout, message: Message) -> set[int]:
    """Returns the values of all error code fields."""
    return {
        value
        for struct in structs(message)
        for name in struct.__slots__
        if name.endswith("error_code") and isinstance(value := getattr(struct, name), int)
    }


def test_differences_are_detected() -> None:
    """The comparison must detect a wrong value, a missing field and a short list."""
    spec = union()["MetadataRequest"]
    cls = generated.MetadataRequest
    message = instances(cls, 12)[2]
    case = Case(message, 12, layout(spec, 12), message.encode(12))
    value = plain_struct(case.shape, message)
    assert differences("kio", case, value) == []
    assert differences("kio", case, value | {"allowautotopiccreation": 7})
    assert differences("kio", case, value | {"topics": value["topics"][1:]})
    assert differences("kio", case, value | {"topics": None})
    assert differences("kio", case, {name: value[name] for name in list(value)[1:]})
    assert rule_for("kio", case, {"hex": "00"}) is None
    assert spans({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8"
