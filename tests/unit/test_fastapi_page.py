"""Runs the programs of the page about FastAPI: the service, its tests, and a program for anyio."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import pytest

import kproto
from kproto.broker import Broker
from kproto.broker.faults import Close
from kproto.messages import MetadataRequest
from tests.support.availability import imported
from tests.support.cancelling import KINDS, run_until_cancelled
from tests.support.pages import blocks, page_text, run_program

PAGE = "docs/how-to/fastapi.md"

#: The service, its tests, and a program with a task group of anyio.
SERVICE, TESTS, ANYIO = blocks(page_text(PAGE), "python")

Handler = Callable[[kproto.Record], Awaitable[None]]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Returns the page's service as a module named `service`, which the page's tests import."""
    imported("fastapi", f"the service of {PAGE}")
    service = ModuleType("service")
    monkeypatch.setitem(sys.modules, "service", service)
    vars(service).update(run_program(SERVICE, PAGE))
    return service


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        broker.create_topic("orders", 1)
        broker.create_topic("orders.dead", 1)
        yield broker


@asynccontextmanager
async def running(service: ModuleType, broker: Broker, handler: Handler) -> AsyncIterator[Any]:
    """Starts the service, and yields an HTTP client."""
    httpx = imported("httpx", f"the service of {PAGE}")
    app = service.create_app(broker.bootstrap, handler)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://service") as http,
    ):
        yield http


async def ignore(record: kproto.Record) -> None:
    pass


def test_the_tests_of_the_page_pass(service: ModuleType) -> None:
    imported("httpx", f"the service of {PAGE}")
    defined = run_program(TESTS, PAGE)
    defined["test_orders"]()


def test_the_anyio_program_runs() -> None:
    imported("anyio", f"the last program of {PAGE}")
    run_program(ANYIO, PAGE)


@pytest.mark.parametrize("kind", ["shutdown", *KINDS])
async def test_no_order_is_lost_or_billed_twice(
    kind: str, service: ModuleType, broker: Broker
) -> None:
    billed: list[bytes | None] = []
    has_started = asyncio.Event()

    async def handler(record: kproto.Record) -> None:
        has_started.set()
        await asyncio.sleep(0.01)
        billed.append(record.value)
        if len(billed) == 5:
            is_over.set()

    async def serve(may_stop: asyncio.Event) -> None:
        async with running(service, broker, handler) as http:
            for number in range(5):
                created = await http.post("/orders/ann", content=b"%d" % number)
                assert created.status_code == 201
            async with asyncio.timeout(30):
                await has_started.wait()
            ready.set()
            await may_stop.wait()

    ready, is_over = asyncio.Event(), asyncio.Event()
    if kind == "shutdown":
        may_stop = asyncio.Event()
        may_stop.set()
        await serve(may_stop)
    else:
        await run_until_cancelled(serve(asyncio.Event()), ready, kind)
    assert billed
    async with running(service, broker, handler):
        async with asyncio.timeout(30):
            await is_over.wait()
    assert sorted(billed, key=str) == [b"%d" % number for number in range(5)]
    assert broker.connections == 0


async def test_full_service_refuses_orders(service: ModuleType, broker: Broker) -> None:
    service.create_app.__globals__["MAX_BUFFERED_BYTES"] = -1
    async with running(service, broker, ignore) as http:
        refused = await http.post("/orders/ann", content=b"1")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert broker.end_offset("orders") == 0


async def test_health_checks_report_a_failed_task_and_lost_brokers(
    service: ModuleType, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.delete_topic("orders.dead")
    async with running(service, broker, ignore) as http, asyncio.timeout(30):
        while (await http.get("/live")).status_code == 200:  # noqa: ASYNC110 - the service has no event
            await asyncio.sleep(0.001)
        assert (await http.get("/ready")).status_code == 200
        control = broker.control(lambda request: Close(), request=MetadataRequest)
        refused = await http.get("/ready")
        broker.remove_control(control)
        assert refused.status_code == 503
        assert "no broker answers" in refused.json()["detail"]
    assert "billing has ended" in caplog.text


async def test_the_background_task_outlasts_the_timeouts_of_requests(
    service: ModuleType, broker: Broker
) -> None:
    billed = asyncio.Event()

    async def handler(record: kproto.Record) -> None:
        if record.value == b"refused":
            has_failed.set()
            raise ValueError("refused")
        billed.set()

    has_failed = asyncio.Event()
    variables = service.create_app.__globals__
    settings = variables["SETTINGS"]
    variables["SETTINGS"] = dataclasses.replace(
        settings,
        delivery_timeout_ms=settings.delivery_timeout_ms // 100,
        api_timeout_ms=settings.api_timeout_ms // 100,
    )
    async with running(service, broker, handler) as http, asyncio.timeout(60):
        # The short timeouts may end before a busy machine has processed a request.
        while (await http.post("/orders/ann", content=b"refused")).status_code != 201:
            pass
        await has_failed.wait()
        control = broker.control(lambda request: Close())
        while (await http.post("/orders/ann", content=b"1")).status_code == 201:
            pass
        await asyncio.sleep(1.5)  # longer than the timeouts of the service's requests
        assert (await http.get("/live")).json() == {"billing": True}
        broker.remove_control(control)
        while (await http.post("/orders/ann", content=b"2")).status_code != 201:
            pass
        await billed.wait()
