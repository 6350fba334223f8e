"""Tests the fixtures of the plugin: scopes, marks, and kinds of tests that use them."""

from __future__ import annotations

import os
import threading

import pytest

from tests.support.environment import SOURCE_FOLDERS

from .conftest import RunTests

PLAIN = """
import pytest

seen = set()

@pytest.mark.parametrize("number", [1, 2])
def test_broker_is_new_for_each_test(kafka_broker, number):
    kafka_broker.create_topic("orders")
    seen.add(kafka_broker.cluster_id)
    assert len(seen) == number
    assert kafka_broker.nodes == (1,)

def test_cluster_has_three_brokers(kafka_cluster, kafka_bootstrap):
    assert kafka_cluster.nodes == (1, 2, 3)
    assert kafka_bootstrap == kafka_cluster.bootstrap

def test_bootstrap_is_that_of_the_broker(kafka_bootstrap, kafka_broker):
    assert kafka_bootstrap == kafka_broker.bootstrap

@pytest.mark.parametrize("number", [1, 2])
def test_scopes_by_name(number, session_kafka_broker, module_kafka_broker, module_kafka_cluster):
    assert session_kafka_broker is not module_kafka_broker
    if number == 1:
        session_kafka_broker.create_topic("of-session")
        module_kafka_broker.create_topic("of-module")
    assert set(session_kafka_broker.topics) == {"of-session"}
    assert set(module_kafka_broker.topics) == {"of-module"}
    assert module_kafka_cluster.nodes == (1, 2, 3)

def test_bootstrap_of_a_scope(session_kafka_bootstrap, session_kafka_broker, kafka_bootstrap):
    assert session_kafka_bootstrap == session_kafka_broker.bootstrap != kafka_bootstrap

def test_all_other_fixtures(session_kafka_cluster, module_kafka_bootstrap):
    assert len(session_kafka_cluster.bootstrap.split(",")) == 3
"""

MARKS = """
import pytest
import kproto
from kproto.broker import BrokerSettings
from kproto.messages import ProduceRequest

pytestmark = pytest.mark.kafka(topics={"orders": 3}, brokers=2)

def test_module_mark_applies(kafka_broker, module_kafka_broker):
    assert kafka_broker.nodes == module_kafka_broker.nodes == (1, 2)
    assert len(kafka_broker.topics["orders"].partitions) == 3

@pytest.mark.kafka(brokers=3)
def test_closest_mark_wins(kafka_cluster):
    assert kafka_cluster.nodes == (1, 2, 3)
    assert set(kafka_cluster.topics) == {"orders"}

@pytest.mark.kafka(brokers=1, topics=["one", "two"])
def test_topics_may_be_names(kafka_broker):
    assert {name: len(it.partitions) for name, it in kafka_broker.topics.items()} == {
        "one": 1, "two": 1
    }

@pytest.mark.kafka(brokers=1, release="3.9.2", transactions=True)
async def test_release_limits_the_versions(kafka_broker):
    async with kproto.Client(kafka_broker.bootstrap) as client, client.producer() as producer:
        await producer.send("orders", b"one")
    assert [it.version for it in kafka_broker.requests(ProduceRequest)] == [11]

@pytest.mark.kafka(brokers=1, sasl=kproto.ScramSha512("ada", "secret"))
async def test_sasl_asks_for_the_password(kafka_broker):
    for password in ("secret", "wrong"):
        client = kproto.Client(kafka_broker.bootstrap, sasl=kproto.ScramSha512("ada", password))
        try:
            async with client:
                await client.refresh()
            assert password == "secret"
        except kproto.AuthenticationError:
            assert password == "wrong"

@pytest.mark.kafka(brokers=1, topics={}, settings=BrokerSettings(num_partitions=5))
def test_settings_of_the_broker(kafka_broker):
    kafka_broker.create_topic("new")
    assert len(kafka_broker.topics["new"].partitions) == 5
"""

ASYNC = """
import asyncio
import pytest
import kproto

@pytest.mark.asyncio
@pytest.mark.kafka(topics={"orders": 1})
async def test_asyncio(kafka_broker):
    async with kproto.Client(kafka_broker.bootstrap) as client:
        async with client.producer() as producer:
            await producer.send("orders", b"one")
        async with client.consumer("orders", group="billing", start="earliest") as consumer:
            async for record in consumer:
                break
            await consumer.commit({("orders", 0): 1})
            group = await asyncio.to_thread(kafka_broker.wait_for_group, "billing", lag=0)
            assert group.offsets == {("orders", 0): 1}
    assert [record.value for record in kafka_broker.records("orders")] == [b"one"]

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
@pytest.mark.kafka(topics={"orders": 1})
async def test_anyio(kafka_broker):
    async with kproto.Client(kafka_broker.bootstrap) as client, client.producer() as producer:
        await producer.send("orders", b"one")
    assert kafka_broker.end_offset("orders") == 1
"""

WRONG = """
import pytest

@pytest.mark.kafka(broker=3)
def test_unknown_option(kafka_broker): ...

@pytest.mark.kafka(3)
def test_option_without_name(kafka_broker): ...

@pytest.mark.kafka(topics="orders")
def test_topics_that_are_no_mapping(kafka_broker): ...

@pytest.mark.kafka(sasl="PLAIN")
def test_sasl_without_a_password(kafka_broker): ...

@pytest.mark.kafka(release="0.10.2", transactions=True)
def test_release_without_transactions(kafka_broker): ...

@pytest.mark.kafka(topics={"orders": 0})
def test_topic_without_partitions(kafka_broker): ...

@pytest.mark.kafka(release="3.99")
def test_unknown_release(kafka_broker): ...
"""

#: The texts of the errors of `WRONG`, in the order of the tests.
ERRORS = (
    "the mark kafka, *: there is no option 'broker': take one of brokers, release, topics*",
    "*the mark kafka of *test_option_without_name has (3,) without a name*",
    "*topics is 'orders'; give the partitions by topic*",
    "*sasl is str; give a mechanism with name and password*",
    "*transactions=True with release='0.10.2'*",
    "*topics?'orders'? is 0*",
    "*3.99*",
)

WITHOUT_EFFECT = """
import pytest

@pytest.mark.kafka(topics=["orders"])
def test_fixture_of_the_module(module_kafka_broker): ...

@pytest.mark.kafka(topics=["orders"])
class TestOrders:
    def test_fixture_of_the_session(self, session_kafka_bootstrap): ...

@pytest.mark.kafka(topics=["orders"])
def test_another_fixture_takes_the_mark(kafka_broker, module_kafka_broker):
    assert list(kafka_broker.topics) == ["orders"]
    assert not list(module_kafka_broker.topics)
"""

SESSION = """
import pytest

@pytest.fixture(scope="session")
def session_kafka_options():
    return {"brokers": 2, "topics": {"orders": 4}}

def test_options_of_the_session(session_kafka_broker):
    assert session_kafka_broker.nodes == (1, 2)
    assert len(session_kafka_broker.topics["orders"].partitions) == 4
"""


def test_fixtures_have_their_scopes_and_leave_no_thread(run_tests: RunTests) -> None:
    before = threading.active_count()
    run_tests(PLAIN).assert_outcomes(passed=8)
    assert threading.active_count() == before


def test_mark_sets_the_options_of_a_broker(run_tests: RunTests) -> None:
    run_tests(MARKS, "-o", "asyncio_mode=auto").assert_outcomes(passed=6)


@pytest.mark.slow
def test_asyncio_and_anyio_tests_use_the_broker(run_tests: RunTests) -> None:
    run_tests(ASYNC, "-o", "asyncio_mode=strict").assert_outcomes(passed=2)


def test_session_fixture_takes_its_options_from_a_fixture(run_tests: RunTests) -> None:
    run_tests(SESSION).assert_outcomes(passed=1)


def test_wrong_mark_is_an_error_that_says_what_to_do(run_tests: RunTests) -> None:
    result = run_tests(WRONG)
    result.assert_outcomes(errors=len(ERRORS))
    result.stdout.fnmatch_lines(ERRORS, consecutive=False)
    assert "Traceback" not in result.stdout.str()
    assert len(result.outlines) < 60  # no error shows the code of the plugin


def test_mark_without_effect_is_an_error(run_tests: RunTests) -> None:
    result = run_tests(WITHOUT_EFFECT)
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*::test_fixture_of_the_module has no effect on module_kafka_broker:*",
            "*::TestOrders has no effect on session_kafka_bootstrap:*",
        ],
        consecutive=False,
    )


@pytest.mark.slow
def test_each_worker_of_xdist_has_its_own_broker(
    run_tests: RunTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, SOURCE_FOLDERS)))
    result = run_tests(PLAIN, "-n", "2", "--dist", "loadfile", in_process=False)
    result.assert_outcomes(passed=8)


@pytest.mark.slow
def test_mark_is_listed_and_plugin_imports_no_broker(
    run_tests: RunTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, SOURCE_FOLDERS)))
    listed = run_tests("", "--markers", in_process=False)
    listed.stdout.fnmatch_lines("@pytest.mark.kafka(brokers=1, release=None, topics={}*")
    unused = """
    import sys

    def test_unused():
        loaded = {it for it in sys.modules if it.partition(".")[0] == "kproto"}
        assert loaded == {"kproto", "kproto.lazy_names", "kproto.pytest_plugin"}
    """
    run_tests(unused, in_process=False).assert_outcomes(passed=1)
