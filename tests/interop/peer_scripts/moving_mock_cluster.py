"""Runs librdkafka's mock cluster and moves leaders on command: `BROKERS TOPIC PARTITIONS`.

Prints the bootstrap servers. Then carries out each line of standard input, and prints "ok" or the
error. The commands are `move PARTITION NODE`, `down NODE`, `up NODE`, `delay NODE MS` (for each
response) and `refuse KEY TIMES CODE`. The Python package has no functions for these commands, so
the script calls the C library itself.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path

import confluent_kafka

PRODUCER = 0

library = next(
    Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdkafka*")
)
rd = ctypes.CDLL(str(library))
for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_handle_mock_cluster"):
    getattr(rd, name).restype = ctypes.c_void_p
rd.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p

brokers, topic, partitions = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
told = ctypes.create_string_buffer(512)
conf = ctypes.c_void_p(rd.rd_kafka_conf_new())
rd.rd_kafka_conf_set(conf, b"test.mock.num.brokers", brokers.encode(), told, 512)
owner = ctypes.c_void_p(rd.rd_kafka_new(PRODUCER, conf, told, 512))
assert owner.value, told.value
cluster = ctypes.c_void_p(rd.rd_kafka_handle_mock_cluster(owner))
assert rd.rd_kafka_mock_topic_create(cluster, topic, partitions, int(brokers)) == 0
print(rd.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)


def refuse(key: int, times: int, code: int) -> int:
    """Makes the next `times` requests of the API `key` fail with the error `code`; returns 0."""
    codes = (ctypes.c_int * times)(*[code] * times)
    rd.rd_kafka_mock_push_request_errors_array(cluster, ctypes.c_int16(key), times, codes)
    return 0


ORDERS: dict[str, Callable[..., object]] = {
    "move": lambda at, node: rd.rd_kafka_mock_partition_set_leader(cluster, topic, at, node),
    "down": lambda node: rd.rd_kafka_mock_broker_set_down(cluster, node),
    "up": lambda node: rd.rd_kafka_mock_broker_set_up(cluster, node),
    "delay": lambda node, ms: rd.rd_kafka_mock_broker_set_rtt(cluster, node, ms),
    "refuse": refuse,
}

for line in sys.stdin:
    order, *numbers = line.split()
    failed = ORDERS[order](*map(int, numbers))
    print(f"error {failed}" if failed else "ok", flush=True)
