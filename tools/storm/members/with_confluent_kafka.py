"""Runs confluent-kafka (librdkafka) as a member of the group."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from tools.storm.members.lines import MemberLog
from tools.storm.protocols import BROKERS_OWN, SESSION_MS

bootstrap, topic, group, assignor, path, *instance = sys.argv[1:]
log = MemberLog(path)
going = True


def stop(*_: object) -> None:
    global going
    going = False


def tell(word: str) -> Any:
    return lambda _, tps: log.partitions(word, [tp.partition for tp in tps])


signal.signal(signal.SIGTERM, stop)
settings: dict[str, Any] = {
    "bootstrap.servers": bootstrap,
    "client.id": Path(path).stem,
    "group.id": group,
    "auto.offset.reset": "earliest",
    "auto.commit.interval.ms": 1_000,
    "enable.auto.offset.store": False,
}
if assignor in BROKERS_OWN:
    settings |= {"group.protocol": "consumer", "group.remote.assignor": assignor}
else:
    settings |= {
        "partition.assignment.strategy": assignor,
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": 500,
    }
if instance:
    settings["group.instance.id"] = instance[0]
consumer = Consumer(settings)
log.say("started")
consumer.subscribe(
    [topic], on_assign=tell("assigned"), on_revoke=tell("revoked"), on_lost=tell("lost")
)
while going:
    message = consumer.poll(0.1)
    if message is None:
        continue
    if message.error() is not None:
        log.say("error", message.error())
        continue
    log.read(message.partition(), message.offset())
    time.sleep(0.002)
    consumer.store_offsets(message)
consumer.close()
log.say("left")
