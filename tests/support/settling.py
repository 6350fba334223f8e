"""Waiting until a real broker has heard of what its controller has decided."""

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
    """Wait until the broker has done all that was decided before, by one more thing to hear of.

    A broker does one change after the other, and tells of one before it has done it: that the next
    is told of shows that it is done with those before. `connection` is that of a super user.
    """
    nobody = f"nobody-{uuid.uuid4().hex}"
    wanted = ComponentData(entity_type="client-id", match_type=_EXACT, match=nobody)
    _alter(connection, nobody, remove=False)
    deadline = time.monotonic() + PATIENCE_S
    while not connection.exchange(DescribeClientQuotasRequest(components=[wanted]), 1).entries:
        assert time.monotonic() < deadline, "the broker hears nothing of its controller"
        time.sleep(0.002)
    _alter(connection, nobody, remove=True)


def _alter(connection: RawConnection, client_id: str, *, remove: bool) -> None:
    change = EntryData(
        entity=[EntityData(entity_type="client-id", entity_name=client_id)],
        ops=[OpData(key="producer_byte_rate", value=1e9, remove=remove)],
    )
    answer = connection.exchange(AlterClientQuotasRequest(entries=[change]), 1)
    assert [it.error_code for it in answer.entries] == [0]
