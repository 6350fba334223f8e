"""Checks that retry and dead letter topics exist, and that the client may write to them.

`run` calls the check before it processes a record. Without the check, `run` would detect a missing
topic or a missing right only when a record fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from ...messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ...protocol.error_codes import error_of_code
from ...wire.errors import BrokerResponseError, ConfigurationError, UnsupportedVersionError
from ..metadata.cluster_view import ClusterView

__all__ = ["check_forward_topics"]

#: The first version of Metadata with the authorized operations of a topic (KIP-430).
_FIRST_OPERATIONS_VERSION: Final = 8

#: The operations are unknown: the broker has no authorizer, or the request did not ask for them.
_UNKNOWN: Final = -(2**31)

#: The bit of AclOperation WRITE.
_WRITE: Final = 1 << 4

#: The client may not DESCRIBE the topic, so it may not WRITE either: WRITE implies DESCRIBE.
_UNAUTHORIZED: Final = "TOPIC_AUTHORIZATION_FAILED"


async def check_forward_topics(view: ClusterView, names: Iterable[str]) -> None:
    """Raises ConfigurationError if a topic does not exist, or if the client may not write to it.

    Brokers before 2.3 do not report if the client may write: with such brokers only the first send
    fails. Waits up to `unknown_topic_wait_ms` for a topic that was just created. Creates no topic,
    but a broker before 0.11 may create the topic when the broker receives the Metadata request.
    Raises BrokerResponseError for other errors of a broker.
    """
    names = list(names)
    for name in names:
        try:
            await view.retrying(partial(view.topic, name), responses=False)
        except BrokerResponseError as error:
            if error.name == _UNAUTHORIZED:
                raise _unauthorized_error(name) from error
            if error.name != "UNKNOWN_TOPIC_OR_PARTITION":
                raise
            raise ConfigurationError(
                f"topic {name!r}, to which failed records are sent, does not exist: create it, "
                "or set another dead_letter_topic or other retry_topics"
            ) from error
    if names:
        await _check_write_authorization(view, names)


async def _check_write_authorization(view: ClusterView, names: list[str]) -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    try:
        answer = await view.retrying(partial(view.request, request))
    except UnsupportedVersionError:
        return  # a broker before 2.3: the first send fails if WRITE is missing
    for topic in answer.topics:
        if topic.error_code:
            error = error_of_code(topic.error_code, f"asking for topic {topic.name}")
            raise _unauthorized_error(topic.name) if error.name == _UNAUTHORIZED else error
        allowed = topic.topic_authorized_operations
        if allowed != _UNKNOWN and not allowed & _WRITE:
            raise _unauthorized_error(topic.name)


def _unauthorized_error(name: str | None) -> ConfigurationError:
    return ConfigurationError(
        f"this client may not write to topic {name!r}, to which failed records are sent: its "
        "principal needs WRITE"
    )
