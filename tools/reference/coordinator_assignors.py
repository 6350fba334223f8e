"""Asks a Java program for the assignments of Kafka's server-side assignors, for random groups.

Encodes the questions; `coordinator/CoordinatorAssignors.java` decodes them. The assignors are those
of Kafka 4.4; earlier releases have other assignors.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kproto.broker.groups.consumer.assignors import Assignment, GroupSpec, MemberSpec, assign
from kproto.broker.groups.consumer.assignors.group_spec import topics_in_order
from kproto.broker.groups.consumer.consumer_group_member import Partitions
from kproto.broker.groups.share.simple_assignor import assign_simple
from kproto.wire.uuid import Uuid
from tools.setup.java import java_home

from .classes import class_path

__all__ = [
    "RELEASE",
    "CoordinatorAssignorInput",
    "assigned",
    "decided",
    "decisions",
    "known_class_path",
]

RELEASE: Final = "4.4.0"
SOURCES: Final = Path(__file__).with_name("coordinator")

#: The time limit of the whole program, which answers thousands of questions.
_PATIENCE_S: Final = 120


class CoordinatorAssignorInput(NamedTuple):
    """A group, and the assignor that must assign its partitions.

    `assignable` are the partitions that the assignor of share groups may assign.
    """

    assignor: str
    group: GroupSpec
    assignable: Partitions


def assigned(decision: CoordinatorAssignorInput) -> Assignment:
    """Returns the assignment that the embedded broker computes."""
    group = decision.group
    if decision.assignor != "simple":
        return assign(decision.assignor, group)
    members = {
        member_id: MemberSpec(
            dict.fromkeys(topics_in_order(it.topics)).keys(), it.instance_id, it.assigned
        )
        for member_id, it in group.members.items()
    }
    spec = GroupSpec(members, group.partitions, group.is_homogeneous)
    return assign_simple(spec, decision.assignable)


def known_class_path() -> str:
    """Returns the class path of the Java program, compiled for Kafka `RELEASE`.

    Raises ReferenceUnavailableError.
    """
    return class_path(RELEASE, SOURCES)


def decisions(count: int, seed: int) -> Iterator[CoordinatorAssignorInput]:
    """Yields at least `count` random groups, equal for equal seeds.

    After each new group, yields up to four later generations of it, each with random changes.
    """
    chance = random.Random(seed)
    made = 0
    while made < count:
        for decision in _generations(chance):
            yield decision
            made += 1


def _generations(chance: random.Random) -> Iterator[CoordinatorAssignorInput]:
    assignor = chance.choice(("uniform", "range", "simple"))
    most = 20 if chance.random() < 0.2 else 6
    topics = {
        Uuid(chance.randbytes(16)): chance.choice((1, 2, 3, 5, 8, 13, 30, 70))
        for _ in range(chance.randint(1, most))
    }
    alike = chance.random() < 0.5
    members: dict[str, MemberSpec] = {}
    crowd = chance.randint(1, 40 if chance.random() < 0.2 else 8)
    for _ in range(crowd):
        members[_name(chance)] = _member(chance, list(topics), alike=alike)
    assignable: dict[Uuid, frozenset[int]] = {}
    for _ in range(chance.randint(1, 5)):
        assignable = _assignable(chance, topics, assignable)
        homogeneous = len({frozenset(it.topics) for it in members.values()}) == 1
        group = GroupSpec(dict(members), dict(topics), homogeneous)
        decision = CoordinatorAssignorInput(assignor, group, assignable)
        yield decision
        found = assigned(decision)
        for member_id, member in tuple(members.items()):
            has = {it: frozenset(its) for it, its in found.get(member_id, {}).items()}
            wanted = member.topics
            if not alike and chance.random() < 0.15:
                wanted = _member(chance, list(topics), alike=False).topics
            members[member_id] = MemberSpec(wanted, member.instance_id, has)
            if chance.random() < 0.2 and len(members) > 1:
                del members[member_id]
        for _ in range(chance.randint(0, 3)):
            members[_name(chance)] = _member(chance, list(topics), alike=alike)
        if chance.random() < 0.3:
            topics[chance.choice(list(topics))] += chance.randint(1, 4)


def _assignable(
    chance: random.Random, topics: Mapping[Uuid, int], before: Partitions
) -> dict[Uuid, frozenset[int]]:
    """Returns the partitions whose share state exists: those of `before`, and most others."""
    share = chance.choice((0.5, 1, 1))
    return {
        it: before.get(it, frozenset())
        | frozenset(at for at in range(count) if chance.random() < share)
        for it, count in topics.items()
    }


def _name(chance: random.Random) -> str:
    return (
        f"m{chance.randrange(10**6)}" if chance.random() < 0.8 else str(Uuid(chance.randbytes(16)))
    )


def _member(chance: random.Random, topics: list[Uuid], *, alike: bool) -> MemberSpec:
    least = 0 if chance.random() < 0.1 else 1
    wanted = topics if alike else chance.sample(topics, chance.randint(least, len(topics)))
    instance_id = f"i{chance.randrange(10**6)}" if chance.random() < 0.2 else None
    return MemberSpec(frozenset(wanted), instance_id)


def decided(wanted: Sequence[CoordinatorAssignorInput]) -> list[Assignment]:
    """Returns the assignment of Kafka's class for each group; omits members without partitions.

    Raises ReferenceUnavailableError or CalledProcessError.
    """
    command = [str(java_home() / "bin" / "java"), "-cp", known_class_path(), "CoordinatorAssignors"]
    question = "".join(f"{line}\n" for one in wanted for line in _lines(one))
    answer = subprocess.run(
        command,
        input=question,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
        timeout=_PATIENCE_S,
    )
    return [_assignment(line) for line in answer.stdout.split("\n")[:-1]]


def _lines(decision: CoordinatorAssignorInput) -> Iterator[str]:
    group = decision.group
    yield f"group\t{decision.assignor}\t{group.is_homogeneous:d}"
    for topic_id, count in group.partitions.items():
        words = ["topic", str(topic_id), str(count)]
        if decision.assignor == "simple":
            words.append(",".join(map(str, sorted(decision.assignable[topic_id]))))
        yield "\t".join(words)
    for member_id, member in group.members.items():
        subscribed = ",".join(map(str, member.topics))
        assigned = [
            f"{topic_id}:{','.join(map(str, sorted(its)))}"
            for topic_id, its in member.assigned.items()
        ]
        yield "\t".join(["member", member_id, member.instance_id or "-", subscribed, *assigned])
    yield "decide"


def _assignment(line: str) -> Assignment:
    found: Assignment = {}
    for place in line.split("\t")[:-1]:
        member_id, topic_id, partition = place.split(" ")
        partitions = found.setdefault(member_id, {}).setdefault(Uuid.parse(topic_id), set())
        if partition != "-":
            partitions.add(int(partition))
    return found
