"""Describes a broker for the report of a failed test: requests, groups and topics."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from ..broker import GroupState, RunningBroker
from ..broker.request_log import LoggedRequest
from .real_cluster import RealCluster

__all__ = ["describe", "shown_requests"]

#: Lines of a report's requests, the newest last: enough for the last poll of a few clients.
_SHOWN_ROWS: Final = 20
#: Characters of a request's message.
_SHOWN_CHARACTERS: Final = 160


def describe(broker: RunningBroker | RealCluster) -> str:
    """Returns the last requests, the groups' states and the topics' end offsets.

    Returns the error instead if the broker cannot be asked: a report must not fail.
    """
    try:
        if isinstance(broker, RealCluster):
            return f"{broker.bootstrap}\n{_groups(broker.groups.values())}"
        return "\n".join(
            (shown_requests(broker.requests()), _groups(broker.groups.values()), _topics(broker))
        )
    except Exception as error:  # noqa: BLE001 - the test's own failure must stay visible
        return f"the broker cannot be described: {type(error).__name__}: {error}"


def shown_requests(requests: list[LoggedRequest[Any]]) -> str:
    """Returns a line per request, of the last requests.

    Requests in a row with the same API and client have one line, with their number and the message
    of the last: an idle consumer would fill the report with its fetches.
    """
    if not requests:
        return "no requests"
    rows = [list(row) for _, row in groupby(requests, key=lambda it: (it.name, it.client_id))]
    last = rows[-_SHOWN_ROWS:]
    lines = [f"the last {sum(map(len, last))} of {len(requests)} requests:"]
    for row in last:
        message = repr(row[-1].message)
        if len(message) > _SHOWN_CHARACTERS:
            message = f"{message[:_SHOWN_CHARACTERS]}…"
        times = f", {len(row)} times, the last:" if len(row) > 1 else ":"
        lines.append(f"  {row[-1]}{times} {message}")
    return "\n".join(lines)


def _groups(groups: Iterable[GroupState]) -> str:
    lines = [f"  {group}" for group in groups]
    return "\n".join(["groups:", *lines]) if lines else "no groups"


def _topics(broker: RunningBroker) -> str:
    lines = [
        f"  {topic.name}: {[partition.log.end_offset for partition in topic.partitions]}"
        for topic in broker.topics.values()
        if not topic.is_internal
    ]
    return (
        "\n".join(["topics with the end offset of each partition:", *lines])
        if lines
        else ("no topics")
    )
