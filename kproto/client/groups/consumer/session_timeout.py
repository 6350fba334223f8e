"""Reads the session timeout of a group, which its broker discloses with DESCRIBE_CONFIGS on the
group.

A member learns its heartbeat interval from the coordinator, but not when its session ends
(KIP-848): that is a config of the group, which DescribeConfigs returns. Plain functions on plain
data.
"""

from __future__ import annotations

from typing import Final

from ....messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from ....messages.describe_configs_response import DescribeConfigsResponse
from ....protocol.error_codes import code_of

__all__ = ["KAFKAS_SESSION_MS", "is_denied", "session_by", "session_in", "session_request"]

_DENIED: Final = code_of("GROUP_AUTHORIZATION_FAILED")

#: A group, as a resource that has settings.
_GROUP: Final = 32

#: Said of a group that has none of its own, too: then it is what the broker sets for all.
_SESSION: Final = "consumer.session.timeout.ms"


#: What brokers begin with, in ms, and the least that they take unless told otherwise. It is so many
#: of the intervals that they begin with, 5 s.
KAFKAS_SESSION_MS: Final = 45_000
_INTERVALS: Final = 9


def session_by(interval_ms: int) -> int:
    """Returns the assumed session timeout in ms for a heartbeat interval, if no broker discloses
    it.
    """
    return min(_INTERVALS * interval_ms, KAFKAS_SESSION_MS)


def session_request(group_id: str) -> DescribeConfigsRequest:
    """Returns the request for the session timeout of a group."""
    asked = DescribeConfigsResource(
        resource_type=_GROUP, resource_name=group_id, configuration_keys=[_SESSION]
    )
    return DescribeConfigsRequest(resources=[asked])


def session_in(answer: DescribeConfigsResponse) -> int | None:
    """Returns the session timeout in ms; None if the broker does not disclose it."""
    values = [
        config.value
        for result in answer.results
        for config in result.configs
        if config.name == _SESSION
    ]
    text = values[0] if values else None
    return int(text) if text is not None and text.isdecimal() and int(text) else None


def is_denied(answer: DescribeConfigsResponse) -> bool:
    """True if the principal lacks the ACL."""
    return any(result.error_code == _DENIED for result in answer.results)
