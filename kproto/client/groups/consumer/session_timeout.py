"""Reads the session timeout of a group from DescribeConfigs.

Heartbeat responses have the heartbeat interval, but not the session timeout, which is a group
config (KIP-848). The principal needs DESCRIBE_CONFIGS on the group. Plain functions on plain data.
"""

from __future__ import annotations

from typing import Final

from ....messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from ....messages.describe_configs_response import DescribeConfigsResponse
from ....protocol.error_codes import code_of

__all__ = [
    "DEFAULT_SESSION_MS",
    "is_denied",
    "session_ms_for",
    "session_ms_in",
    "session_timeout_request",
]

_DENIED: Final = code_of("GROUP_AUTHORIZATION_FAILED")

#: The config resource type of groups.
_GROUP: Final = 32

#: The group config. Brokers return it for every group; the default is the broker's own config.
_SESSION: Final = "consumer.session.timeout.ms"

#: The default of group.consumer.session.timeout.ms, and of its lower limit
#: group.consumer.min.session.timeout.ms. This default is `_HEARTBEATS_IN_SESSION` times the default
#: heartbeat interval, 5 s.
DEFAULT_SESSION_MS: Final = 45_000
_HEARTBEATS_IN_SESSION: Final = 9


def session_ms_for(interval_ms: int) -> int:
    """Returns the session timeout in ms to assume if only the heartbeat interval is known."""
    return min(_HEARTBEATS_IN_SESSION * interval_ms, DEFAULT_SESSION_MS)


def session_timeout_request(group_id: str) -> DescribeConfigsRequest:
    """Returns a DescribeConfigs request for `consumer.session.timeout.ms` of a group."""
    resource = DescribeConfigsResource(
        resource_type=_GROUP, resource_name=group_id, configuration_keys=[_SESSION]
    )
    return DescribeConfigsRequest(resources=[resource])


def session_ms_in(answer: DescribeConfigsResponse) -> int | None:
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
    """Returns True if the principal lacks DESCRIBE_CONFIGS on the group."""
    return any(result.error_code == _DENIED for result in answer.results)
