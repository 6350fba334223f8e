"""Reads how often a share group delivers a record, and limits the retries of `run` by it.

After the last delivery the broker archives a record that is released, and no member gets it again.
So `run` must not release a record after its last delivery: the record would be lost without a dead
letter.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Final

from ...messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from ...protocol.error_codes import error_of_code
from ...wire.errors import KprotoError
from ..metadata.cluster_view import ClusterView
from ..observing.log_lines import log
from .settings import RunSettings

__all__ = ["limit_retries", "within_limit"]

#: The group config of the delivery limit.
_LIMIT_CONFIG: Final = "share.delivery.count.limit"

#: The number of the resource type GROUP in DescribeConfigs (KIP-848).
_GROUP_RESOURCE: Final = 32

#: The lowest limit that brokers accept, and the limit that brokers have by default.
_LEAST_LIMIT: Final = 2
_DEFAULT_LIMIT: Final = 5


async def limit_retries(view: ClusterView, group_id: str, settings: RunSettings) -> RunSettings:
    """Returns the settings with at most as many retries as the share group has redeliveries.

    Asks a broker for the config share.delivery.count.limit of the group, unless every limit allows
    the retries. Returns the settings as they are if the config cannot be read, for example because
    the principal lacks DESCRIBE_CONFIGS on the group. Logs a warning if it has lowered the number
    of retries, and if the config cannot be read and its default does not allow the retries.
    """
    attempts = settings.retries.attempts
    if attempts < _LEAST_LIMIT:
        return settings
    try:
        limit = await view.retrying(partial(_delivery_limit, view, group_id))
    except KprotoError as error:
        log(
            logging.WARNING if attempts >= _DEFAULT_LIMIT else logging.INFO,
            "group %s: the delivery limit cannot be read (%s of the group). If it is at most %d, "
            "the broker archives failed records before their %d retries are over, without a dead "
            "letter: %s",
            group_id,
            _LIMIT_CONFIG,
            attempts,
            attempts,
            error,
        )
        return settings
    limited = within_limit(settings, limit)
    if limited is not settings:
        log(
            logging.WARNING,
            "group %s: failed records are retried %d times, and not %d times: the broker delivers "
            "a record at most %d times (%s of the group)",
            group_id,
            limited.retries.attempts,
            attempts,
            limit,
            _LIMIT_CONFIG,
        )
    return limited


def within_limit(settings: RunSettings, limit: int) -> RunSettings:
    """Returns the settings with at most `limit` - 1 retries after the first delivery."""
    retries = settings.retries
    if retries.attempts < limit:
        return settings
    return replace(settings, retries=replace(retries, attempts=max(0, limit - 1)))


async def _delivery_limit(view: ClusterView, group_id: str) -> int:
    """Returns how often the broker delivers a record of a share group.

    Raises KprotoError for errors of the request, and if the broker does not know the config.
    """
    resource = DescribeConfigsResource(
        resource_type=_GROUP_RESOURCE, resource_name=group_id, configuration_keys=[_LIMIT_CONFIG]
    )
    response = await view.request(DescribeConfigsRequest(resources=[resource]))
    for result in response.results:
        if result.error_code:
            what = f"describing the configs of group {group_id!r}"
            raise error_of_code(result.error_code, f"{what}: {result.error_message or ''}")
        for config in result.configs:
            if config.name == _LIMIT_CONFIG and config.value is not None and config.value.isdigit():
                return int(config.value)
    raise KprotoError(f"the broker has no config {_LIMIT_CONFIG}")
