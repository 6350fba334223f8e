"""kafka-python and kio read our messages, write the same bytes again, and see the same values.

Each gets every instance of every message and version that it has. Where its answer is another one,
a rule below says so and why; a rule that never applies fails the test, as does a difference that
no rule foresees.

What each covers stands in second_opinions.json. `KPROTO_WRITE=1` writes that file anew.
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
"""Thousands of messages in one process take seconds."""


class Asked(NamedTuple):
    """One instance, and the layout that it was written by."""

    message: Message
    version: int
    shape: StructLayout
    data: bytes

    @property
    def name(self) -> str:
        return self.shape.name


class Rule(NamedTuple):
    """A difference that is known: which answers it foresees, and why they come."""

    peer: str
    why: str
    foresees: Callable[[Asked, dict[str, Any]], bool]


def is_error(answer: dict[str, Any], pattern: str) -> bool:
    return re.match(pattern, answer.get("error", "")) is not None


def has_error_code(asked: Asked, answer: dict[str, Any]) -> bool:
    return (
        asked.name == "ApiVersionsResponse"
        and asked.version > 0
        and getattr(asked.message, "error_code", 0) != 0
        and ("hex" in answer or is_error(answer, "error: unpack_from requires"))
    )


def lost_its_unknown_tags(asked: Asked, answer: dict[str, Any]) -> bool:
    if not holds_unknown_tags(asked.message) or "hex" not in answer:
        return False
    return bool(answer["hex"] == without_unknown_tags(asked).hex())


def mixes_tags(asked: Asked, answer: dict[str, Any]) -> bool:
    return holds_unknown_tags(asked.message) and is_error(answer, "AssertionError: $")


def is_refused_for_unknown_tags(asked: Asked, answer: dict[str, Any]) -> bool:
    return holds_unknown_tags(asked.message) and is_error(
        answer, "KeyError: 'Unknown tagged field tag: 5000'"
    )


def holds_an_error_code_of_no_name(asked: Asked, answer: dict[str, Any]) -> bool:
    found = re.match(r"ValueError: (-?\d+) is not a valid ErrorCode", answer.get("error", ""))
    return found is not None and int(found[1]) in error_codes(asked.shape, asked.message)


def holds_a_time_beyond_its_range(asked: Asked, answer: dict[str, Any]) -> bool:
    return asked.name in TIMES_OF_64_BITS and is_error(
        answer, "ValueError: timedelta milliseconds overflow"
    )


#: Messages with a time of 64 bits, which a timedelta of Python cannot hold at its ends.
TIMES_OF_64_BITS: Final = {
    "CreateDelegationTokenRequest",
    "ExpireDelegationTokenRequest",
    "OffsetCommitRequest",
    "RenewDelegationTokenRequest",
}

RULES: Final = (
    Rule(
        "kafka-python",
        "reads a response with an error as version 0, whatever it is",
        has_error_code,
    ),
    Rule("kafka-python", "drops unknown tagged fields", lost_its_unknown_tags),
    Rule("kafka-python", "cannot write known tags after it read unknown ones", mixes_tags),
    Rule("kio", "refuses unknown tagged fields", is_refused_for_unknown_tags),
    Rule("kio", "refuses error codes that it has no name for", holds_an_error_code_of_no_name),
    Rule("kio", "refuses times beyond those of a timedelta", holds_a_time_beyond_its_range),
)

#: Names that a peer has for a field, in small letters, where they differ from ours.
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

#: Values that the peers read as None: no uuid, no answer about operations, an absent struct.
READ_AS_NONE: Final = {
    "kafka-python": ("00" * 16, -(2**31), {"replicaid": -1, "replicaepoch": -1}),
    "kio": ("00" * 16,),
}


def every_instance() -> Iterator[Asked]:
    for name, spec in sorted(union().items()):
        cls: type[Message] = getattr(generated, class_name(name))
        for version in cls.VALID_VERSIONS:
            shape = layout(spec, version)
            for unknown_tags in {False, shape.flexible}:
                for message in instances(cls, version, unknown_tags=unknown_tags):
                    yield Asked(message, version, shape, message.encode(version))


def answers(python: Path, peer: str, asked: list[Asked]) -> list[dict[str, Any] | None]:
    lines = [
        json.dumps({"name": it.name, "version": it.version, "hex": it.data.hex()}) for it in asked
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
    assert len(found) == len(asked)
    return found


@pytest.mark.exhaustive
@pytest.mark.peers
def test_other_implementations_agree(peers_python: Path) -> None:
    asked = list(every_instance())
    covered: dict[str, dict[str, set[int]]] = {}
    used: set[Rule] = set()
    wrong: list[str] = []
    for peer in PEERS:
        agreed: dict[str, set[int]] = {}
        for it, answer in zip(asked, answers(peers_python, peer, asked), strict=True):
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
        peer: {name: spans(versions) for name, versions in sorted(held.items())}
        for peer, held in covered.items()
    }
    text = json.dumps(table, indent=1) + "\n"
    if os.environ.get("KPROTO_WRITE"):
        COVERED.write_text(text, encoding="utf-8")
    assert COVERED.read_text(encoding="utf-8") == text, (
        f"{COVERED.name} says something else than was found: write it with KPROTO_WRITE=1"
    )


def rule_for(peer: str, asked: Asked, answer: dict[str, Any]) -> Rule | None:
    for rule in RULES:
        if rule.peer == peer and rule.foresees(asked, answer):
            return rule
    return None


def spans(versions: set[int]) -> str:
    """Versions as text: `0-4,7`."""
    parts: list[list[int]] = []
    for version in sorted(versions):
        if parts and parts[-1][1] == version - 1:
            parts[-1][1] = version
        else:
            parts.append([version, version])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def differences(peer: str, asked: Asked, theirs: Any) -> list[str]:
    """The paths at which a peer read something else than we wrote."""
    ours = plain_struct(asked.shape, asked.message)
    renamed = RENAMED.get((peer, asked.name), {})
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
            for name, held in mine.items():
                compare(held, other[names[name]], f"{path}.{name}")
        elif isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
            for index, (held, its) in enumerate(zip(mine, other, strict=True)):
                compare(held, its, f"{path}[{index}]")
        elif mine != other and not (other is None and mine in READ_AS_NONE[peer]):
            found.append(f"{path}: {mine!r} against {other!r}")

    compare(ours, theirs, asked.name)
    return found


def plain_struct(shape: StructLayout, struct: object) -> dict[str, Any]:
    """The fields as plain data, in the form of the peers' script."""
    return {
        field.name.lower(): plain(field.type, getattr(struct, field.attribute))
        for field in shape.all_fields()
    }


def plain(kind: WireType, value: Any) -> Any:
    if value is None:
        return None
    if kind.element is not None:
        return [plain(kind.element, held) for held in value]
    if kind.struct is not None:
        return plain_struct(kind.struct, value)
    return value.hex() if isinstance(value, bytes) else value


def structs(held: object) -> Iterator[Struct]:
    """A struct and all inside it."""
    if isinstance(held, Struct):
        yield held
        for name in held.__slots__:
            yield from structs(getattr(held, name))
    elif isinstance(held, list):
        for element in held:
            yield from structs(element)


def holds_unknown_tags(message: Message) -> bool:
    return any(struct.unknown_tagged_fields for struct in structs(message))


def without_unknown_tags(asked: Asked) -> bytes:
    bare = asked.message.copy()
    for struct in structs(bare):
        struct.unknown_tagged_fields = []
    return bare.encode(asked.version)


def error_codes(shape: StructLayout, message: Message) -> set[int]:
    """The values of all fields for error codes."""
    return {
        value
        for struct in structs(message)
        for name in struct.__slots__
        if name.endswith("error_code") and isinstance(value := getattr(struct, name), int)
    }


def test_differences_are_seen() -> None:
    """The comparison itself: another value, a field too few, a list too short, each is found."""
    spec = union()["MetadataRequest"]
    cls = generated.MetadataRequest
    message = instances(cls, 12)[2]
    asked = Asked(message, 12, layout(spec, 12), message.encode(12))
    value = plain_struct(asked.shape, message)
    assert differences("kio", asked, value) == []
    assert differences("kio", asked, value | {"allowautotopiccreation": 7})
    assert differences("kio", asked, value | {"topics": value["topics"][1:]})
    assert differences("kio", asked, value | {"topics": None})
    assert differences("kio", asked, {name: value[name] for name in list(value)[1:]})
    assert rule_for("kio", asked, {"hex": "00"}) is None
    assert spans({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8"
