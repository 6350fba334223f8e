"""Asks a Java program for the assignments of Kafka's client-side assignors, for random groups.

Encodes the questions; `java/Assignors.java` decodes them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kproto.client.groups.assignors.ranges import assign_ranges
from kproto.client.groups.assignors.roundrobin import assign_round_robin
from kproto.client.groups.assignors.sticky import assign_cooperative_sticky, assign_sticky
from kproto.client.groups.assignors.sticky_data import cooperative_user_data, sticky_user_data
from kproto.client.groups.assignors.subscriptions import Assign, Assignment, Subscription
from kproto.client.metadata.cluster import TopicPartition

from .process import (
    JavaProgramOperation,
    KafkaJavaProgram,
    Outcome,
    ReferenceFailedError,
    records_question,
)

__all__ = ["ASSIGNORS", "AssignorInput", "assigned", "groups"]

ASSIGNORS: Final[dict[str, Assign]] = {
    "range": assign_ranges,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperative_sticky,
}

_ITS_FAULT: Final = "AbstractStickyAssignor$GeneralAssignmentBuilder.performReassignments"

_RACKS: Final = ("a", "b", "c")


class AssignorInput(NamedTuple):
    """The racks of each topic's partitions, and the members with their subscriptions."""

    topics: dict[str, list[frozenset[str]]]
    members: dict[str, Subscription]


def groups(count: int, seed: int, assignor: str) -> Iterator[AssignorInput]:
    """Yields at least `count` random groups, equal for an equal seed and assignor.

    After each new group, yields up to three later generations of it, each with random changes.
    """
    chance = random.Random(f"{seed} {assignor}")
    made = 0
    while made < count:
        group = _new_group(chance)
        for generation in range(1, chance.randint(2, 5)):
            yield group
            made += 1
            found = ASSIGNORS[assignor](group.topics, group.members)
            read = {member: list(places) for member, places in found.items()}
            group = _changed(chance, assignor, group, read, generation)


def assigned(
    judge: KafkaJavaProgram, assignor: str, wanted: Iterable[AssignorInput]
) -> Iterator[Assignment | None]:
    """Yields the assignment of Kafka's class for each group; None if a bug makes the class fail.

    The known bug: the class throws NullPointerException if a member no longer subscribes to the
    topic of a partition that the member owned, and already has as many partitions as it can get.
    Raises ReferenceFailedError for any other failure.
    """
    questions = (
        records_question(JavaProgramOperation.ASSIGN, _lines(assignor, group).encode())
        for group in wanted
    )
    for answer in judge.ask(questions):
        text = answer.data.decode()
        if answer.outcome is Outcome.DONE:
            yield dict(map(_decided, text.splitlines()))
        elif text.startswith("java.lang.NullPointerException") and _ITS_FAULT in text:
            yield None
        else:
            raise ReferenceFailedError(text)


def _new_group(chance: random.Random) -> AssignorInput:
    with_racks = chance.random() < 0.4
    topics = {
        f"t{number}": _partitions(chance, chance.choice((1, 2, 3, 4, 6, 9)), with_racks)
        for number in range(chance.randint(1, 5))
    }
    alike = chance.random() < 0.5
    wanted = _some(chance, list(topics))
    members = {}
    for _ in range(chance.randint(1, 7)):
        its = wanted if alike else _some(chance, list(topics))
        members[_name(chance)] = _member(chance, its, with_racks)
    return AssignorInput(topics, members)


def _partitions(chance: random.Random, count: int, with_racks: bool) -> list[frozenset[str]]:
    if not with_racks:
        return [frozenset()] * count
    copies = chance.randint(1, len(_RACKS))
    return [frozenset(chance.sample(_RACKS, copies)) for _ in range(count)]


def _member(chance: random.Random, topics: list[str], with_racks: bool) -> Subscription:
    rack = chance.choice((*_RACKS, *_RACKS, None)) if with_racks else None
    instance = f"i{chance.randrange(10_000)}" if chance.random() < 0.2 else None
    return Subscription(topics, rack=rack, instance_id=instance)


def _some(chance: random.Random, names: list[str]) -> list[str]:
    return chance.sample(names, chance.randint(1, len(names)))


def _name(chance: random.Random) -> str:
    return f"m-{chance.randrange(16**6):06x}"


def _changed(
    chance: random.Random,
    assignor: str,
    group: AssignorInput,
    read: dict[str, list[TopicPartition]],
    generation: int,
) -> AssignorInput:
    """Returns the group of the next generation: members and topics changed at random."""
    topics = dict(group.topics)
    with_racks = any(racks for partitions in topics.values() for racks in partitions)
    members = {}
    for member_id, member in group.members.items():
        if chance.random() < 0.2:
            continue
        told = generation - 1 if chance.random() < 0.1 else generation
        members[member_id] = _telling(member, assignor, read[member_id], told, chance)
    alike = len({frozenset(member.topics) for member in members.values()}) == 1
    while not members or chance.random() < 0.4:
        wanted = next(iter(members.values())).topics if members and alike else list(topics)
        its = list(wanted) if alike else _some(chance, list(wanted))
        members[_name(chance)] = _member(chance, its, with_racks)
    if chance.random() < 0.2:
        grown = chance.choice(list(topics))
        topics[grown] = topics[grown] + _partitions(chance, chance.randint(1, 3), with_racks)
    if chance.random() < 0.1 and len(topics) > 1:
        del topics[chance.choice(list(topics))]
    if chance.random() < 0.2:
        member_id = chance.choice(list(members))
        some = _some(chance, list(group.topics))
        members[member_id] = members[member_id]._replace(topics=some)
    return AssignorInput(topics, members)


def _telling(
    member: Subscription,
    assignor: str,
    read: list[TopicPartition],
    generation: int,
    chance: random.Random,
) -> Subscription:
    """Returns the subscription with which a member joins again, in the assignor's format."""
    if chance.random() < 0.05:
        return member._replace(owned=(), generation=-1, user_data=None)  # the member restarted
    if assignor == "sticky":
        data = sticky_user_data(read, generation)
        return member._replace(owned=(), generation=-1, user_data=data)
    if assignor == "cooperative-sticky":
        if chance.random() < 0.2:  # an older client sends its generation in the user data
            data = cooperative_user_data(generation)
            return member._replace(owned=read, generation=-1, user_data=data)
        return member._replace(owned=read, generation=generation, user_data=None)
    return member


def _lines(assignor: str, group: AssignorInput) -> str:
    lines = [f"assignor\t{assignor}"]
    for topic, partitions in group.topics.items():
        racks = [",".join(sorted(each)) or "-" for each in partitions]
        lines.append("\t".join(["topic", topic, *racks]))
    for member_id, member in group.members.items():
        words = [
            member_id,
            member.instance_id or "-",
            member.rack or "-",
            str(member.generation),
            "-" if member.user_data is None else member.user_data.hex(),
            ",".join(member.topics) or "-",
            ",".join(f"{topic}:{partition}" for topic, partition in member.owned) or "-",
        ]
        lines.append("\t".join(["member", *words]))
    return "\n".join(lines)


def _decided(line: str) -> tuple[str, list[TopicPartition]]:
    member_id, *places = line.split("\t")
    found = []
    for place in places:
        topic, _, partition = place.rpartition(":")
        found.append((topic, int(partition)))
    return member_id, found
