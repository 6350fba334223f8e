"""Tests programs that end without a close of their client."""

from __future__ import annotations

import sys

import pytest

from kproto.broker import SilentConnection
from kproto.messages import ProduceRequest
from tests.support.embedded import ThreadedBroker
from tests.unit.sync.programs import WARNINGS, run_program

pytestmark = pytest.mark.slow

UNCLOSED = """
client = kproto.sync.Client(bootstrap, kproto.ClientSettings(error_flush_ms=300))
producer = client.producer(linger_ms=60_000)
for number in range(7):
    producer.enqueue("one", b"%d" % number)
print("end")
"""


def test_exit_sends_the_records_of_an_open_producer_and_warns(broker: ThreadedBroker) -> None:
    ended = run_program(UNCLOSED, broker.bootstrap, *WARNINGS)
    assert (ended.code, ended.output) == (0, "end\n")
    assert "ResourceWarning: a client of kproto.sync was not closed" in ended.errors
    assert len(broker.call(lambda it: it.records("one"))) == 7


def test_exit_says_how_many_records_were_not_sent(broker: ThreadedBroker) -> None:
    broker.call(lambda it: it.control(SilentConnection(), request=ProduceRequest))
    ended = run_program(UNCLOSED, broker.bootstrap)
    assert (ended.code, ended.output) == (0, "end\n")
    assert "7 records" in ended.errors
    assert "one" in ended.errors


CONSUMER = """
import threading

client = kproto.sync.Client(bootstrap)
revoked = []
consumer = client.consumer("one", group="g", on_revoked=lambda partitions: print("revoked"))
iteration = iter(consumer)
next(iteration), next(iteration)
"""


#: Python 3.12.0 and 3.12.1 start no thread once the main thread has ended (gh-113964).
STARTS_THREADS = pytest.mark.skipif(
    (3, 12) <= sys.version_info < (3, 12, 2), reason="Python starts no thread at its exit"
)


@STARTS_THREADS
def test_exit_commits_processed_records_and_leaves_the_group(broker: ThreadedBroker) -> None:
    with_records = "with kproto.sync.Client(bootstrap) as it, it.producer() as one:\n"
    with_records += "    one.send_many('one', [b'x'] * 5)\n"
    ended = run_program(with_records + CONSUMER, broker.bootstrap, "-W", "ignore")
    assert ended == (0, "revoked\n", "")
    check = """
with kproto.sync.Client(bootstrap) as client:
    print(client.committed_offsets("g")["one", 0].offset)
    print(client.admin.describe_consumer_groups(["g"])["g"].members)
"""
    assert run_program(check, broker.bootstrap).output == "1\n()\n"


THREADS = """
import threading, time

client = kproto.sync.Client(bootstrap)
producer = client.producer()

def work():
    time.sleep(0.2)
    print(producer.send("one", b"x").offset)

threading.Thread(target=work).start()
"""


@STARTS_THREADS
def test_exit_waits_for_threads_that_still_use_the_client(broker: ThreadedBroker) -> None:
    ended = run_program(THREADS, broker.bootstrap, "-W", "ignore")
    assert ended == (0, "0\n", "")
