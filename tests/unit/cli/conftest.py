"""Provides commands that run on an embedded broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli_runs import Run, runner
from tests.support.embedded import ThreadedBroker, threaded_broker


@pytest.fixture(scope="module")
def served() -> Iterator[ThreadedBroker]:
    """Yields a broker in a thread, which the tests of a module share."""
    with threaded_broker() as broker:
        yield broker


@pytest.fixture
def kproto(
    served: ThreadedBroker, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> Run:
    """Returns the function that runs a command."""
    return runner(served.bootstrap, capsysbinary, tmp_path)


@pytest.fixture
def topic(served: ThreadedBroker, request: pytest.FixtureRequest) -> str:
    """Returns a new topic with three partitions."""
    name = f"topic-{abs(hash(request.node.nodeid))}"
    served.call(lambda broker: broker.create_topic(name, 3))
    return name
