"""Tests that read_committed consumers of kproto and other clients read the same records.

Random transactional producers and a producer without transactions write to one log. Some
transactions are committed, some aborted, and the last ones stay open.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from pathlib import Path
from typing import Final

import pytest

from tests.interop.transactional_peers import PEERS, read, read_by_kproto

from .transaction_sides import PARTITIONS, TransactionSide

pytestmark = [pytest.mark.peers, pytest.mark.slow]

STEPS: Final = 150
NAMES: Final = "abcd"
#: The producer without transactions.
PLAIN: Final = "plain"
#: The broker must not abort the open transactions before all clients have read.
TIMEOUT_MS: Final = 600_000


def write_log(side: TransactionSide, draw: random.Random) -> list[list[int]]:
    """Writes random batches; returns partition and offset of each record that is readable, sorted.

    Readable means readable with read_committed. So the result has no record of an aborted
    transaction, and no record after the first record of an open transaction.
    """
    ids = {name: f"{side.topic}-{name}" for name in NAMES}
    side.prepare(ids.values(), ())
    side.init(PLAIN, None, 4)
    for name, transactional_id in ids.items():
        side.init(name, transactional_id, 4, timeout_ms=TIMEOUT_MS)
    sequences: dict[tuple[str, int], int] = {}
    #: Partition and offset of the records of each ongoing transaction.
    ongoing: dict[str, list[list[int]]] = {}
    committed: list[list[int]] = []
    for _ in range(STEPS):
        name = draw.choice([PLAIN, *NAMES])
        if name in ongoing and draw.random() < 0.25:
            is_commit = draw.random() < 0.5
            assert side.end(name, ids[name], 3, committed=is_commit)[0] == "NONE"
            records = ongoing.pop(name)
            committed += records if is_commit else []
            continue
        partition, count = draw.randrange(PARTITIONS), draw.randrange(1, 6)
        if name != PLAIN:
            side.add_partitions(name, ids[name], [partition], 3)
        sequence = sequences.get((name, partition), 0)
        sequences[name, partition] = sequence + count
        result = side.produce(
            name,
            ids.get(name),
            partition,
            sequence,
            9,
            count=count,
            is_transactional=name != PLAIN,
        )
        assert result[0] == "NONE"
        records = [[partition, result[1] + index] for index in range(count)]
        if name == PLAIN:
            committed += records
        else:
            ongoing.setdefault(name, []).extend(records)
    open_records = [record for records in ongoing.values() for record in records]
    assert open_records, "no transaction is open"
    stable = [
        min((offset for part, offset in open_records if part == partition), default=None)
        for partition in range(PARTITIONS)
    ]
    return sorted(
        [partition, offset]
        for partition, offset in committed
        if (end := stable[partition]) is None or offset < end
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [0, 1])
async def test_read_committed_consumers_read_the_same_records(
    bootstrap: str, peers_python: Path, seed: int
) -> None:
    topic = f"log-{uuid.uuid4().hex[:8]}"
    side = TransactionSide(bootstrap, topic)
    try:
        expected = await asyncio.to_thread(write_log, side, random.Random(seed))
    finally:
        side.close()
    ours = (await read_by_kproto(bootstrap, topic))[topic]
    assert [record[:2] for record in ours] == expected
    for peer in PEERS:
        found = await asyncio.to_thread(read, peers_python, peer, bootstrap, topic)
        assert found == {topic: ours}, peer
