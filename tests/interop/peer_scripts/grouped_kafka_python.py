"""Runs kafka-python as a group member: `BOOTSTRAP TOPIC GROUP`.

Prints the same events as `grouped_aiokafka`.
"""

from __future__ import annotations

import json
import sys
import threading

from kafka import ConsumerRebalanceListener, KafkaConsumer

bootstrap, topic, group = sys.argv[1:4]


def tell(*what: object) -> None:
    print(json.dumps(what), flush=True)


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def on_partitions_revoked(self, revoked: object) -> None:
        pass

    def on_partitions_assigned(self, assigned: set[object]) -> None:
        tell("assigned", sorted(it.partition for it in assigned))  # type: ignore[attr-defined]


ended = threading.Event()


def wait_for_end() -> None:
    sys.stdin.read()
    ended.set()


consumer = KafkaConsumer(
    bootstrap_servers=bootstrap,
    group_id=group,
    auto_offset_reset="earliest",
    heartbeat_interval_ms=200,
    auto_commit_interval_ms=200,
)
consumer.subscribe([topic], listener=Listener())
threading.Thread(target=wait_for_end, daemon=True).start()
while not ended.is_set():
    # The timeout is long: a poll that ends during a rejoin leaves kafka-python 3.0 without
    # partitions and heartbeats.
    for partition, records in consumer.poll(timeout_ms=2_000).items():
        for record in records:
            tell("read", partition.partition, record.value.decode())
consumer.close()
tell("left")
