"""Waits until a real broker has applied the decisions of its controller."""

from __future__ import annotations

import time
import uuid

from kproto.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kproto.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)

from .raw_connection import RawConnection

__all__ = ["settle"]

PATIENCE_S = 20.0
_EXACT = 0


def settle(connection: RawConnection) -> None:
    """Makes one more change, and waits until the broker has applied this and all earlier ones.

    A broker applies changes in order but may describe a change before it has applied it. Once a
    broker describes a later change, it has applied all earlier changes. `connection` needs the
    rights of a super user.
    """
    client_id = f"client_id-{uuid.uuid4().hex}"
    wanted = ComponentData(entity_type="client-id", match_type=_EXACT, match=client_id)
    _alter(connection, client_id, remove=False)
    deadline = time.monotonic() + PATIENCE_S
    while not connection.exchange(DescribeClientQuotasRequest(components=[wanted]), 1).entries:
        assert time.monotonic() < deadline, "the broker receives no changes from its controller"
        time.sleep(0.002)
    _alter(connection, client_id, remove=True)


def _alter(connection: RawConnection, client_id: str, *, remove: bool) -> None:
    change = EntryData(
        entity=[EntityData(entity_type="client-id", entity_name=client_id)],
        ops=[OpData(key="producer_byte_rate", value=1e9, remove=remove)],
    )
    answer = connection.exchange(AlterClientQuotasRequest(entries=[change]), 1)
    assert [it.error_code for it in answer.entries] == [0]
