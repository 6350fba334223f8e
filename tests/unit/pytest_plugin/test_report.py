"""Tests the section about the broker in the report of a failed test."""

from __future__ import annotations

from typing import Any

from kproto.broker import LoggedRequest
from kproto.messages import MetadataRequest
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.pytest_plugin.failure_report import shown_requests

from .conftest import RunTests

FAILING = """
import pytest
import kproto

@pytest.mark.kafka(topics={"orders": 2})
async def test_fails(kafka_broker):
    async with kproto.Client(kafka_broker.bootstrap) as client:
        async with client.producer() as producer:
            await producer.send("orders", b"one", partition=1)
        await client.commit_offsets("billing", {("orders", 1): 0})
    assert False

def test_fails_with_a_bootstrap(kafka_bootstrap):
    assert False

def test_fails_without_a_broker():
    assert False

def test_passes(kafka_broker):
    pass

def test_opens_the_broker_of_the_module(module_kafka_broker):
    pass

def test_fails_with_a_broker_of_the_module(module_kafka_bootstrap):
    assert False

def test_fails_beside_the_broker_of_the_module():
    assert False
"""


def test_failed_test_reports_requests_groups_and_topics(run_tests: RunTests) -> None:
    result = run_tests(FAILING, "-o", "asyncio_mode=auto")
    result.assert_outcomes(passed=2, failed=5)
    result.stdout.fnmatch_lines(
        [
            "*-- kafka_broker --*",
            "the last * of * requests:",
            "  ApiVersionsRequest v* from kproto: ApiVersionsRequest(*",
            "  MetadataRequest v* from kproto, 2 times, the last: MetadataRequest(*",
            "  ProduceRequest v* from kproto: *",
            "groups:",
            "  billing (classic): Empty; * orders-1: 0 committed, lag 1",
            "topics with the end offset of each partition:",
            "  orders: [[]0, 1[]]",
            "*test_fails_with_a_bootstrap*",
            "*-- kafka_broker --*",
            "no requests",
            "no groups",
            "no topics",
            "*test_fails_without_a_broker*",
        ]
    )
    output = result.stdout.str()
    assert output.count("-- kafka_broker --") == 2
    assert output.count("-- module_kafka_broker --") == 1


BROKEN = """
def test_fails(kafka_broker):
    kafka_broker.call = None
    assert 1 == 2
"""


def test_report_survives_a_broker_that_cannot_be_asked(run_tests: RunTests) -> None:
    result = run_tests(BROKEN)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*", "the broker cannot be described: TypeError: *"])


def logged(name: str, version: int, client_id: str | None = None) -> LoggedRequest[Any]:
    return LoggedRequest(name, version, client_id, MetadataRequest(), 10)


def test_last_requests_are_shown_and_long_messages_are_cut() -> None:
    names = ("MetadataRequest", "FetchRequest")
    requests = [logged(names[number % 2], number) for number in range(30)]
    first, *lines = shown_requests(requests).splitlines()
    assert first == "the last 20 of 30 requests:"
    assert [line.split()[1] for line in lines] == [f"v{number}" for number in range(10, 30)]
    topics = [MetadataRequestTopic(name="orders")] * 10
    long = LoggedRequest("MetadataRequest", 1, "c", MetadataRequest(topics=topics), 10)
    (line,) = shown_requests([long]).splitlines()[1:]
    assert line.endswith("…")
    assert len(line) < 250


def test_requests_in_a_row_of_one_client_have_one_line() -> None:
    requests = [
        logged("FetchRequest", 17, "billing"),
        *[logged("FetchRequest", 18, "billing")] * 40,
        logged("FetchRequest", 18, "shipping"),
        logged("HeartbeatRequest", 4, "shipping"),
    ]
    first, *lines = shown_requests(requests).splitlines()
    assert first == "the last 43 of 43 requests:"
    assert [line.partition(": ")[0].strip() for line in lines] == [
        "FetchRequest v18 from billing, 41 times, the last",
        "FetchRequest v18 from shipping",
        "HeartbeatRequest v4 from shipping",
    ]
