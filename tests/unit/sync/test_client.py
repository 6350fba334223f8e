"""Tests the calls of a blocking client: results, errors, threads, and the end of its thread."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import pytest

import kproto
import kproto.sync
from kproto.messages import MetadataRequest
from tests.support.embedded import ThreadedBroker
from tests.unit.sync.conftest import client_threads


def test_calls_return_results_and_raise_the_errors_of_the_asyncio_client(
    broker: ThreadedBroker,
) -> None:
    with kproto.sync.Client(broker.bootstrap) as client:
        assert client.topic("t").name == "t"
        assert client.request(MetadataRequest()).brokers
        assert client.cluster.brokers
        assert client.settings.client_id
        assert client.message_format == 2
        with pytest.raises(kproto.BrokerResponseError):
            client.delete_topics("none")
        assert client.admin.describe_cluster(timeout_ms=10_000).cluster_id
        with pytest.raises(kproto.AdminError):
            client.admin.delete_topics(["none"])
        assert {*client.admin.list_topics()} == {"t", "one"}


def test_a_connection_sends_requests(broker: ThreadedBroker) -> None:
    with kproto.sync.Client(broker.bootstrap) as client:
        connection = client.connection()
        assert connection.request(MetadataRequest()).brokers
        assert connection.usable
        assert connection.address.port


def test_the_close_of_the_last_client_ends_the_thread(broker: ThreadedBroker) -> None:
    first, second = (kproto.sync.Client(broker.bootstrap) for _ in range(2))
    assert client_threads() == []
    first.refresh()
    second.refresh()
    assert client_threads() == ["kproto.sync"]
    first.close()
    assert client_threads() == ["kproto.sync"]
    assert second.topic("t")
    second.close()
    assert client_threads() == []


def test_closed_client_refuses_calls_and_keeps_its_metrics(broker: ThreadedBroker) -> None:
    client = kproto.sync.Client(broker.bootstrap)
    producer = client.producer()
    delivery = producer.enqueue("t", b"x")
    client.close()
    client.close()
    assert delivery.result().offset == 0
    assert client.metrics()["requests"]
    producer.close()
    for call in (client.refresh, client.producer, lambda: producer.send("t", b"y")):
        with pytest.raises(kproto.ConfigurationError, match="client is closed"):
            call()


def test_client_that_was_not_used_closes_without_a_thread() -> None:
    client = kproto.sync.Client("localhost:1")
    producer = client.producer()
    assert producer.transactional_id is None
    client.close()
    assert client_threads() == []
    with pytest.raises(kproto.ConfigurationError, match="client is closed"):
        client.consumer("t")


def test_failed_start_ends_the_thread() -> None:
    settings = kproto.ClientSettings(api_timeout_ms=200)
    with pytest.raises(kproto.KprotoError), kproto.sync.Client("localhost:1", settings):
        pass
    assert client_threads() == []


def test_wrong_settings_are_refused_at_once() -> None:
    with pytest.raises(kproto.ConfigurationError):
        kproto.sync.Client("")
    client = kproto.sync.Client.from_properties({"bootstrap.servers": "localhost:1"})
    with pytest.raises(kproto.ConfigurationError, match="linger"):
        client.producer(linger_ms=-1)


def test_hundred_threads_use_one_client(broker: ThreadedBroker) -> None:
    with kproto.sync.Client(broker.bootstrap) as client, client.producer() as producer:

        def work(number: int) -> set[int]:
            acks = [producer.send("one", b"%d" % number) for _ in range(5)]
            assert client.topic("t").name == "t"
            return {ack.offset for ack in acks}

        with ThreadPoolExecutor(100) as threads:
            offsets = [*threads.map(work, range(100))]
    assert sorted(each for its in offsets for each in its) == [*range(500)]
    assert len(broker.call(lambda it: it.records("one"))) == 500


@pytest.mark.parametrize("others", [0, 1])
def test_calls_during_a_close_end(broker: ThreadedBroker, others: int) -> None:
    """No call waits for an event loop that has ended, also if another client keeps it running."""
    open_clients = [kproto.sync.Client(broker.bootstrap) for _ in range(others)]
    for each in open_clients:
        each.refresh()
    for _ in range(10):
        client = kproto.sync.Client(broker.bootstrap)
        producer = client.producer()
        errors: list[BaseException] = []
        started = threading.Barrier(9)

        def work(
            client: kproto.sync.Client = client,
            producer: kproto.sync.Producer = producer,
            started: threading.Barrier = started,
            errors: list[BaseException] = errors,
        ) -> None:
            client.topic("t")
            started.wait()
            try:
                while True:
                    producer.send("t", b"x")
                    client.refresh(["t"])
                    assert client.metrics()["requests"]
            except kproto.KprotoError as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        started.wait()
        client.close()
        for thread in threads:
            thread.join(20)
        assert len(errors) == 8
        assert client_threads() == ["kproto.sync"] * others
    for each in open_clients:
        each.close()


def test_client_works_in_a_thread_with_a_running_event_loop(broker: ThreadedBroker) -> None:
    async def cell() -> int:
        with kproto.sync.Client(broker.bootstrap) as client:
            producer = client.producer()
            consumer = client.consumer("one", stop_at_end=True)
            producer.send("one", b"x")
            return len([*consumer])

    assert asyncio.run(cell()) == 1


def test_dropped_client_warns_and_is_closed_in_the_background(broker: ThreadedBroker) -> None:
    client = kproto.sync.Client(broker.bootstrap)
    client.producer(linger_ms=60_000).enqueue("one", b"kept")
    with pytest.warns(ResourceWarning, match="a client was not closed"):  # noqa: PT031
        del client
        gc.collect()
    broker.until(lambda it: len(it.records("one")) == 1)


def test_hook_that_blocks_is_refused(broker: ThreadedBroker) -> None:
    refused: list[BaseException] = []

    class Blocking(kproto.Hooks):
        def on_request(self, event: kproto.RequestEvent) -> None:
            try:
                client.topic("t")
            except kproto.ConfigurationError as error:
                refused.append(error)

    settings = kproto.ClientSettings(hooks=Blocking())
    with kproto.sync.Client(broker.bootstrap, settings) as client:
        client.refresh()
    assert "would wait for itself" in str(refused[0])


@pytest.mark.parametrize(
    ("library", "module", "function"),
    [
        ("gevent", "gevent.monkey", "is_module_patched"),
        ("eventlet", "eventlet.patcher", "is_monkey_patched"),
    ],
)
def test_patched_threads_are_refused(
    library: str, module: str, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patched = ModuleType(module)
    setattr(patched, function, lambda name: True)
    monkeypatch.setitem(sys.modules, module, patched)
    client = kproto.sync.Client("localhost:1")
    with pytest.raises(kproto.ConfigurationError, match=f"{library} has replaced"):
        client.refresh()
    setattr(patched, function, lambda name: False)
    with pytest.raises(kproto.KprotoError), kproto.sync.Client("localhost:1") as other:
        other.refresh()


def test_retrying_calls_a_plain_function_in_a_thread(broker: ThreadedBroker) -> None:
    attempts: list[str] = []

    def operation() -> str:
        attempts.append(threading.current_thread().name)
        if len(attempts) < 3:
            raise kproto.RequestTimeoutError("again")
        return client.topic("t").name

    wrong: Any = asyncio.sleep
    with kproto.sync.Client(broker.bootstrap) as client:
        assert client.retrying(operation) == "t"
        with pytest.raises(kproto.ConfigurationError, match="operation is an async function"):
            client.retrying(wrong)
    assert len(attempts) == 3
    assert all(name.startswith("kproto.sync worker") for name in attempts)


def test_calls_see_the_context_of_the_calling_thread(broker: ThreadedBroker) -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="none")
    with kproto.sync.Client(broker.bootstrap) as client:
        tenant.set("acme")
        assert client.retrying(tenant.get) == "acme"
