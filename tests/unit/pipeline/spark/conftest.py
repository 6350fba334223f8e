"""Closes the clients of the data source after each test, and lets a test change client settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kproto_pipeline.spark.client_pool import close_clients
from kproto_pipeline.spark.options.client_options import ClientOptions

from kproto.client import Client, ClientSettings

SettingsForAll = Callable[[ClientSettings], None]


@pytest.fixture(autouse=True)
def _clients_closed() -> Iterator[None]:
    yield
    close_clients()


@pytest.fixture
def settings_for_all(monkeypatch: pytest.MonkeyPatch) -> SettingsForAll:
    """Returns a function that makes all data source clients use the given settings."""

    def give(settings: ClientSettings) -> None:
        monkeypatch.setattr(
            ClientOptions,
            "client",
            lambda options: Client(dict(options.properties)["bootstrap.servers"], settings),
        )

    return give
