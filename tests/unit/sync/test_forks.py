"""Tests the blocking client in forked processes: before and after its use, and under load."""

from __future__ import annotations

import os

import pytest

from tests.support.embedded import ThreadedBroker
from tests.unit.sync.programs import WARNINGS, run_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork"),
]

BEFORE = """
import os, threading

client = kproto.sync.Client(bootstrap)
producer = client.producer()
consumer = client.consumer("one", group="g")
assert threading.active_count() == 1, "nothing has started yet"
child = os.fork()
if child == 0:
    with client:
        ack = producer.send("one", b"child")
        with consumer:
            assert next(iter(consumer)).value == b"child"
    assert threading.active_count() == 1
    os._exit(ack.offset)
_, status = os.waitpid(child, 0)
with client:
    print(os.waitstatus_to_exitcode(status), producer.send("one", b"parent").offset)
"""


def test_client_created_before_a_fork_works_in_both_processes(broker: ThreadedBroker) -> None:
    ended = run_program(BEFORE, broker.bootstrap, *WARNINGS, "-W", "ignore::DeprecationWarning")
    assert ended == (0, "0 1\n", "")


SHARE = """
import os

client = kproto.sync.Client(bootstrap)
unused = client.share_consumer("one", group="h")
used = client.share_consumer("one", group="g")
with client.producer() as producer:
    producer.send_many("one", [b"x"] * 10)
assert used.poll(0) == {}
child = os.fork()
if child == 0:
    try:
        used.poll(0)
    except kproto.ConfigurationError as error:
        assert "before the process was forked" in str(error)
        assert unused.poll(0) == {}
        client.close()
        os._exit(3)
    os._exit(4)
_, status = os.waitpid(child, 0)
assert used.poll(0) == {}
client.close()
print(os.waitstatus_to_exitcode(status))
"""


def test_share_consumer_that_was_used_before_a_fork_belongs_to_the_parent(
    broker: ThreadedBroker,
) -> None:
    ended = run_program(SHARE, broker.bootstrap, *WARNINGS, "-W", "ignore::DeprecationWarning")
    assert ended == (0, "3\n", "")


AFTER = """
import os, threading, time

client = kproto.sync.Client(bootstrap)
producer = client.producer(linger_ms=5)
transactional = client.producer(transactional_id="tx")
transactional.__enter__()
producer.send_many("one", [b"first"] * 1000)
consumer = client.consumer("one")
iteration = iter(consumer)
assert next(iteration).offset == 0
group = client.consumer("one", group="g").__enter__()
assert next(iter(group)).offset == 0
ended = threading.Event()

def load():
    while not ended.is_set():
        producer.enqueue("t", b"load")
        client.topic("t")

threads = [threading.Thread(target=load) for _ in range(4)]
for thread in threads:
    thread.start()
children = []
for number in range(5):
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert producer.send("one", b"child").offset >= 1000
            assert client.topic("one").name == "one"
            for call in (
                lambda: next(iteration),
                lambda: group.poll(0),
                group.commit,
                lambda: transactional.send("one", b"x"),
            ):
                try:
                    call()
                except kproto.ConfigurationError as error:
                    assert "belongs to the parent process" in str(error), error
                else:
                    raise AssertionError("a child used an object of its parent")
            consumer.close()
            group.__exit__(None, None, None)
            with client.consumer("one", stop_at_end=True) as own:
                assert len([*own]) > 1000
            client.close()
            code = 0
        finally:
            os._exit(code)
    children.append(child)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
ended.set()
for thread in threads:
    thread.join()
print(next(iteration).offset)
group.commit()
transactional.__exit__(None, None, None)
client.close()
print(threading.active_count())
"""


def test_child_forked_under_load_uses_connections_of_its_own(broker: ThreadedBroker) -> None:
    ended = run_program(AFTER, broker.bootstrap, "-W", "ignore::DeprecationWarning")
    assert ended == (0, "[0, 0, 0, 0, 0]\n1\n1\n", "")


MULTIPROCESSING = """
import multiprocessing, sys

client = kproto.sync.Client(bootstrap)
producer = client.producer(linger_ms=200)

def work(number):
    producer.enqueue("one", b"%d" % number)  # the end of the process sends it

if __name__ == "__main__":
    client.refresh()
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work, args=(n,)) for n in range(3)]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
    print([each.exitcode for each in processes])
    client.close()
"""


def test_processes_of_multiprocessing_send_their_records_at_their_end(
    broker: ThreadedBroker,
) -> None:
    ended = run_program(MULTIPROCESSING, broker.bootstrap, "-W", "ignore")
    assert ended == (0, "[0, 0, 0]\n", "")
    values = {record.value for record in broker.call(lambda it: it.records("one"))}
    assert values == {b"0", b"1", b"2"}
