"""A pytest plugin: fixtures with a Kafka broker for each test, and reports of failed tests.

pytest loads the plugin by its entry point; nothing else imports it. Loading takes about a
millisecond, because the broker is imported by the first test that uses a fixture.

    def test_order_is_billed(kafka_broker):
        kafka_broker.create_topic("orders")
        bill_orders(kafka_broker.bootstrap)
        assert [record.value for record in kafka_broker.records("bills")] == [b"..."]

The mark `kafka` sets options: `@pytest.mark.kafka(brokers=3, topics={"orders": 3})`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

if TYPE_CHECKING:
    from ..broker import RunningBroker
    from .broker_source import BrokerSource
    from .real_cluster import RealCluster

__all__ = [
    "kafka_bootstrap",
    "kafka_broker",
    "kafka_cluster",
    "module_kafka_bootstrap",
    "module_kafka_broker",
    "module_kafka_cluster",
    "session_kafka_bootstrap",
    "session_kafka_broker",
    "session_kafka_cluster",
    "session_kafka_options",
]

#: The mark that sets the options of a test, and the prefix of the fixtures.
_MARK: Final = "kafka"
_HELP: Final = (
    "kafka(brokers=1, release=None, topics={}, sasl=None, transactions=False, settings=None): "
    "options of the broker in the fixtures kafka_broker and kafka_cluster of kproto"
)
#: The number of brokers of `kafka_cluster`, the usual replication factor of Kafka.
_CLUSTER_BROKERS: Final = 3

#: The scopes of the fixtures with a broker.
_SCOPED_FIXTURES: Final = {
    f"{prefix}kafka_{kind}": scope
    for prefix, scope in (("", "function"), ("module_", "module"), ("session_", "session"))
    for kind in ("bootstrap", "broker", "cluster")
}

#: The brokers in use, by the name of their fixture.
_OPEN: Final = pytest.StashKey[dict[str, "RunningBroker | RealCluster"]]()


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark `kafka`."""
    _load_compiled(config)
    config.addinivalue_line("markers", _HELP)
    config.stash[_OPEN] = {}


def _load_compiled(config: pytest.Config) -> None:
    """Makes Python import the modules of kproto from their compiled files.

    pytest rewrites the assertions of all modules of a distribution that has a plugin. The first
    fixture imports hundreds of modules, which took seconds in each run that cannot store them.
    pytest has no public function for this; without the attribute, the import is only slower.
    """
    names = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", None)
    if isinstance(names, set):
        names.discard(__name__.partition(".")[0])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fails a test whose own mark `kafka` applies to none of its fixtures."""
    names = {name for name in getattr(item, "fixturenames", ()) if name in _SCOPED_FIXTURES}
    if not names or "function" in {_SCOPED_FIXTURES[name] for name in names}:
        return
    for node, _ in item.iter_markers_with_node(_MARK):
        if not isinstance(node, pytest.Module | pytest.Package | pytest.Session):
            its = ", ".join(sorted(names))
            pytest.fail(
                f"the mark kafka of {node.nodeid} has no effect on {its}: mark the module "
                "(pytestmark) for a fixture of the module, override session_kafka_options for a "
                "fixture of the session, or use kafka_broker",
                pytrace=False,
            )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds a section to the report of a failed test: the last requests, groups and topics."""
    report = yield
    if report.failed:
        for name, broker in item.config.stash[_OPEN].items():
            if _uses(item, name):
                from .failure_report import describe

                report.sections.append((name, describe(broker)))
    return report


def _uses(item: pytest.Item, name: str) -> bool:
    """Returns True if a test uses the fixture `name`, which is open."""
    scope, prefix, _ = name.rpartition("kafka_")
    if not scope:
        return True  # it was opened for this test
    used = getattr(item, "fixturenames", ())
    return name in used or f"{scope}{prefix}bootstrap" in used


@pytest.fixture(scope="session")
def _kafka_source() -> Iterator[BrokerSource]:
    """Yields the source of brokers: embedded, external or Docker, by `KPROTO_BOOTSTRAP`."""
    from .broker_source import BrokerSource

    with BrokerSource() as source:
        yield source


@pytest.fixture(scope="session")
def session_kafka_options() -> dict[str, Any]:
    """Returns the options of brokers with the scope `session`, as a mark cannot set them.

    Override this fixture in a conftest.py: the keys are those of the mark `kafka`.
    """
    return {}


def _open_broker(
    request: pytest.FixtureRequest, source: BrokerSource, options: dict[str, Any], name: str
) -> Iterator[RunningBroker | RealCluster]:
    open_brokers = request.config.stash[_OPEN]
    with source.open(options) as broker:
        open_brokers[name] = broker
        try:
            yield broker
        finally:
            del open_brokers[name]


_Scope = Literal["function", "module", "session"]


def _broker_fixture(name: str, scope: _Scope, brokers: int) -> Callable[..., Any]:
    """Returns a fixture that yields a broker, with `brokers` brokers if no mark sets them."""

    def from_mark(
        request: pytest.FixtureRequest, _kafka_source: BrokerSource
    ) -> Iterator[RunningBroker | RealCluster]:
        options: dict[str, Any] = {"brokers": brokers}
        for mark in reversed(list(request.node.iter_markers(_MARK))):  # the closest mark wins
            _check_mark(mark, request.node.nodeid)
            options |= mark.kwargs
        yield from _open_broker(request, _kafka_source, options, name)

    def from_fixture(
        request: pytest.FixtureRequest,
        _kafka_source: BrokerSource,
        session_kafka_options: dict[str, Any],
    ) -> Iterator[RunningBroker | RealCluster]:
        options = {"brokers": brokers} | session_kafka_options
        yield from _open_broker(request, _kafka_source, options, name)

    function = from_fixture if scope == "session" else from_mark
    function.__doc__ = f"Yields a Kafka broker that is new for each {scope}."
    return pytest.fixture(scope=scope, name=name)(function)


def _check_mark(mark: pytest.Mark, node: str) -> None:
    if mark.args:
        pytest.fail(
            f"the mark kafka of {node} has {mark.args!r:.80} without a name: name each option, "
            "such as kafka(brokers=3)",
            pytrace=False,
        )


def _bootstrap_fixture(prefix: str, scope: _Scope) -> Callable[..., Any]:
    """Returns a fixture with the address of the cluster of the same scope, or else the broker."""
    cluster, broker = f"{prefix}kafka_cluster", f"{prefix}kafka_broker"

    def bootstrap(request: pytest.FixtureRequest) -> str:
        used = request.fixturenames
        found: RunningBroker | RealCluster = request.getfixturevalue(
            cluster if cluster in used else broker
        )
        return found.bootstrap

    bootstrap.__doc__ = f"Returns the `host:port` of the broker that is new for each {scope}."
    return pytest.fixture(scope=scope, name=f"{prefix}kafka_bootstrap")(bootstrap)


kafka_broker = _broker_fixture("kafka_broker", "function", 1)
kafka_cluster = _broker_fixture("kafka_cluster", "function", _CLUSTER_BROKERS)
kafka_bootstrap = _bootstrap_fixture("", "function")
module_kafka_broker = _broker_fixture("module_kafka_broker", "module", 1)
module_kafka_cluster = _broker_fixture("module_kafka_cluster", "module", _CLUSTER_BROKERS)
module_kafka_bootstrap = _bootstrap_fixture("module_", "module")
session_kafka_broker = _broker_fixture("session_kafka_broker", "session", 1)
session_kafka_cluster = _broker_fixture("session_kafka_cluster", "session", _CLUSTER_BROKERS)
session_kafka_bootstrap = _bootstrap_fixture("session_", "session")
