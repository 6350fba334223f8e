"""Provides fixtures and settings for all tests; tests/support implements the fixtures."""

from __future__ import annotations

import asyncio.constants
import gc
import linecache
import os
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.workermanage import WorkerController

from tests.support.availability import report_missing
from tests.support.examples import EVERYDAY_EXAMPLES
from tests.support.loops import LOOPS, run_tests_on
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
    "pytester",
    "tests.support.environment",  # first, because others import it
    "tests.support.browser",
    "tests.support.brokers",
    "tests.support.peers",
    "tests.support.steady_time",
]

# No deadline: a shared machine pauses at any time, and no test judges speed. CI draws the same
# examples every time, so that a failure is caused by the change under test. Every other run draws
# new examples, and `make deep` draws many.
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
# `make quick` and `make test` use this profile. Runs without a profile draw 100 examples,
# Hypothesis's default.
settings.register_profile(
    "quick", settings.get_profile(EVERYDAY), max_examples=EVERYDAY_EXAMPLES if IN_CI else 10
)
settings.register_profile("deep", settings.get_profile("dev"), max_examples=5_000)
settings.load_profile(EVERYDAY)


# Brokers of tests live for seconds: Java's second compilation would not pay off.
os.environ.setdefault(JVM_VARIABLE, "-XX:TieredStopAtLevel=1")

# In asyncio's debug mode each call and each task stores the stack that created it, by default ten
# frames. The last frame is enough; storing the others takes a third of the time of asyncio tests.
asyncio.constants.DEBUG_STACK_DEPTH = 1  # type: ignore[misc]  # only typeshed declares it final


def _assume_unchanged(filename: str | None = None) -> None:
    """Replaces `linecache.checkcache`, because no source changes during a run.

    In the debug mode each future stores its whole stack, and `checkcache` asks the file system
    about each file of the stack.
    """


linecache.checkcache = _assume_unchanged

# A shell without job control starts background processes with SIGINT ignored, and their children
# inherit that. The tests interrupt such children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options that run tests in another order, and on other event loops."""
    parser.addoption(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="run groups of tests, their files and the tests of each file in the order of SEED",
    )
    parser.addoption(
        "--loop",
        choices=LOOPS,
        default="default",
        help="run the tests in this process on other event loops than asyncio's default",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Selects the event loops that `--loop` names."""
    run_tests_on(config.getoption("loop"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByServers | None:
    """Returns a scheduler that puts tests with common servers into one process.

    Returns None if the run does not use `--dist loadscope`. In this case pytest-xdist uses a
    scheduler of its own.
    """
    return ByServers(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tells a worker process whether the run uses `--dist loadscope`.

    The worker's own options do not contain the value of `--dist`.
    """
    node.workerinput["by_servers"] = node.config.getvalue("dist") == "loadscope"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks and orders the tests, and gives Spark tests the fixture `spark_environment`.

    That fixture runs before any fixture that starts a JVM.
    """
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
    """Excludes the objects that exist after test collection from later garbage collections.

    These about two million objects live until the end of the run.
    """
    freeze_live_objects()


def freeze_live_objects() -> None:
    """Collects garbage once; later collections examine only objects that are created afterwards."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _garbage() -> Iterator[None]:
    """Collects garbage at the end of each test module, so that Python reports unclosed resources.

    After this collection, later collections skip the objects that still exist. Otherwise
    collections would take longer after each module, and some tests collect garbage hundreds of
    times.
    """
    yield
    freeze_live_objects()


@pytest.fixture(autouse=True, scope="module")
def _one_process(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Checks, with `--dist loadscope`, that all tests of a group run in the same process.

    A group is a set of tests that share servers.
    """
    worker = getattr(request.config, "workerinput", {})
    if worker.get("by_servers"):
        folder = tmp_path_factory.getbasetemp().parent
        claim(folder, group_of(request.node.nodeid), worker["workerid"])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter,
) -> Generator[None, None, None]:
    """Writes, after all other output, which features could not be tested on this machine."""
    with report_missing(terminalreporter):
        yield
