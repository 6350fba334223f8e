"""Elects leaders of partitions: request and result as plain data. ElectLeaders (43, KIP-460)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from ...messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from ...messages.elect_leaders_response import ElectLeadersResponse
from ...protocol.error_codes import code_of
from ...wire.errors import KprotoError
from ..metadata.cluster import TopicPartition
from .calls import by_topic, error_in

__all__ = ["ElectionType", "elect_leaders_request", "elected_leaders"]

_NOT_NEEDED: Final = code_of("ELECTION_NOT_NEEDED")


class ElectionType(IntEnum):
    """The types of elections; an unclean election may elect a replica that lacks records."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders_request(
    election_type: ElectionType, tps: Iterable[TopicPartition] | None, timeout_ms: int
) -> ElectLeadersRequest:
    """Returns the request that elects leaders; None means all partitions."""
    partitions = None
    if tps is not None:
        partitions = [
            TopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(tps).items()
        ]
    return ElectLeadersRequest(
        election_type=election_type, topic_partitions=partitions, timeout_ms=timeout_ms
    )


def elected_leaders(
    response: ElectLeadersResponse,
) -> dict[TopicPartition, bool | KprotoError] | KprotoError:
    """Returns the outcome of each partition in a response, or the error of the response.

    The outcome is True if a leader was elected, and False if no election was needed.
    """
    whole = error_in(response.error_code, "electing leaders")
    if whole is not None:
        return whole
    found: dict[TopicPartition, bool | KprotoError] = {}
    for topic in response.replica_election_results:
        for each in topic.partition_result:
            tp = (topic.topic, each.partition_id)
            if each.error_code == _NOT_NEEDED:
                found[tp] = False
                continue
            error = error_in(
                each.error_code, f"electing a leader of {tp[0]}[{tp[1]}]", each.error_message
            )
            found[tp] = True if error is None else error
    return found
