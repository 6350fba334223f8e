"""Creates the parts of a group consumer, and connects them.

The fetch parts poll records; a consumer without a group has the same parts. The group parts commit
offsets, call the rebalance callbacks, and run handlers. Only the group parts have a reference to
the consumer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from ..commits.commit_state import CommitState
from ..commits.committed_offsets import CommittedOffsetFetcher
from ..commits.committer import Committer
from ..commits.membership import GroupMembership
from ..fetch.fetch_buffer import FetchBuffer
from ..fetch.fetch_options import FetchOptions
from ..fetch.in_flight_fetches import InFlightFetches
from ..fetch.in_flight_records import AdaptiveBatchSize
from ..fetch.start_options import GroupStart
from ..fetch.subscription_state import SubscriptionOptions, SubscriptionState
from ..groups.settings import GroupSettings
from ..groups.subscription import Subscription
from ..metadata.cluster_view import ClusterView
from .auto_commit import AutoCommit
from .group_closer import ClosedConsumer, GroupConsumerCloser
from .group_effects import GroupEffectHandler
from .group_positions import PositionAndLagLookup
from .offset_acks import OffsetAckSink
from .poll_status import PollStatus
from .rebalance_listener import CallbackHolder, RebalanceListenerInvoker
from .record_processing import (
    ForwardProducerFactory,
    ProcessingConsumer,
    RecordProcessing,
    TransactionalProducerFactory,
)
from .transactional_offsets import TransactionalOffsets

__all__ = [
    "GroupFactories",
    "GroupFetchParts",
    "GroupParts",
    "MemberFactory",
    "create_fetch_parts",
    "create_group_parts",
]

#: Creates the member of a group from its settings and the listener of its assignment.
MemberFactory: TypeAlias = Callable[
    [ClusterView, GroupSettings, RebalanceListenerInvoker], GroupMembership[Subscription]
]


class GroupFactories(NamedTuple):
    """Creates the objects of a group consumer that are in upper layers.

    `on_background_close` is called with the task that closes a dropped consumer.
    """

    make_member: MemberFactory
    make_forward_producer: ForwardProducerFactory | None
    make_transactional_producer: TransactionalProducerFactory | None
    on_background_close: Callable[[asyncio.Task[None]], object] | None


class GroupFetchParts(NamedTuple):
    """The parts of a group consumer that poll records."""

    subscriptions: SubscriptionState
    in_flight: InFlightFetches
    committed: CommittedOffsetFetcher
    effect_handler: GroupEffectHandler
    status: PollStatus
    owner: object


class GroupParts(NamedTuple):
    """The group parts of a group consumer. `member` is None for manually assigned partitions."""

    listener: RebalanceListenerInvoker
    member: GroupMembership[Subscription] | None
    committer: Committer
    auto_commit: AutoCommit
    positions: PositionAndLagLookup
    transactional_offsets: TransactionalOffsets
    processing: RecordProcessing
    closer: GroupConsumerCloser


class _ConsumerMethods(ProcessingConsumer, ClosedConsumer, Protocol):
    """The methods of `GroupConsumer` that its parts call."""


def create_fetch_parts(
    view: ClusterView,
    settings: GroupSettings,
    start: GroupStart,
    options: FetchOptions,
    *,
    is_shared: bool,
) -> GroupFetchParts:
    """Returns the fetch parts; `is_shared` is True if the group assigns the partitions."""
    subscriptions = SubscriptionState(
        view.settings,
        SubscriptionOptions(start, group_id=settings.group_id, is_shared=is_shared),
        FetchBuffer(
            view.observer.calls.on_records,
            AdaptiveBatchSize(),
            options.decompressed_limit,
            options.processing_limit,
        ),
        CommitState(settings.auto_commit_interval_ms),
        view.clock.monotonic(),
    )
    in_flight = InFlightFetches()
    status = PollStatus()
    owner = object()
    committed = CommittedOffsetFetcher(view, settings.group_id)
    effect_handler = GroupEffectHandler(
        view,
        subscriptions,
        in_flight,
        status,
        committed,
        owner,
        read_committed=options.read_committed,
    )
    return GroupFetchParts(subscriptions, in_flight, committed, effect_handler, status, owner)


def create_group_parts(
    view: ClusterView,
    consumer: _ConsumerMethods,
    fetching: GroupFetchParts,
    settings: GroupSettings,
    options: FetchOptions,
    subscription: Subscription | None,
    callbacks: CallbackHolder,
    factories: GroupFactories,
) -> GroupParts:
    """Returns the group parts; the member subscribes to `subscription`, unless it is None."""
    subscriptions, effect_handler = fetching.subscriptions, fetching.effect_handler
    status = fetching.status
    listener = RebalanceListenerInvoker(
        view,
        subscriptions,
        effect_handler,
        status,
        callbacks,
        auto_commit=settings.auto_commit,
        max_poll_interval_ms=settings.max_poll_interval_ms,
    )
    member: GroupMembership[Subscription] | None = None
    if subscription is not None:
        member = factories.make_member(view, settings, listener)
        member.subscribe(subscription)
        effect_handler.set_member(member)
    committer = Committer(view, settings.group_id, subscriptions.committable, member)
    listener.committer = committer
    auto_commit = AutoCommit(
        view,
        subscriptions,
        committer,
        member,
        effect_handler,
        auto_commit=settings.auto_commit,
        interval_ms=settings.auto_commit_interval_ms,
    )
    positions = PositionAndLagLookup(
        view, subscriptions, effect_handler.positions, read_committed=options.read_committed
    )
    transactional_offsets = TransactionalOffsets(
        view,
        settings.group_id,
        subscriptions,
        committer,
        fetching.committed,
        effect_handler.positions,
        effect_handler,
        member,
        status,
    )
    processing = RecordProcessing(
        view,
        consumer,
        subscriptions,
        effect_handler,
        listener,
        OffsetAckSink(committer, auto_commit, status, is_auto=settings.auto_commit),
        factories.make_forward_producer,
        factories.make_transactional_producer,
        transactional_offsets,
        group_id=settings.group_id,
        max_bytes=options.processing_limit,
    )
    closer = GroupConsumerCloser(
        view,
        consumer,
        subscriptions,
        effect_handler,
        status,
        listener,
        processing,
        auto_commit,
        committer,
        member,
        group_id=settings.group_id,
        leaves=settings.leaves,
        on_background_close=factories.on_background_close,
    )
    return GroupParts(
        listener,
        member,
        committer,
        auto_commit,
        positions,
        transactional_offsets,
        processing,
        closer,
    )
