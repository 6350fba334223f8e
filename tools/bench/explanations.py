"""Compares the time to explain why bytes are invalid with the time to decode valid bytes.

    python -m tools.bench.explanations [--rounds N] [--bytes N]

Each message has arrays of the smallest possible elements, and one extra byte at its end, so that
the decoder reads the whole message before it finds the fault. The table has the messages of Kafka
that create the most objects per byte, and test messages that create the fewest (`worst_structs`).
The columns are: the size; the times of a decode, of a failing decode with its explanation, and of
the explanation alone; the time of the explanation divided by the time of the decode; the peak
memory of the decode and of the failing decode. Times are the CPU time of the fastest round.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kproto.messages import (
    AlterClientQuotasResponse,
    MetadataResponse,
    ProduceRequest,
)
from kproto.messages.alter_client_quotas_response import EntityData, EntryData
from kproto.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.schema.explain import explain_decode
from kproto.wire.errors import DecodeError
from kproto.wire.limits import MAX_ARRAY_ELEMENTS

from .worst_structs import message_of, worst_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto.messages.base import Message

#: The maximum ratio of the time of an explanation to the time of a decode.
WANTED: Final = 2.0


class KafkaMessage(NamedTuple):
    """A message of Kafka, and its version; `of(n)` creates one with n elements of minimum size."""

    name: str
    of: Callable[[int], Message]
    version: int


class EncodedMessage(NamedTuple):
    """The valid bytes of a message; `main` appends the faulty byte."""

    name: str
    cls: type[Message]
    version: int
    data: bytes


def _produce(count: int) -> Message:
    parts = TopicProduceData(partition_data=_many(PartitionProduceData(), count))
    return ProduceRequest(topic_data=[parts] * (1 + count // MAX_ARRAY_ELEMENTS))


def _metadata(count: int) -> Message:
    topic = MetadataResponseTopic(partitions=_many(MetadataResponsePartition(), count))
    return MetadataResponse(topics=[topic])


def _quotas(count: int) -> Message:
    entry = EntryData(entity=_many(EntityData(), count))
    return AlterClientQuotasResponse(entries=[entry] * (1 + count // MAX_ARRAY_ELEMENTS))


def _many(element: Any, count: int) -> list[Any]:
    """Returns a list that contains `element` `count` times, at most MAX_ARRAY_ELEMENTS times."""
    return [element] * min(count, MAX_ARRAY_ELEMENTS)


KAFKAS: Final = (
    KafkaMessage("Produce request", _produce, 13),
    KafkaMessage("Metadata response", _metadata, 12),
    KafkaMessage("AlterClientQuotas response", _quotas, 0),
)


def sized(case: KafkaMessage, size: int) -> bytes:
    """Returns the message encoded in about `size` bytes."""
    ten = len(case.of(1010).encode(case.version)) - len(case.of(1000).encode(case.version))
    return case.of(10 * size // ten).encode(case.version)


def cases(size: int) -> Iterator[EncodedMessage]:
    """Yields each message of KAFKAS and of `worst_classes`, encoded in about `size` bytes."""
    for case in KAFKAS:
        cls, version = type(case.of(0)), case.version
        yield EncodedMessage(f"{case.name} v{version}", cls, version, sized(case, size))
    with worst_classes() as classes:
        for worst, cls in classes.items():
            yield EncodedMessage(worst.name, cls, 0, message_of(worst, size))


def fastest(call: Callable[[], object], rounds: int) -> float:
    """Returns the CPU seconds of the fastest round."""
    times = []
    for _ in range(rounds):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def peak(call: Callable[[], object]) -> float:
    """Returns the peak of Python's memory during a call, in MB."""
    tracemalloc.start()
    call()
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return taken / 1e6


def main() -> int:
    """Prints a line per case; returns 1 if an explanation takes longer than allowed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bytes", type=int, default=10_000_000)
    arguments = parser.parse_args()
    print(f"{'case':34} {'MB':>5} {'decode s':>9} {'failing s':>9} {'explain s':>9} "
          f"{'ratio':>6} {'MB':>7} {'failing MB':>10}")  # fmt: skip
    reached = True
    for name, cls, version, data in cases(arguments.bytes):
        broken, spec = data + b"\x00", cls._definition()

        def read(cls: type[Message] = cls, data: bytes = data, version: int = version) -> object:
            return cls.decode(data, version)

        def fail(cls: type[Message] = cls, broken: bytes = broken, version: int = version) -> None:
            try:
                cls.decode(broken, version)
            except DecodeError:
                return
            raise AssertionError("the decoder did not detect the byte after the end")

        def explain(spec: Any = spec, broken: bytes = broken, version: int = version) -> object:
            return explain_decode(spec, version, broken)

        seconds = [fastest(call, arguments.rounds) for call in (read, fail, explain)]
        ratio = seconds[2] / seconds[0]
        reached = reached and ratio <= WANTED
        print(
            f"{name:34} {len(data) / 1e6:5.1f} {seconds[0]:9.2f} "
            f"{seconds[1]:9.2f} {seconds[2]:9.2f} {ratio:6.2f} {peak(read):7.1f} {peak(fail):10.1f}"
            f"{'' if ratio <= WANTED else '  above'}",
            flush=True,
        )
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
