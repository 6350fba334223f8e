"""Fixtures and settings of all tests; what they are made of is in tests/support."""

from __future__ import annotations

import asyncio.constants
import gc
import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.workermanage import WorkerController

from tests.support.availability import report_missing
from tests.support.selection import (
    ByServers,
    broker_files_without_group,
    claim,
    group_of,
    longest_first,
    mark_exhaustive,
    shuffle,
)
from tools.kafka.node import JVM_VARIABLE

pytest_plugins = [
    "tests.support.environment",  # first, as others import it
    "tests.support.browser",
    "tests.support.brokers",
    "tests.support.peers",
    "tests.support.steady_time",
]

# No deadline: a shared machine pauses at any time, and no test judges speed. CI draws the same
# examples every time, so that a red run is the fault of the change under test; everyone else draws
# new ones, and `make deep` many.
IN_CI = bool(os.environ.get("CI"))
settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
EVERYDAY = "ci" if IN_CI else "dev"
# `make quick` and `make test` take it; every other run draws two and a half times as many examples.
settings.register_profile("quick", settings.get_profile(EVERYDAY), max_examples=25)
settings.register_profile("deep", settings.get_profile("dev"), max_examples=5_000)
settings.load_profile(EVERYDAY)


# Brokers of tests live for seconds: what Java compiles a second time would not be paid back.
os.environ.setdefault(JVM_VARIABLE, "-XX:TieredStopAtLevel=1")

# Debugging asyncio notes where each call and each task comes from; of the ten frames that it takes
# by itself the last says enough, and the others take a third of the time of its tests.
asyncio.constants.DEBUG_STACK_DEPTH = 1  # type: ignore[misc]  # it is only called final


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that runs tests in another order."""
    parser.addoption(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="run groups of tests, their files and the tests of each file in the order of SEED",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByServers | None:
    """Keep tests that share servers in one process, unless the run asks for another way."""
    return ByServers(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell each process of a run whether it is one by groups: its own options do not say."""
    node.workerinput["by_servers"] = node.config.getvalue("dist") == "loadscope"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark and order the tests; Spark's environment comes before any fixture starts a JVM."""
    mark_exhaustive(items)
    seed: int | None = config.getoption("shuffle")
    if seed is None:
        longest_first(items)
    else:
        shuffle(items, seed)
    alone = broker_files_without_group(items)
    if alone:
        raise pytest.UsageError(f"TOGETHER in tests/support/selection.py has no row for {alone}")
    for item in items:
        if item.get_closest_marker("spark") and isinstance(item, pytest.Function):
            item.fixturenames.insert(0, "spark_environment")


def pytest_collection_finish() -> None:
    """Let the collector pass over what lives as long as the run: some two million objects."""
    pass_over_what_lives()


def pass_over_what_lives() -> None:
    """What is garbage goes; later collections look only at what is made from now on."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _garbage() -> Iterator[None]:
    """What a module leaves is collected, and told of, at its end; what it loaded is passed over.

    Else a collection takes the longer the more modules have run, and some tests make hundreds.
    """
    yield
    pass_over_what_lives()


@pytest.fixture(autouse=True, scope="module")
def _one_process(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A run by groups keeps each in one process: what schedules the tests is not ours alone."""
    told = getattr(request.config, "workerinput", {})
    if told.get("by_servers"):
        folder = tmp_path_factory.getbasetemp().parent
        claim(folder, group_of(request.node.nodeid), told["workerid"])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter,
) -> Generator[None, None, None]:
    """Writes last what could not be tested on this machine, behind all that others write."""
    with report_missing(terminalreporter):
        yield
