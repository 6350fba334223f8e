"""Provides a blocking client whose topic `one` has records for the share group `g`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import kproto.sync
from kproto.client.admin.configs import ConfigResource, ConfigResourceType
from tests.support.embedded import ThreadedBroker

__all__ = ["client_of_share_group", "start_at_earliest"]


def start_at_earliest(client: kproto.sync.Client, group: str) -> None:
    """Makes a share group start at the start of each log."""
    resource = ConfigResource(ConfigResourceType.GROUP, group)
    client.admin.incremental_alter_configs({resource: {"share.auto.offset.reset": "earliest"}})


@contextmanager
def client_of_share_group(
    broker: ThreadedBroker, *batches: Iterable[int]
) -> Iterator[kproto.sync.Client]:
    """Sends each of `batches` by one call, and yields the client."""
    with kproto.sync.Client(broker.bootstrap) as client:
        start_at_earliest(client, "g")
        with client.producer() as producer:
            for numbers in batches:
                producer.send_many("one", [b"%d" % number for number in numbers])
        yield client
