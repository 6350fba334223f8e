"""Gives data source clients short timeouts, and closes the clients after each test."""

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
    """Returns a function that sets the settings of all data source clients."""

    def give(settings: ClientSettings) -> None:
        monkeypatch.setattr(
            ClientOptions,
            "client",
            lambda options: Client(dict(options.properties)["bootstrap.servers"], settings),
        )

    return give
