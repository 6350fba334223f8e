"""Returns the action for each error of a consumer-protocol member (KIP-848).

Uses the table in `core.group_errors`.
"""

from __future__ import annotations

from typing import Final

from ....wire.errors import KprotoError, UnsupportedVersionError
from ...core.group_errors import ErrorAction, GroupRequest, consumer_action
from ..group_protocol import GroupProtocolMismatchError

__all__ = ["action_for"]

#: Kafka 3.9 returns GROUP_ID_NOT_FOUND with this text in the message if a classic group cannot be
#: converted yet, because a member has no assignment. If the migration policy forbids the
#: conversion, the message has "is not a consumer group". Kafka 4 has a message for each cause.
_NO_ASSIGNMENT_YET: Final = "embedded consumer protocol is malformed"


def action_for(request: GroupRequest, error: KprotoError) -> ErrorAction:
    """Returns the action of the member after `request` failed with `error`."""
    if isinstance(error, GroupProtocolMismatchError):
        return ErrorAction.OTHER_PROTOCOL
    if isinstance(error, UnsupportedVersionError):
        return ErrorAction.FAIL
    action = consumer_action(request, error)
    if action is ErrorAction.OTHER_PROTOCOL and _NO_ASSIGNMENT_YET in str(error):
        return ErrorAction.UNCONVERTED
    return action
