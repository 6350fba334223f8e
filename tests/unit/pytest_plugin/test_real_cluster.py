"""Tests the plugin on the cluster of `KPROTO_BOOTSTRAP`; an embedded broker plays the real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kproto.sync
from kproto.broker import BrokerSettings, ErrorCode, RunningBroker, running
from kproto.messages import ConsumerGroupDescribeRequest
from kproto.pytest_plugin.options import BrokerOptions
from kproto.pytest_plugin.real_cluster import RealCluster, real_cluster

from .conftest import RunTests

#: Tests that run on the embedded broker and on a real cluster.
SUITE = """
import asyncio
import kproto
import pytest

@pytest.mark.kafka(topics={"orders": 2}, transactions=True)
def test_helpers(kafka_broker, kafka_bootstrap):
    assert kafka_bootstrap == kafka_broker.bootstrap
    kafka_broker.create_topic("bills")
    assert kafka_broker.produce("orders", b"one", key=b"k", headers=[("h", b"v")]) == 0
    assert kafka_broker.produce("orders", b"two", partition=1, timestamp=5) == 0
    assert kafka_broker.end_offset("orders", 1) == 1
    one, two = kafka_broker.records("orders")
    assert (one.key, one.headers, two.value, two.timestamp) == (b"k", [("h", b"v")], b"two", 5)
    assert kafka_broker.records("orders", 1) == [two]
    assert '"value": "one"' in kafka_broker.snapshot("orders")
    kafka_broker.delete_topic("bills")

@pytest.mark.kafka(topics={"orders": 1})
def test_groups(kafka_broker):
    async def commit():
        async with kproto.Client(kafka_broker.bootstrap) as client:
            async with client.consumer("orders", group="billing", start="earliest") as consumer:
                await anext(aiter(consumer))
                group = await asyncio.to_thread(
                    kafka_broker.wait_for_group, "billing", members=1
                )
                assert [it.assignment for it in group.members] == [(("orders", 0),)]
                await consumer.commit({("orders", 0): 1})

    kafka_broker.produce("orders", b"one")
    kafka_broker.produce("orders", b"two")
    asyncio.run(commit())
    group = kafka_broker.wait_for_group("billing", lag=1)
    assert (group.lag, group.offsets) == (1, {("orders", 0): 1})
    assert "billing" in kafka_broker.groups
    with pytest.raises(TimeoutError, match="lag 1"):
        kafka_broker.wait_for_group("billing", lag=0, timeout_s=0)
    with pytest.raises(TimeoutError, match="there is no such group"):
        kafka_broker.wait_for_group("shipping", timeout_s=0)
"""

SKIPPED = """
import kproto
import pytest
from kproto.broker import BrokerSettings, Slow

def test_faults(kafka_broker):
    kafka_broker.control(Slow(1))

def test_clock(kafka_broker):
    kafka_broker.freeze()

def test_requests(kafka_broker):
    kafka_broker.requests()

@pytest.mark.kafka(sasl=kproto.ScramSha256("ada", "secret"))
def test_sasl(kafka_broker): ...

@pytest.mark.kafka(settings=BrokerSettings())
def test_settings(kafka_broker): ...

def test_cluster(kafka_cluster): ...

@pytest.mark.kafka(transactions=True)
def test_transactions(kafka_broker): ...
"""

REASONS = (
    "*control needs the embedded broker, and KPROTO_BOOTSTRAP names a real one*",
    "*freeze needs the embedded broker*",
    "*requests needs the embedded broker*",
    "*the option sasl of the mark kafka needs the embedded broker*",
    "*the option settings of the mark kafka needs the embedded broker*",
    "*the cluster has 1 brokers, and the test needs 3*",
    "*the cluster has no transactions, which the test needs*",
)

FAILING = """
def test_fails(kafka_broker):
    kafka_broker.nothing
"""

TAKEN = """
import pytest

@pytest.mark.kafka(topics={"orders": 1})
def test_topic_exists(kafka_broker): ...

def test_topic_of_another(kafka_broker):
    kafka_broker.delete_topic("orders")
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["embedded", "external"])
def test_suite_passes_on_both_kinds_of_broker(
    run_tests: RunTests, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    with running() as external:
        if where == "external":
            monkeypatch.setenv("KPROTO_BOOTSTRAP", external.bootstrap)
        run_tests(SUITE).assert_outcomes(passed=2)
        assert {topic.name for topic in external.topics.values() if not topic.is_internal} == set()
        assert bool(external.requests()) is (where == "external")
        assert external.groups == {}


GROUPS = """
import kproto.sync
import pytest

@pytest.mark.kafka(topics={"orders": 1})
def test_groups(kafka_broker):
    with kproto.sync.Client(kafka_broker.bootstrap) as client:
        for group, topic in (("own", "orders"), ("of another topic", "other")):
            with client.consumer([(topic, 0)], group=group) as consumer:
                consumer.commit({(topic, 0): 0})
"""


def test_groups_that_commit_other_topics_are_not_deleted(
    run_tests: RunTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as external:
        external.create_topic("other")
        monkeypatch.setenv("KPROTO_BOOTSTRAP", external.bootstrap)
        run_tests(GROUPS).assert_outcomes(passed=1)
        assert [*external.groups] == ["of another topic"]


def test_group_that_is_created_during_its_description_is_described() -> None:
    with running() as broker, kproto.sync.Client(broker.bootstrap) as client:
        broker.create_topic("orders")
        with client.consumer("orders", group="g", group_protocol="consumer") as consumer:
            consumer.poll(0)
            broker.wait_for_group("g", members=1)
            broker.control(
                ErrorCode("GROUP_ID_NOT_FOUND", times=1), request=ConsumerGroupDescribeRequest
            )
            described = client.admin.describe_consumer_groups(["g"])
            assert [each.type for each in described.values()] == ["Consumer"]


def test_records_of_an_aborted_transaction_are_left_out() -> None:
    with running() as broker, kproto.sync.Client(broker.bootstrap) as client:
        broker.create_topic("orders")
        with client.producer(transactional_id="t") as producer:
            with producer.transaction() as transaction:
                producer.send("orders", b"aborted")
                transaction.abort()
            with producer.transaction():
                producer.send("orders", b"committed")
        cluster: Any
        with real_cluster(broker.bootstrap, BrokerOptions()) as cluster:
            for each in (broker, cluster):
                assert [it.value for it in each.records("orders")] == [b"committed"]
                assert len(each.records("orders", read_committed=False)) == 2
                assert "aborted" not in each.snapshot("orders")
                assert "aborted" in each.snapshot("orders", read_committed=False)


@pytest.mark.slow
def test_helpers_of_the_embedded_broker_skip_with_a_reason(
    run_tests: RunTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(BrokerSettings(release="0.10.2")) as external:
        monkeypatch.setenv("KPROTO_BOOTSTRAP", external.bootstrap)
        result = run_tests(SKIPPED, "-rs")
    result.assert_outcomes(skipped=len(REASONS))
    for reason in REASONS:
        result.stdout.fnmatch_lines([reason])


def test_failed_test_reports_the_groups_of_the_cluster(
    run_tests: RunTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as external:
        monkeypatch.setenv("KPROTO_BOOTSTRAP", external.bootstrap)
        result = run_tests(FAILING)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                "*AttributeError: a real cluster has no attribute 'nothing'*",
                "*-- kafka_broker --*",
                external.bootstrap,
                "no groups",
            ]
        )


@pytest.mark.slow
def test_topics_of_others_are_not_deleted(
    run_tests: RunTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as external:
        external.create_topic("orders")
        monkeypatch.setenv("KPROTO_BOOTSTRAP", external.bootstrap)
        result = run_tests(TAKEN)
        result.assert_outcomes(errors=1, failed=1)
        result.stdout.fnmatch_lines(["*TOPIC_ALREADY_EXISTS*", "*was not created by this test*"])
        assert "orders" in external.topics


@pytest.mark.slow
def test_client_of_the_helpers_reads_kproto_properties(
    run_tests: RunTests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("client.id=from-properties\n")
    with running() as external:
        monkeypatch.setenv("KPROTO_BOOTSTRAP", external.bootstrap)
        monkeypatch.setenv("KPROTO_PROPERTIES", str(properties))
        run_tests("def test_it(kafka_broker): ...").assert_outcomes(passed=1)
        assert {it.client_id for it in external.requests()} == {"from-properties"}


def test_real_cluster_has_no_other_public_names_than_the_embedded_broker() -> None:
    public = {name for name in vars(RealCluster) if not name.startswith("_")}
    assert public - {"prepare", "delete_created_groups", "delete_created_topics"} <= set(
        dir(RunningBroker)
    )


@pytest.mark.slow
def test_modules_of_kproto_are_imported_from_their_compiled_files(run_tests: RunTests) -> None:
    text = """
import importlib.util

def test_it(kafka_broker):
    loader = importlib.util.find_spec("kproto.broker").loader
    assert type(loader).__name__ == "SourceFileLoader"
"""
    run_tests(text, in_process=False).assert_outcomes(passed=1)
