"""Creates consumers of a group, from arguments of `Client.consumer` and defaults."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..records.type_variables import K, U, V
from .consumer.group_consumer import GroupConsumer
from .consumer.rebalance_listener import RebalanceCallback, RebalanceCallbacks
from .consumer.record_processing import ForwardProducerFactory, TransactionalProducerFactory
from .consumer_factory import FETCH_ARGUMENTS, fetch_settings
from .groups.protocol_selection import GroupMember
from .groups.settings import GroupSettings, group_defaults_of
from .groups.subscription import TopicPattern
from .metadata.cluster import TopicPartition
from .metadata.cluster_view import ClusterView

if TYPE_CHECKING:
    from ..codecs.record_decoder import RecordDecoder

__all__ = ["create_group_consumer"]


def create_group_consumer(
    view: ClusterView,
    topics: str | Iterable[str] | re.Pattern[str] | TopicPattern | Iterable[TopicPartition],
    group: str,
    arguments: Mapping[str, Any],
    callbacks: Mapping[str, RebalanceCallback | None],
    consumer_defaults: Mapping[str, Any],
    group_defaults: Mapping[str, Any],
    *,
    decoder: RecordDecoder[K, V, U] | None,
    make_forward_producer: ForwardProducerFactory,
    make_transactional_producer: TransactionalProducerFactory,
    on_background_close: Callable[[asyncio.Task[None]], None],
) -> GroupConsumer[K, V, U]:
    """Creates a consumer of the group `group`.

    `arguments` override `group_defaults`, which override `consumer_defaults`. Raises
    ConfigurationError for an invalid argument.
    """
    start, options = fetch_settings(arguments, consumer_defaults, group_defaults)
    given = {
        name: value
        for name, value in {**group_defaults, **arguments}.items()
        if name not in FETCH_ARGUMENTS and name != "group"
    }
    defaults = group_defaults_of(view.settings.broker_version)
    return GroupConsumer(
        view,
        topics,
        GroupSettings(group, **{**defaults, **given}, explicit_settings=frozenset(given)),
        GroupMember,
        start=start,
        callbacks=RebalanceCallbacks(**callbacks),
        fetch_options=options,
        decoder=decoder,
        make_forward_producer=make_forward_producer,
        make_transactional_producer=make_transactional_producer,
        on_background_close=on_background_close,
    )
