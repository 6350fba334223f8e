"""Runs the tests of `kproto groups` with share groups on an embedded broker."""

from __future__ import annotations

import pytest

from tests.support.embedded import ThreadedBroker
from tests.support.group_commands import *  # noqa: F403


@pytest.fixture
def bootstrap(served: ThreadedBroker) -> str:
    """Returns the address of the broker."""
    return served.bootstrap
