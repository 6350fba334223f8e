"""Reads the responses to JoinGroup and SyncGroup, and checks their protocols (KIP-559)."""

from __future__ import annotations

from collections.abc import Iterable

from ....messages.join_group_response import JoinGroupResponse
from ....messages.sync_group_response import SyncGroupResponse
from ....protocol.consumer_protocol import PROTOCOL_TYPE
from ...metadata.cluster import TopicPartition
from ..assignor import Assignor
from ..protocol_data import read_assignment

__all__ = ["assigned_in", "chosen_assignor"]


def chosen_assignor(response: JoinGroupResponse, assignors: Iterable[Assignor]) -> Assignor | None:
    """Returns the assignor of the generation.

    Returns None if the response has another protocol type, or an assignor that the member lacks.
    """
    if response.protocol_type not in (None, PROTOCOL_TYPE):
        return None
    names = {each.name: each for each in assignors}
    return names.get(response.protocol_name or "")


def assigned_in(response: SyncGroupResponse, protocol: str) -> list[TopicPartition] | None:
    """Returns the assigned partitions; None if the response has another protocol type or name.

    `protocol` is the name of the assignor of the generation. Raises DecodeError for a malformed
    assignment.
    """
    if response.protocol_type not in (None, PROTOCOL_TYPE):
        return None
    if response.protocol_name not in (None, protocol):
        return None
    return read_assignment(response.assignment)
