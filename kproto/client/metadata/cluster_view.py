"""`ClusterView`: the cluster for producers, consumers and the client's own calls.

It sends requests to the brokers that answer them, has the metadata of topics and leaders, and
refreshes old metadata. Callers interpret the responses, and decide on retries with `core.retry`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from ...clock import Clock
from ...messages.base import Request, Response
from ...messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ...messages.metadata_response import MetadataResponse
from ...protocol.error_codes import code_of, error_of_code, raise_for_code
from ...unclosed import finalize
from ...wire.checks import check_whole_number
from ...wire.counted import counted
from ...wire.errors import (
    BrokerConnectionError,
    ConfigurationError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
)
from ...wire.uuid import Uuid
from ..core.gather import gather_all
from ..core.retry import Attempts, Remedy, remedy_of
from ..core.retrying import RetryingCalls
from ..core.single_flight import SingleFlight
from ..network.connection import BrokerConnection
from ..network.pool import ConnectionPool
from ..observing.observer import Observer
from ..settings import Address, ClientSettings
from .any_broker import connect, connect_any
from .broker_selection import BrokerSelection, RebootstrapTimer
from .cluster import Broker, Cluster, LeaderHint, TopicInfo, TopicPartition, no_leader_error
from .cluster_changes import MetadataChangeLogger
from .request_router import BrokerAnswer, RequestRouter
from .routing import CoordinatorType, Route, route_of
from .topic_creation import TopicCreation

__all__ = ["ClusterView"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")

_NO_SUCH_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")
_NO_LEADER: Final = code_of("LEADER_NOT_AVAILABLE")

_LONG_AGO: Final = float("-inf")

_REBOOTSTRAP: Final = code_of("REBOOTSTRAP_REQUIRED")

#: The first version of Metadata with requests by topic id (KIP-516).
_BY_ID: Final = 12

#: Up to this version brokers may create the topics of a Metadata request; later versions have a
#: flag for that.
_ALWAYS_CREATES: Final = 3


class ClusterView(RetryingCalls):
    """The cluster: its connections and its metadata, shared by all parts of a client."""

    def __init__(
        self, bootstrap: Sequence[Address], settings: ClientSettings, clock: Clock
    ) -> None:
        super().__init__(settings, clock, Observer(settings.hooks, clock.monotonic))
        self.cluster = Cluster()
        self._changes = MetadataChangeLogger()
        self._pool = ConnectionPool(bootstrap, settings, clock, self.observer)
        self.loop_guard = self._pool.loop_guard
        self._requests = RequestRouter(self)
        #: Decides which topics metadata requests may create, and how long the client waits for
        #: unknown topics.
        self.topic_creation = TopicCreation(settings)
        self._received_at: dict[str, float] = {}  # the arrival time of a topic's metadata
        self._leader_hinted_at: dict[TopicPartition, float] = {}  # the time of the last hint
        self._rebootstraps = settings.metadata_recovery_strategy == "rebootstrap"
        self._broker_selection = BrokerSelection(bootstrap, rebootstraps=self._rebootstraps)
        trigger_ms = settings.metadata_recovery_rebootstrap_trigger_ms
        self._rebootstrap_timer = RebootstrapTimer(trigger_ms, rebootstraps=self._rebootstraps)
        self._all_topics = SingleFlight(self._request_all)
        self._by_name = SingleFlight(self._request_by_name)
        self._by_id = SingleFlight(self._request_by_id)
        self._brokers_are_invalid = False  # a broker was lost, or is not the controller

    async def close(self) -> None:
        """Closes every connection; waiting and later requests fail.

        Raises ConfigurationError if another event loop than the client's runs. If the client's
        event loop is closed, only drops the connections.
        """
        if self.loop_guard.is_gone:
            self._pool.forget()
            return
        self.loop_guard.check()
        self.observer.close()
        await self._pool.close()
        # Without connections these requests end at once; cancelling them would cancel callers.
        await self._all_topics.wait_until_idle()
        await self._by_name.wait_until_idle()
        await self._by_id.wait_until_idle()

    def raise_if_closed(self) -> None:
        """Raises ConfigurationError once the connections are closed."""
        self._pool.raise_if_closed()

    def __del__(self, _finalize: Callable[[Callable[[], None]], None] = finalize) -> None:
        # Clients, producers and consumers refer to the view; connections do not.
        pool = getattr(self, "_pool", None)
        if pool is not None:
            _finalize(pool.warn_if_not_closed)

    # Requests

    async def request(
        self,
        request: Request[R],
        *,
        broker: int | None = None,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> R:
        """Sends a request and returns the response.

        Without `broker`, the type of the request decides which brokers get it.

        See `Client.request`.
        """
        _check(request, timeout_ms)
        return await self._requests.request(request, broker, version, timeout_ms)

    async def request_by_broker(
        self,
        request: Request[R],
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
        within_ms: int | None = None,
    ) -> list[BrokerAnswer[R]]:
        """Returns the response or the error of each broker; see `Client.request_by_broker`.

        `within_ms` is the time for each broker, with the time to connect to it; it has no limit by
        default.
        """
        _check(request, timeout_ms)
        return await self._requests.by_broker(request, None, version, timeout_ms, within_ms)

    def invalidate_brokers(self) -> None:
        """Marks the known brokers as outdated, so that the client requests them again.

        Call it if a request to a broker failed or timed out, or if a broker is no longer the
        controller.
        """
        self._brokers_are_invalid = True

    async def refresh_invalid_brokers(self) -> None:
        """Refreshes the brokers if `invalidate_brokers` has marked them as outdated."""
        if self._brokers_are_invalid:
            await self._request_brokers()

    async def _request_brokers(self) -> None:
        """Refreshes the brokers, their addresses, and the controller."""
        try:
            await self.refresh([])
        except KprotoError:
            return  # the next request refreshes them
        self._brokers_are_invalid = False

    async def connection_for(self, request: Request[R]) -> BrokerConnection:
        """Returns a connection to the controller if it must answer `request`, else to any broker.

        The caller builds `request` for the version that the connection negotiated.
        """
        await self.refresh_invalid_brokers()
        is_for_controller = route_of(request) is Route.CONTROLLER
        controller = self.cluster.controller
        known = is_for_controller and controller in self.cluster.brokers
        return await self.connection(controller if known else None)

    async def connection(
        self, broker: int | None = None, *, owner: object = None
    ) -> BrokerConnection:
        """Returns the connection to node `broker`, or to any broker; see `Client.connection`.

        If `broker` and `owner` are given, only `owner` uses the connection, because the broker may
        delay the responses to its requests. The connection to any broker is always shared.
        """
        if broker is None:
            return await connect_any(
                self._pool, self._broker_selection, self.cluster.brokers.values()
            )
        if broker not in self.cluster.brokers:
            await self.refresh([])
        if broker not in self.cluster.brokers:
            known = ", ".join(map(str, sorted(self.cluster.brokers))) or "none"
            if broker in self.cluster.known_nodes:
                raise BrokerConnectionError(f"broker {broker} is away; the cluster has {known}")
            raise ConfigurationError(f"the cluster has no broker {broker}; it has {known}")
        return await self.connection_to(broker, owner=owner)

    async def connection_to(self, node: int, *, owner: object = None) -> BrokerConnection:
        """Returns the connection of `owner` to a node, or the shared connection if `owner` is None.

        Raises BrokerConnectionError if the node cannot be reached, or if the metadata lacks the
        node because it has left the cluster.
        """
        address = self.cluster.brokers.get(node)
        if address is None:
            raise BrokerConnectionError(f"broker {node} has left the cluster")
        return await connect(self._pool, self._broker_selection, address, owner)

    def open_connection(self, node: int) -> BrokerConnection | None:
        """Returns the shared connection to a node of the metadata; None if it is not open."""
        address = self.cluster.brokers.get(node)
        return None if address is None else self._pool.open_connection(address)

    @property
    def message_magic(self) -> int:
        """The newest record format that all connected brokers accept."""
        return self._pool.message_magic

    @property
    def is_message_magic_known(self) -> bool:
        """Returns True if `broker_version` is set, or if a connection has been opened."""
        return self._pool.is_message_magic_known

    async def release(self, owner: object) -> None:
        """Closes the connections of `owner`, and waits until they are closed."""
        await self._pool.release(owner)

    def abort(self, owner: object) -> None:
        """Closes the connections of `owner`, without waiting."""
        self._pool.abort(owner)

    def has_connections_of(self, owner: object) -> bool:
        """Returns True if `owner` has an open connection, or one that is being opened."""
        return self._pool.has_connections_of(owner)

    # Coordinators

    async def group_coordinator(self, group_id: str) -> int:
        """Returns the node id of a group's coordinator; sends FindCoordinator if it is unknown.

        Retriable errors are retried for `api_timeout_ms`. Raises the last error after that time,
        and any other error at once.
        """
        return (await self._requests.find(CoordinatorType.GROUP, [group_id]))[group_id]

    def forget_group_coordinator(self, group_id: str) -> None:
        """Forgets the coordinator of a group, because it is unavailable or has moved."""
        self._requests.coordinators.forget(CoordinatorType.GROUP, [group_id])

    async def transaction_coordinator(self, transactional_id: str) -> int:
        """Returns the node id of a transactional id's coordinator; works as `group_coordinator`."""
        found = await self._requests.find(CoordinatorType.TRANSACTION, [transactional_id])
        return found[transactional_id]

    def forget_transaction_coordinator(self, transactional_id: str) -> None:
        """Forgets the coordinator of a transactional id: it is unavailable or has moved."""
        self._requests.coordinators.forget(CoordinatorType.TRANSACTION, [transactional_id])

    def open_group_coordinator(self, group_id: str) -> BrokerConnection | None:
        """Returns the open connection to the coordinator of a group.

        Returns None if the coordinator is unknown, if the connection is not open, or if the brokers
        are outdated.
        """
        return self._open_coordinator(CoordinatorType.GROUP, group_id)

    def open_transaction_coordinator(self, transactional_id: str) -> BrokerConnection | None:
        """Returns the open connection to the coordinator of a transactional id.

        Returns None in the cases in which `open_group_coordinator` returns None.
        """
        return self._open_coordinator(CoordinatorType.TRANSACTION, transactional_id)

    def _open_coordinator(self, kind: CoordinatorType, key: str) -> BrokerConnection | None:
        node = self._requests.coordinators.node(kind, key)
        if node is None or self._brokers_are_invalid:
            return None
        return self.open_connection(node)

    # Metadata

    async def refresh(self, topics: Iterable[str] | None = None) -> list[TopicInfo]:
        """Requests metadata of `topics`, or of all topics; see `Client.refresh`."""
        self.loop_guard.check()
        if topics is None:
            return await self._all_topics.request(frozenset())
        wanted = frozenset(topics)
        return [each for each in await self._by_name.request(wanted) if each.name in wanted]

    async def refresh_ids(self, ids: Iterable[Uuid]) -> list[TopicInfo]:
        """Requests metadata of the topics with these ids; returns the topics with error codes.

        If the broker does not support Metadata v12, requests metadata of all topics.
        """
        wanted = frozenset(ids)
        return [each for each in await self._by_id.request(wanted) if each.topic_id in wanted]

    async def _request_all(self, _: frozenset[str]) -> list[TopicInfo]:
        # In v0 an empty list means all topics; in later versions null does.
        return await self._metadata(lambda version: None if version else [])

    async def _request_by_name(self, names: frozenset[str]) -> list[TopicInfo]:
        found: list[TopicInfo] = []
        for its, may_create in self.topic_creation.split(names):
            topics = [MetadataRequestTopic(name=name) for name in sorted(its)]
            found += await self._metadata(partial(_always, topics), may_create=may_create)
        self.topic_creation.add_existing(each.name for each in found if not each.error_code)
        return found

    async def _request_by_id(self, ids: frozenset[Uuid]) -> list[TopicInfo]:
        topics = [MetadataRequestTopic(topic_id=each, name=None) for each in sorted(ids)]
        return await self._metadata(lambda version: topics if version >= _BY_ID else None)

    async def _metadata(
        self,
        topics_in: Callable[[int], list[MetadataRequestTopic] | None],
        *,
        may_create: bool = False,
    ) -> list[TopicInfo]:
        """Requests metadata of topics, and updates the cluster with it.

        `topics_in` returns the topics to request, by version of Metadata; None means all topics.
        With `may_create` brokers may create missing topics.
        """
        if self._rebootstrap_timer.on_request(self.clock.monotonic()):
            waited = self.settings.metadata_recovery_rebootstrap_trigger_ms
            self._rebootstrap(f"no metadata arrived for {waited} ms")
        try:
            response, version, is_whole = await self._send_metadata_request(topics_in, may_create)
            if response.error_code == _REBOOTSTRAP and self._rebootstraps:
                self._rebootstrap("a broker responded that this client must rebootstrap")
                response, version, is_whole = await self._send_metadata_request(
                    topics_in, may_create
                )
        except KprotoError:
            self._rebootstrap_timer.on_failed()
            raise
        if response.error_code == _REBOOTSTRAP:  # retriable, like a lost broker
            raise BrokerConnectionError("a broker responded that this client must rebootstrap")
        raise_for_code(response.error_code, "requesting metadata")
        self._rebootstrap_timer.on_success()
        before = self.cluster.cluster_id
        topics = self.cluster.update(response, whole=is_whole, version=version)
        self.observer.refreshed()
        self._log_changes()
        self._store_arrival_times(topics, is_whole)
        if before is not None and self.cluster.cluster_id not in (None, before):
            self.observer.cluster_id_changed(self.cluster.cluster_id, before)
        return topics

    def _store_arrival_times(self, topics: Sequence[TopicInfo], is_whole: bool) -> None:
        """Stores the time at which the metadata of `topics` arrived.

        Forgets the times of topics that no longer exist or have an error. The new metadata also
        replaces the leaders of `topics` that earlier Produce and Fetch responses have named.
        """
        now = self.clock.monotonic()
        names = {topic.name for topic in topics}
        forgotten = self._received_at.keys() - self.cluster.topics if is_whole else names
        for name in forgotten:  # most responses have few of the known topics
            self._received_at.pop(name, None)
        self._received_at.update({topic.name: now for topic in topics if not topic.error_code})
        # Metadata is newer than earlier hints.
        if self._leader_hinted_at:
            self._leader_hinted_at = {
                tp: at
                for tp, at in self._leader_hinted_at.items()
                if not is_whole and tp[0] not in names
            }

    def _log_changes(self) -> None:
        if self.observer.logs_changes:
            self.observer.cluster_changed(self._changes.log_lines(self.cluster))

    async def _send_metadata_request(
        self, topics_in: Callable[[int], list[MetadataRequestTopic] | None], may_create: bool
    ) -> tuple[MetadataResponse, int, bool]:
        """Sends a Metadata request for the topics that `topics_in` returns for its version.

        Returns the response, its version, and True if all topics were requested.
        """
        connection = await self.connection()
        version = connection.version_of(MetadataRequest)
        topics = topics_in(version)
        request = MetadataRequest(
            topics=topics, allow_auto_topic_creation=may_create or version <= _ALWAYS_CREATES
        )
        is_whole = topics is None or (version == 0 and not topics)
        return await connection.request(request, version=version), version, is_whole

    def _rebootstrap(self, why: str) -> None:
        """Drops the cluster and bootstraps again from the configured servers (KIP-1102)."""
        servers = ", ".join(map(str, self._pool.bootstrap))
        self.observer.rebootstrapped(why, servers)
        self._pool.abort_all()
        self.cluster.reset()
        self._requests.coordinators.forget_all()
        self._broker_selection.reset()
        self._received_at.clear()
        self._leader_hinted_at.clear()

    def has_current_metadata(self, name: str) -> bool:
        """Returns True if metadata of a topic is known and younger than `metadata_max_age_ms`."""
        return self.clock.monotonic() < self.metadata_valid_until(name)

    def metadata_valid_until(self, name: str) -> float:
        """Returns the time at which the metadata of a topic becomes too old.

        Metadata becomes too old at the age `metadata_max_age_ms`. The time is in seconds of the
        clock; minus infinity if the metadata is unknown.
        """
        if name not in self.cluster.topics:
            return float("-inf")
        received_at = self._received_at.get(name, float("-inf"))
        return received_at + self.settings.metadata_max_age_ms / 1000

    def leader_since(self, topic: str, partition: int, since: float) -> int | None:
        """Returns the node id of a partition's leader, from metadata or a hint newer than `since`.

        Returns None if neither metadata nor a hint has arrived after `since`, in seconds of the
        clock, or if they name no known broker.
        """
        if (
            self._received_at.get(topic, _LONG_AGO) <= since
            and self._leader_hinted_at.get((topic, partition), _LONG_AGO) <= since
        ):
            return None
        cluster = self.cluster
        info = cluster.topics.get(topic)
        known = None if info is None else info.partitions.get(partition)
        return known.leader if known is not None and known.leader in cluster.brokers else None

    def update_leaders(self, hints: Iterable[LeaderHint], brokers: Iterable[Broker]) -> bool:
        """Applies the leaders that a response names (KIP-951); returns True if a leader is new.

        `leader_since` returns these leaders from now on, without a Metadata request.
        """
        self.cluster.update_brokers(brokers)
        new = [hint for hint in hints if self.cluster.update_leader(hint)]
        self._log_changes()
        now = self.clock.monotonic()
        self._leader_hinted_at.update({(hint.topic, hint.partition): now for hint in new})
        return bool(new)

    def has_metadata_since(self, name: str, at: float) -> bool:
        """Returns True if metadata of a topic arrived at `at` or later, in seconds of the clock."""
        return self._received_at.get(name, float("-inf")) >= at

    async def ensure_metadata(self, names: Iterable[str]) -> None:
        """Requests missing or old metadata of several topics in one request.

        Does nothing if only one topic needs a request: the next call of `topic` sends this request.
        """
        unknown = {name for name in set(names) if not self.has_current_metadata(name)}
        if len(unknown) > 1:
            await self.refresh(unknown)

    async def topic(self, name: str) -> TopicInfo:
        """Returns a topic and its partitions; see `Client.topic`."""
        if self.has_current_metadata(name):
            return self.cluster.topics[name]
        return await self._refresh_topic_until(
            name, lambda found: 0 if found.partitions else _NO_LEADER
        )

    async def leader(self, topic: str, partition: int) -> int:
        """Returns the node id of the leader of a partition.

        Raises BrokerResponseError if the partition does not exist, or if it has no leader within
        `metadata_wait_ms`.
        """
        info = await self.topic(topic)
        if partition not in info.partitions:
            info = await self._refresh_topic(topic)  # partitions may have been added
        if info.error_code:
            raise no_leader_error([info], topic, partition)
        if partition not in info.partitions:
            raise error_of_code(
                _NO_SUCH_TOPIC,
                f"topic {topic!r} has {counted(len(info.partitions), 'partition')}, and none is "
                f"{partition}",
            )
        if not self._has_leader(info, partition):
            info = await self._refresh_topic_until(
                topic, lambda found: 0 if self._has_leader(found, partition) else _NO_LEADER
            )
        return info.partitions[partition].leader

    def _has_leader(self, info: TopicInfo, partition: int) -> bool:
        part = info.partitions.get(partition)
        return part is not None and part.leader in self.cluster.brokers

    async def _refresh_topic(self, name: str) -> TopicInfo:
        for found in await self.refresh([name]):
            if found.name == name:
                return found
        raise ProtocolError(f"the response to a Metadata request for topic {name!r} lacks it")

    async def _refresh_topic_until(self, name: str, fault: Callable[[TopicInfo], int]) -> TopicInfo:
        """Requests metadata of a topic until its error code is 0 and `fault` returns 0 for it.

        `fault` returns an error code if the metadata is incomplete, e.g. without a leader. Raises
        the error after `metadata_wait_ms`, and a permanent error at once. If no broker is known to
        have the topic, raises UNKNOWN_TOPIC_OR_PARTITION after `unknown_topic_wait_ms`.
        """
        started_at = self.clock.monotonic()
        attempts = Attempts(self.settings, self.settings.metadata_wait_ms, started_at)
        while True:
            found = await self._refresh_topic(name)
            code = found.error_code or fault(found)
            if not code:
                return found
            error = error_of_code(code, f"topic {name!r}")
            if remedy_of(error) is Remedy.FAIL:
                raise error
            setting = "metadata_wait_ms"
            if code == _NO_SUCH_TOPIC:
                setting = self.topic_creation.wait_setting(name)
            limit = getattr(self.settings, setting)
            attempts.limit_to(started_at + limit / 1000)
            if not attempts.failed(error, self.clock.monotonic()):
                waited = f"topic {name!r}; it was requested for {limit} ms ({setting})"
                if code == _NO_SUCH_TOPIC and self.topic_creation.is_allowed(name):
                    waited += "; does the broker create topics (auto.create.topics.enable)?"
                elif code == _NO_SUCH_TOPIC:
                    waited += (
                        "; metadata requests create no topics: see Client.create_topics, "
                        "or set allow_auto_create_topics"
                    )
                raise error_of_code(code, waited)
            self.observer.retried("metadata", error, attempts, name)
            await self.sleep_until(attempts.not_before)

    # Requests to leaders

    async def send_to_leaders(
        self,
        partitions: Iterable[TopicPartition],
        send: Callable[[int, list[TopicPartition]], Coroutine[Any, Any, T]],
    ) -> list[T]:
        """Calls `send` concurrently with each leader and its partitions; returns the results.

        After a retriable error of `send`, or a lost connection, refreshes the leaders and calls
        `send` for all leaders again, within `api_timeout_ms`. Raises other errors at once. Also
        raises a BrokerResponseError of `leader` at once, because `leader` has retried already.
        """
        partitions = list(partitions)
        attempts = Attempts(self.settings, started_at=self.clock.monotonic())
        while True:
            error: KprotoError
            try:
                by_leader = await self._attempt(attempts, self._by_leader(partitions))
            except (BrokerConnectionError, RequestTimeoutError) as lost:
                error = lost
            else:
                asking = gather_all([send(node, its) for node, its in by_leader.items()])
                try:
                    return await self._attempt(attempts, asking)
                except KprotoError as failed:
                    self.cluster.forget(topic for topic, _ in partitions)
                    error = failed
            if remedy_of(error) is Remedy.FAIL:
                raise error
            if not attempts.failed(error, self.clock.monotonic()):
                raise error
            self.observer.retried("leaders", error, attempts)
            await self.sleep_until(attempts.not_before)

    async def _by_leader(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[int, list[TopicPartition]]:
        await self.ensure_metadata(topic for topic, _ in partitions)
        found: dict[int, list[TopicPartition]] = {}
        valid_since = self.clock.monotonic() - self.settings.metadata_max_age_ms / 1000
        for tp in partitions:
            node = self.leader_since(*tp, valid_since)
            if node is None:
                node = await self.leader(*tp)
            found.setdefault(node, []).append(tp)
        return found


def _always(topics: list[MetadataRequestTopic], version: int) -> list[MetadataRequestTopic]:
    """Returns `topics`, whatever the version of the Metadata request is."""
    return topics


def _check(request: object, timeout_ms: int | None) -> None:
    """Raises ConfigurationError for an object that is no request, or for an invalid timeout."""
    if not isinstance(request, Request):
        raise ConfigurationError(f"{request!r:.80} is no request of kproto.messages")
    if timeout_ms is not None:
        check_whole_number("timeout_ms", timeout_ms, 1)
