"""Measures produce and consume over many partitions of a real broker, with several clients.

    python -m tools.bench.partitions [--records 300000] [--repeat 3] [--rows TEXT] [--clients NAMES]

The topics have 1 to 9,000 partitions, and the records have keys of 16 bytes. The rules of the
measurement are those of `tools.bench.client`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tools.bench import client
from tools.bench.clients.rows import PARTITION_ROWS
from tools.kafka import SMALL_INDEXES, KafkaNode

__all__ = ["main"]

#: Fewer than in the table of one partition: with 1,000 partitions, aiokafka needs a minute for
#: 100,000 records.
RECORDS = 300_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the tables; the options are those of `tools.bench.client`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    clients = ["--clients", "kproto,confluent_kafka,aiokafka"]
    return client.main(["--records", str(RECORDS), *clients, *given], PARTITION_ROWS, node)


def node() -> KafkaNode:
    """Returns a broker for thousands of partitions.

    The index files are small, and the files of a deleted topic are removed after a second.
    """
    config = {**SMALL_INDEXES, "log.segment.delete.delay.ms": "1000"}
    return KafkaNode(client.BROKER, config=config, heap="2g")


if __name__ == "__main__":
    sys.exit(main())
