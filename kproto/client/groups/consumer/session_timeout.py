"""How long the session of a consumer group is, as its broker tells who may describe its settings.

A member hears how often it is to send heartbeats, and not when it counts as gone (KIP-848): that is
a setting of the group, which DescribeConfigs tells with DESCRIBE_CONFIGS on the group. Plain
functions on plain data.
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
    """The session in ms where nobody tells it: what a member goes by, who knows its interval."""
    return min(_INTERVALS * interval_ms, KAFKAS_SESSION_MS)


def session_request(group_id: str) -> DescribeConfigsRequest:
    """Asks for the session of a group."""
    asked = DescribeConfigsResource(
        resource_type=_GROUP, resource_name=group_id, configuration_keys=[_SESSION]
    )
    return DescribeConfigsRequest(resources=[asked])


def session_in(answer: DescribeConfigsResponse) -> int | None:
    """The session in ms; None where the broker does not tell it, or not to this client."""
    values = [
        config.value
        for result in answer.results
        for config in result.configs
        if config.name == _SESSION
    ]
    text = values[0] if values else None
    return int(text) if text is not None and text.isdecimal() and int(text) else None


def is_denied(answer: DescribeConfigsResponse) -> bool:
    """Whether this client has no right to be told."""
    return any(result.error_code == _DENIED for result in answer.results)
