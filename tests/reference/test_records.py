"""Tests that Kafka's classes and kproto decode each other's record batches and message sets.

Kafka and kproto must also decode or refuse mutated bytes equally.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kproto.records import Header, NewRecord, encode_batch, encode_message_set
from tests.kafka.odd_batches import odd_batches
from tests.support.availability import not_available
from tools.reference import KafkaJavaProgram, ReferenceUnavailableError
from tools.reference.pairs import RELEASES
from tools.reference.records import STRICTER, Verdict, build, describe, judge, mutations, read

pytestmark = [pytest.mark.reference, pytest.mark.slow]

T = 1_767_225_600_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FORMS = [(magic, codec) for magic in (0, 1, 2) for codec in CODECS if magic == 2 or codec != "zstd"]

forms = pytest.mark.parametrize(("magic", "codec"), FORMS)


@pytest.fixture(scope="module", params=RELEASES)
def kafka_classes(request: pytest.FixtureRequest) -> Iterator[KafkaJavaProgram]:
    """Yields Kafka's classes of each release."""
    try:
        running = KafkaJavaProgram(request.param)
    except ReferenceUnavailableError as error:
        not_available("Kafka's own classes", error)
    with running:
        yield running


def headers_of(magic: int, number: int) -> list[Header]:
    """Returns the first `number` % 7 of six different headers.

    Returns none for magic 0 and 1, which have no headers.
    """
    if magic < 2:
        return []
    return [("a", b"1"), ("a", b"2"), ("null", None), ("empty", b""), ("", b"\0"), ("é√😀", b"x")][
        : number % 7
    ]


def samples(magic: int) -> list[list[NewRecord]]:
    """Returns lists of few, one and many records, with null, empty and large values."""
    few: list[NewRecord] = [
        (b"k1", b"v1", headers_of(magic, 0), T),
        (None, b"value of a null key", headers_of(magic, 5), T + 5),
        (b"", None, headers_of(magic, 6), T - 7),
        (None, None, headers_of(magic, 1), T + 100_000),
        (b"k", b"", headers_of(magic, 3), T + 1),
    ]
    many: list[NewRecord] = [
        (
            b"key-%d" % number,
            b"value " * (number % 9) + b"%d" % number,
            headers_of(magic, number),
            T + number * 3,
        )
        for number in range(300)
    ]
    sizes: list[NewRecord] = [
        (bytes(size % 251), bytes([size % 256]) * size, headers_of(magic, size), T)
        for size in (63, 64, 127, 128, 8191, 8192, 70_000)
    ]
    return [few, few[:1], many, sizes, [(b"k", b"v", [], -1)], [(b"k", b"v", [], 2**63 - 1)]]


def described_for_java(
    magic: int, codec: str, records: list[NewRecord], *, gap: int = 1, **fields: Any
) -> dict[str, Any]:
    """Returns a batch's description for Kafka's batch builder; offsets increase by `gap`."""
    base_offset = fields.get("base_offset", 0)
    return {
        "magic": magic,
        "compression": codec,
        "records": [
            (base_offset + number * gap, timestamp, key, value, headers)
            for number, (key, value, headers, timestamp) in enumerate(records)
        ],
        **fields,
    }


PRODUCER: dict[str, Any] = {"producer_id": 4711, "producer_epoch": 3, "base_sequence": 2**31 - 2}


def variants(magic: int) -> list[dict[str, Any]]:
    """Returns several sets of batch fields; `described_for_java` adds the records to a set."""
    found: list[dict[str, Any]] = [{}, {"base_offset": 2**40}, {"base_offset": 500, "gap": 7}]
    if magic >= 1:
        found.append({"log_append_time": T + 777, "base_offset": 3})
    if magic == 2:
        found.append(PRODUCER)
        found.append({**PRODUCER, "is_transactional": True, "partition_leader_epoch": 9})
    return found


@forms
def test_batches_of_java_are_decoded_as_java_decodes_them(
    kafka_classes: KafkaJavaProgram, magic: int, codec: str
) -> None:
    wanted = [
        described_for_java(magic, codec, records, **fields)
        for records in samples(magic)
        for fields in variants(magic)
    ]
    buffers = build(kafka_classes, wanted)
    for data, theirs, spec in zip(buffers, read(kafka_classes, buffers), wanted, strict=True):
        assert theirs.error is None
        assert sum(len(batch["records"]) for batch in theirs.batches) == len(spec["records"])
        assert describe(data) == theirs


@forms
def test_batches_of_kproto_are_decoded_equally_by_java(
    kafka_classes: KafkaJavaProgram, magic: int, codec: str
) -> None:
    buffers: list[bytes] = []
    for records in samples(magic):
        if magic == 2:
            buffers.append(encode_batch(records, compression=codec))
            buffers.append(
                encode_batch(
                    records,
                    compression=codec,
                    is_transactional=True,
                    base_offset=2**40,
                    partition_leader_epoch=9,
                    **PRODUCER,
                )
            )
            continue
        buffers += [
            encode_message_set(records, magic=magic, compression=codec, base_offset=base_offset)
            for base_offset in (0, 2**40)
        ]
        if magic == 1:
            buffers.append(encode_message_set(records, compression=codec, log_append_time=T + 777))
    buffers.append(b"".join(buffers))
    for data, theirs in zip(buffers, read(kafka_classes, buffers), strict=True):
        assert theirs.error is None
        assert describe(data) == theirs


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_uncompressed_batches_have_the_bytes_of_java(
    kafka_classes: KafkaJavaProgram, magic: int
) -> None:
    lists = samples(magic)
    theirs = build(kafka_classes, [described_for_java(magic, "none", one) for one in lists])
    for records, data in zip(lists, theirs, strict=True):
        if magic == 2:
            assert encode_batch(records) == data
        else:
            assert encode_message_set(records, magic=magic) == data


def test_mixed_magics_are_decoded_equally(kafka_classes: KafkaJavaProgram) -> None:
    pieces = build(
        kafka_classes,
        [
            described_for_java(magic, codec, samples(magic)[0], base_offset=100 * number)
            for number, (magic, codec) in enumerate(FORMS)
        ],
    )
    whole = b"".join(pieces)
    buffers = [whole, b"".join(reversed(pieces)), *(whole[:-cut] for cut in range(1, 70))]
    for data, theirs in zip(buffers, read(kafka_classes, buffers), strict=True):
        assert theirs.error is None
        assert describe(data) == theirs


MUTATIONS = 3000
SEED = 20_260_101
ODD_BATCHES = 4000


@pytest.mark.exhaustive
@forms
def test_java_and_kproto_agree_on_mutated_batches(
    kafka_classes: KafkaJavaProgram, magic: int, codec: str
) -> None:
    few = samples(magic)[0]
    if magic == 2:
        seeds = [encode_batch(few, compression=codec), encode_batch(few[1:2], compression=codec)]
    else:
        # Each seed is one log entry; with codec `none` every message is an entry.
        lists = [[record] for record in few] if codec == "none" else [few]
        seeds = [encode_message_set(one, magic=magic, compression=codec) for one in lists]
    buffers = list(mutations(seeds, MUTATIONS, SEED))
    counted: Counter[str] = Counter()
    disagreements = []
    for data, theirs in zip(buffers, read(kafka_classes, buffers), strict=True):
        ours = describe(data)
        verdict, reason = judge(ours, theirs)
        counted[reason or verdict.value] += 1
        if verdict is Verdict.DISAGREEMENT:
            disagreements.append((data.hex(), ours.error, theirs.error))
    print(f"\n{kafka_classes.release}, magic {magic}, {codec}: {dict(counted.most_common())}")
    assert disagreements == []
    assert counted[Verdict.SAME.value] > MUTATIONS / 10
    assert counted[Verdict.NEITHER.value] > MUTATIONS / 10
    assert set(counted) <= {*STRICTER.values(), Verdict.SAME.value, Verdict.NEITHER.value}


def test_java_and_kproto_agree_on_odd_batches(kafka_classes: KafkaJavaProgram) -> None:
    """Many batches have a second stream, or other bytes, after the compressed data."""
    batches = odd_batches(SEED, ODD_BATCHES)
    found = read(kafka_classes, [batch.data for batch in batches])
    disagreements = []
    for batch, theirs in zip(batches, found, strict=True):
        ours = describe(batch.data)
        verdict, reason = judge(ours, theirs)
        if verdict is Verdict.DISAGREEMENT or "do not decompress" in reason:
            disagreements.append((batch.shape, ours.error, theirs.error))
    assert disagreements == []
