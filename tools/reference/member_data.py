"""Asks a Java program to encode and decode the data that group members exchange.

The program uses Kafka's ConsumerProtocol. This module encodes the questions;
`java/MemberData.java` decodes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kproto.client.groups.assignors.subscriptions import Subscription
from kproto.client.metadata.cluster import TopicPartition

from .process import (
    JavaProgramOperation,
    KafkaJavaProgram,
    Outcome,
    ReferenceFailedError,
    records_question,
)

__all__ = [
    "read_assignments",
    "read_subscriptions",
    "write_assignments",
    "write_subscriptions",
]


def write_subscriptions(
    judge: KafkaJavaProgram, wanted: Iterable[Subscription], version: int | None = None
) -> Iterator[bytes]:
    """Yields each subscription as Kafka's class encodes it; `version` None is the newest."""
    lines = (
        "\t".join(
            (
                "subscription",
                "-" if version is None else str(version),
                each.rack or "-",
                str(each.generation),
                _hex(each.user_data),
                ",".join(each.topics) or "-",
                _named(each.owned),
            )
        )
        for each in wanted
    )
    return (_taken(answer) for answer in _ask(judge, lines))


def write_assignments(
    judge: KafkaJavaProgram,
    wanted: Iterable[Sequence[TopicPartition]],
    version: int | None = None,
    user_data: bytes | None = None,
) -> Iterator[bytes]:
    """Yields each assignment as Kafka's class encodes it; `version` None is the newest."""
    told = "-" if version is None else str(version)
    lines = (f"assignment\t{told}\t{_hex(user_data)}\t{_named(each)}" for each in wanted)
    return (_taken(answer) for answer in _ask(judge, lines))


def read_subscriptions(
    judge: KafkaJavaProgram, data: Iterable[bytes]
) -> Iterator[Subscription | None]:
    """Yields each subscription as Kafka's class decodes it; None if the class refuses its bytes."""
    for answer in _ask(judge, (f"read-subscription\t{each.hex()}" for each in data)):
        if answer is None:
            yield None
            continue
        rack, generation, user_data, topics, owned = answer.decode().split("\t")
        yield Subscription(
            () if topics == "-" else tuple(topics.split(",")),
            _places(owned),
            int(generation),
            None if rack == "-" else rack,
            None,
            None if user_data == "-" else bytes.fromhex(user_data),
        )


def read_assignments(
    judge: KafkaJavaProgram, data: Iterable[bytes]
) -> Iterator[list[TopicPartition] | None]:
    """Yields each assignment as Kafka's class decodes it; None if the class refuses its bytes."""
    for answer in _ask(judge, (f"read-assignment\t{each.hex()}" for each in data)):
        yield None if answer is None else _places(answer.decode().split("\t")[1])


def _ask(judge: KafkaJavaProgram, lines: Iterable[str]) -> Iterator[bytes | None]:
    questions = (
        records_question(JavaProgramOperation.MEMBER_DATA, line.encode()) for line in lines
    )
    for answer in judge.ask(questions):
        if answer.outcome is Outcome.FAILED:
            raise ReferenceFailedError(answer.data.decode())
        yield answer.data if answer.outcome is Outcome.DONE else None


def _taken(answer: bytes | None) -> bytes:
    if answer is None:
        raise ReferenceFailedError("Kafka's class refused to write")
    return answer


def _hex(data: bytes | None) -> str:
    return "-" if data is None else data.hex()


def _named(places: Iterable[TopicPartition]) -> str:
    return ",".join(f"{topic}:{partition}" for topic, partition in places) or "-"


def _places(text: str) -> list[TopicPartition]:
    found = [] if text == "-" else [each.rpartition(":") for each in text.split(",")]
    return [(topic, int(number)) for topic, _, number in found]
