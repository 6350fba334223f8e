"""A share consumer of confluent-kafka; the arguments are BOOTSTRAP TOPIC GROUP MODE.

Prints a JSON line for each record (partition, offset, delivery count) and for each result of an
acknowledgement. In the mode `explicit` it releases the records of each tenth offset at their first
delivery, and rejects the records of each seventh offset. Ends when its input ends.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from confluent_kafka import AcknowledgeType, ShareConsumer


def main() -> None:
    bootstrap, topic, group, mode = sys.argv[1:]
    ending = threading.Event()

    def await_end() -> None:
        sys.stdin.read()
        ending.set()

    threading.Thread(target=await_end, daemon=True).start()

    def say(**event: object) -> None:
        print(json.dumps(event), flush=True)

    def acknowledged(offsets: dict[Any, set[int]], error: object) -> None:
        found = [[tp.partition, offset] for tp, its in offsets.items() for offset in sorted(its)]
        say(acknowledged=found, error=None if error is None else str(error))

    consumer = ShareConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "share.acknowledgement.mode": mode,
        }
    )
    consumer.set_acknowledgement_commit_callback(acknowledged)
    consumer.subscribe([topic])
    while not ending.is_set():
        for message in consumer.poll(0.2):
            if message.error() is not None:
                say(failed=str(message.error()))
                continue
            count, offset = message.delivery_count(), message.offset()
            say(got=[message.partition(), offset, count])
            if mode == "explicit":
                kind = AcknowledgeType.ACCEPT
                if offset % 7 == 0:
                    kind = AcknowledgeType.REJECT
                elif offset % 10 == 0 and count == 1:
                    kind = AcknowledgeType.RELEASE
                consumer.acknowledge(message, kind)
    consumer.close()
    say(closed=True)


if __name__ == "__main__":
    main()
