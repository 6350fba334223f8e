"""`ClusterView`: the cluster as producer, consumer and admin see it.

Sends any request to whoever answers it, knows topics and leaders, and asks again for what has
grown old. What a response means is its caller's; what to do about an error is `retry`'s.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, TypeVar

from ...clock import Clock
from ...messages.base import Request, Response
from ...messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ...messages.metadata_response import MetadataResponse
from ...protocol.error_codes import code_of, error_of_code, raise_for_code
from ...wire.checks import check_whole_number
from ...wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    ConfigurationError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
)
from ...wire.uuid import Uuid
from ..core.gather import gather_all
from ..core.retry import TICK_S, Attempts, Remedy, remedy_of
from ..core.single_flight import SingleFlight
from ..network.connection import BrokerConnection
from ..network.pool import ConnectionPool
from ..observing.observer import Observer
from ..settings import Address, ClientSettings
from .any_broker import reach, reach_any
from .broker_selection import BrokerSelection, Recovery
from .cluster import Broker, Cluster, LeaderHint, TopicInfo, TopicPartition, why_unled
from .cluster_changes import Changes
from .request_router import BrokerAnswer, RequestRouter
from .routing import CoordinatorType, Route, route_of

__all__ = ["ClusterView"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")

_NO_SUCH_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")
_NO_LEADER: Final = code_of("LEADER_NOT_AVAILABLE")

_REBOOTSTRAP: Final = code_of("REBOOTSTRAP_REQUIRED")

#: Metadata is asked for by topic id from this version on (KIP-516).
_BY_ID: Final = 12

#: Metadata calls a broker up to this version when it wants no topic created (KIP-204).
_ALWAYS_CREATES: Final = 3


class ClusterView:
    """One cluster, its connections and what is known of it. Shared by all of a client."""

    def __init__(
        self, bootstrap: Sequence[Address], settings: ClientSettings, clock: Clock
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.cluster = Cluster()
        self.observer = Observer(settings.hooks, clock.monotonic)
        self._changes = Changes()
        self._pool = ConnectionPool(bootstrap, settings, clock, self.observer)
        self.home = self._pool.home
        self._requests = RequestRouter(self)
        self._heard_of: dict[str, float] = {}  # when metadata of a topic came
        self._hinted: dict[TopicPartition, float] = {}  # when who leads it came in another response
        self._goes_back = settings.metadata_recovery_strategy == "rebootstrap"
        self._choosing = BrokerSelection(bootstrap, goes_back=self._goes_back)
        trigger_ms = settings.metadata_recovery_rebootstrap_trigger_ms
        self._recovery = Recovery(trigger_ms, goes_back=self._goes_back)
        self._all_topics = SingleFlight(self._ask_for_all)
        self._by_name = SingleFlight(self._ask_by_name)
        self._by_id = SingleFlight(self._ask_by_id)
        self._is_suspect = False  # a broker was lost, or said that it is not the controller

    async def close(self) -> None:
        """Close every connection; what waits and what comes later gets an error.

        Raises ConfigurationError in another event loop, unless the client's own is closed.
        """
        if self.home.is_gone:
            self._pool.forget()
            return
        self.home.check()
        self.observer.over()
        await self._pool.close()
        # Without connections they end at once; cancelled, they would take along who waits for them.
        await self._all_topics.ended()
        await self._by_name.ended()
        await self._by_id.ended()

    def __del__(self) -> None:
        # Clients, producers and consumers have the view; connections, which the loop keeps, do not.
        pool = getattr(self, "_pool", None)
        if pool is not None and not sys.is_finalizing():
            pool.dropped()

    # Requests

    async def request(
        self,
        request: Request[R],
        *,
        broker: int | None = None,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> R:
        """Send a request to whoever answers it; see `Client.request`."""
        _check(request, timeout_ms)
        return await self._requests.request(request, broker, version, timeout_ms)

    async def request_by_broker(
        self,
        request: Request[R],
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> list[BrokerAnswer[R]]:
        """What each broker says of its part of a request; see `Client.request_by_broker`."""
        _check(request, timeout_ms)
        return await self._requests.by_broker(request, None, version, timeout_ms)

    def suspect(self) -> None:
        """A broker was lost, or said that it is not the controller."""
        self._is_suspect = True

    async def clear_suspicion(self) -> None:
        """Ask who the brokers are before the next request, if they may be others."""
        if self._is_suspect:
            await self._ask_for_brokers()

    async def _ask_for_brokers(self) -> None:
        """Who the brokers are, where, and which of them is the controller."""
        try:
            await self.refresh([])
        except KprotoError:
            return  # asked again by the next request
        self._is_suspect = False

    async def connection_for(self, request: Request[R]) -> BrokerConnection:
        """A connection to who answers `request`, for one that is made to fit the version.

        For what the controller answers, or any broker.
        """
        await self.clear_suspicion()
        is_for_controller = route_of(request) is Route.CONTROLLER
        controller = self.cluster.controller
        known = is_for_controller and controller in self.cluster.brokers
        return await self.connection(controller if known else None)

    async def connection(
        self, broker: int | None = None, *, owner: object = None
    ) -> BrokerConnection:
        """The connection to the broker of that node id, or to any; see `Client.connection`."""
        if broker is None:
            return await reach_any(self._pool, self._choosing, self.cluster.brokers.values())
        if broker not in self.cluster.brokers:
            await self.refresh([])
        if broker not in self.cluster.brokers:
            known = ", ".join(map(str, sorted(self.cluster.brokers))) or "none"
            if broker in self.cluster.ever:
                raise BrokerConnectionError(f"broker {broker} is away; the cluster has {known}")
            raise ConfigurationError(f"the cluster has no broker {broker}; it has {known}")
        return await self.connection_to(broker, owner=owner)

    async def connection_to(self, node: int, *, owner: object = None) -> BrokerConnection:
        """The connection to a node that metadata named. Raises BrokerConnectionError, also when
        the node has left since: another will lead what it led."""
        address = self.cluster.brokers.get(node)
        if address is None:
            raise BrokerConnectionError(f"broker {node} has left the cluster")
        return await reach(self._pool, self._choosing, address, owner)

    def connection_at_hand(self, node: int) -> BrokerConnection | None:
        """The connection that `connection_to` would give, if it is open."""
        address = self.cluster.brokers.get(node)
        return None if address is None else self._pool.at_hand(address)

    @property
    def message_magic(self) -> int:
        """The newest format of records that the brokers take, as far as they are known."""
        return self._pool.message_magic

    async def release(self, owner: object) -> None:
        """Close the connections that `owner` has for himself."""
        await self._pool.release(owner)

    def abort(self, owner: object) -> None:
        """The same, for who cannot wait."""
        self._pool.abort(owner)

    # Coordinators of groups

    async def group_coordinator(self, group_id: str) -> int:
        """The node that coordinates a group; asks for it unless it is known.

        Errors that time mends are waited out for `delivery_timeout_ms`. Raises BrokerResponseError.
        """
        return (await self._requests.find(CoordinatorType.GROUP, [group_id]))[group_id]

    def forget_group_coordinator(self, group_id: str) -> None:
        """It is gone, or has turned out to be another."""
        self._requests.coordinators.forget(CoordinatorType.GROUP, [group_id])

    # Metadata

    async def refresh(self, topics: Iterable[str] | None = None) -> list[TopicInfo]:
        """Ask for metadata of `topics`, or of all; see `Client.refresh`."""
        self.home.check()
        if topics is None:
            return await self._all_topics.answer(frozenset())
        wanted = frozenset(topics)
        return [each for each in await self._by_name.answer(wanted) if each.name in wanted]

    async def refresh_ids(self, ids: Iterable[Uuid]) -> list[TopicInfo]:
        """Ask for the metadata of topics by their ids; returns them with their error codes.

        Brokers that cannot be asked so are asked for all topics.
        """
        wanted = frozenset(ids)
        return [each for each in await self._by_id.answer(wanted) if each.topic_id in wanted]

    async def _ask_for_all(self, _: frozenset[str]) -> list[TopicInfo]:
        # In v0 no name means every topic; later versions say so by null.
        return await self._metadata(lambda version: None if version else [])

    async def _ask_by_name(self, names: frozenset[str]) -> list[TopicInfo]:
        topics = [MetadataRequestTopic(name=name) for name in sorted(names)]
        return await self._metadata(lambda version: topics)

    async def _ask_by_id(self, ids: frozenset[Uuid]) -> list[TopicInfo]:
        topics = [MetadataRequestTopic(topic_id=each, name=None) for each in sorted(ids)]
        return await self._metadata(lambda version: topics if version >= _BY_ID else None)

    async def _metadata(
        self, topics_in: Callable[[int], list[MetadataRequestTopic] | None]
    ) -> list[TopicInfo]:
        """Ask for the topics that `topics_in` gives for a version, None for all."""
        if self._recovery.asked(self.clock.monotonic()):
            waited = self.settings.metadata_recovery_rebootstrap_trigger_ms
            self._rebootstrap(f"no metadata came for {waited} ms")
        try:
            response, version, is_whole = await self._asked_for_metadata(topics_in)
            if response.error_code == _REBOOTSTRAP and self._goes_back:
                self._rebootstrap("a broker says that this client must begin anew")
                response, version, is_whole = await self._asked_for_metadata(topics_in)
        except KprotoError:
            self._recovery.failed()
            raise
        if response.error_code == _REBOOTSTRAP:  # a wait may mend it, as that of a lost broker
            raise BrokerConnectionError("a broker says that this client must bootstrap anew")
        raise_for_code(response.error_code, "asking for metadata")
        self._recovery.answered()
        before = self.cluster.cluster_id
        topics = self.cluster.update(response, whole=is_whole, version=version)
        self.observer.refreshed()
        self._tell_changes()
        self._heard(topics, is_whole)
        if before is not None and self.cluster.cluster_id not in (None, before):
            self.observer.another_cluster(self.cluster.cluster_id, before)
        return topics

    def _heard(self, topics: Sequence[TopicInfo], is_whole: bool) -> None:
        """Take note of when metadata of these topics came, and forget it of those that are gone."""
        now = self.clock.monotonic()
        told = {topic.name for topic in topics}
        left = self.cluster.topics if is_whole else self._heard_of.keys() - told
        self._heard_of = {name: at for name, at in self._heard_of.items() if name in left}
        self._heard_of.update({topic.name: now for topic in topics if not topic.error_code})
        # Metadata is newer than hints before it.
        self._hinted = {
            place: at for place, at in self._hinted.items() if not is_whole and place[0] not in told
        }

    def _tell_changes(self) -> None:
        if self.observer.tells_changes:
            self.observer.changed(self._changes.heard(self.cluster))

    async def _asked_for_metadata(
        self, topics_in: Callable[[int], list[MetadataRequestTopic] | None]
    ) -> tuple[MetadataResponse, int, bool]:
        """The response, its version, and whether it is about every topic."""
        connection = await self.connection()
        version = connection.version_of(MetadataRequest)
        topics = topics_in(version)
        request = MetadataRequest(
            topics=topics, allow_auto_topic_creation=version <= _ALWAYS_CREATES
        )
        is_whole = topics is None or (version == 0 and not topics)
        return await connection.request(request, version=version), version, is_whole

    def _rebootstrap(self, why: str) -> None:
        """Forget the cluster and begin anew with the servers that were given (KIP-1102)."""
        servers = ", ".join(map(str, self._pool.bootstrap))
        self.observer.rebootstrapped(why, servers)
        self._pool.abort_all()
        self.cluster.begin_anew()
        self._requests.coordinators.forget_all()
        self._choosing.begin_anew()
        self._heard_of.clear()
        self._hinted.clear()

    def is_fresh(self, name: str) -> bool:
        """True when metadata of a topic is known and younger than `metadata_max_age_ms`."""
        age = self.clock.monotonic() - self._heard_of.get(name, float("-inf"))
        return name in self.cluster.topics and age * 1000 < self.settings.metadata_max_age_ms

    def led_by(self, topic: str, partition: int, since: float) -> int | None:
        """The broker that leads a partition, if something that came after `since` names one."""
        heard = self._heard_of.get(topic, float("-inf"))
        if max(heard, self._hinted.get((topic, partition), float("-inf"))) <= since:
            return None
        node = self.cluster.leader(topic, partition)
        return node if node in self.cluster.brokers else None

    def hear_leaders(self, hints: Iterable[LeaderHint], brokers: Iterable[Broker]) -> bool:
        """Take over what a response says of leaders (KIP-951); True when any of it is news.

        `led_by` believes it from now on, so that nobody asks for metadata.
        """
        self.cluster.hear_brokers(brokers)
        news = [hint for hint in hints if self.cluster.hear_leader(hint)]
        self._tell_changes()
        now = self.clock.monotonic()
        self._hinted.update({(hint.topic, hint.partition): now for hint in news})
        return bool(news)

    def heard_since(self, name: str, moment: float) -> bool:
        """True when metadata of a topic came after `moment`, in seconds of the clock."""
        return self._heard_of.get(name, float("-inf")) >= moment

    async def know(self, names: Iterable[str]) -> None:
        """Ask for topics that are not known in one request, where there are several."""
        unknown = {name for name in names if not self.is_fresh(name)}
        if len(unknown) > 1:
            await self.refresh(unknown)

    async def topic(self, name: str) -> TopicInfo:
        """A topic and its partitions; see `Client.topic`."""
        if self.is_fresh(name):
            return self.cluster.topics[name]
        return await self._asking_for(name, lambda found: 0 if found.partitions else _NO_LEADER)

    async def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition; see `Client.leader`."""
        info = await self.topic(topic)
        if partition not in info.partitions:
            info = await self._asked_for(topic)  # partitions may have been added
        if info.error_code:
            raise why_unled([info], topic, partition)
        if partition not in info.partitions:
            raise error_of_code(
                _NO_SUCH_TOPIC,
                f"topic {topic!r} has {len(info.partitions)} partitions, and none is {partition}",
            )
        if not self._is_led(info, partition):
            info = await self._asking_for(
                topic, lambda found: 0 if self._is_led(found, partition) else _NO_LEADER
            )
        return info.partitions[partition].leader

    def _is_led(self, info: TopicInfo, partition: int) -> bool:
        part = info.partitions.get(partition)
        return part is not None and part.leader in self.cluster.brokers

    async def _asked_for(self, name: str) -> TopicInfo:
        for found in await self.refresh([name]):
            if found.name == name:
                return found
        raise ProtocolError(f"the response to a Metadata request for topic {name!r} lacks it")

    async def _asking_for(self, name: str, fault: Callable[[TopicInfo], int]) -> TopicInfo:
        """Ask for a topic until its error code and that of `fault` are 0, or it is too late."""
        limit = self.settings.topic_timeout_ms
        attempts = Attempts(self.settings, limit, self.clock.monotonic())
        while True:
            found = await self._asked_for(name)
            code = found.error_code or fault(found)
            if not code:
                return found
            error = error_of_code(code, f"topic {name!r}")
            if remedy_of(error) is Remedy.FAIL:
                raise error
            if not attempts.failed(error, self.clock.monotonic()):
                waited = f"topic {name!r}; it was asked for over {limit} ms (topic_timeout_ms)"
                if code == _NO_SUCH_TOPIC:
                    waited += "; topics are not created by asking: see Client.create_topics"
                raise error_of_code(code, waited)
            self.observer.retried("metadata", error, attempts, name)
            await self.until(attempts.not_before)

    # Waiting and trying again

    async def until(self, moment: float) -> None:
        """Wait until the clock shows `moment`, in seconds."""
        await self.clock.sleep(moment - self.clock.monotonic())

    async def by(self, moment: float, operation: Awaitable[T], limit_ms: int | None = None) -> T:
        """The result of `operation`; RequestTimeoutError when it is not there by `moment`.

        That names the time there was for it: `limit_ms`, or else `delivery_timeout_ms`.
        """
        try:
            async with self.clock.timeout(max(0.0, moment - self.clock.monotonic())):
                return await operation
        except TimeoutError as error:
            if isinstance(error, KprotoError) or self.clock.monotonic() < moment - TICK_S:
                raise  # it is the operation's own
            limit = f"{self.settings.delivery_timeout_ms} ms (delivery_timeout_ms)"
            if limit_ms not in (None, self.settings.delivery_timeout_ms):
                limit = f"{limit_ms} ms"
            raise RequestTimeoutError(f"no broker answered within {limit}") from None

    async def retrying(
        self,
        operation: Callable[[], Awaitable[T]],
        *,
        responses: bool = True,
        begun: float | None = None,
    ) -> T:
        """Run `operation` again after errors that time mends, up to `delivery_timeout_ms`.

        The time runs from `begun` on, in seconds of the clock; without it from now.

        They are lost connections, time-outs and, with `responses`, the error codes that Kafka
        calls retriable; anything else is raised at once. The last attempt begins at the deadline.
        One that takes longer than what is left of the time is given up: raises the last error, or
        RequestTimeoutError.
        """
        begun = self.clock.monotonic() if begun is None else begun
        attempts = Attempts(self.settings, begun=begun)
        while True:
            try:
                return await self._within(attempts, operation())
            except KprotoError as error:
                answered = isinstance(error, BrokerResponseError)
                if remedy_of(error) is Remedy.FAIL or (answered and not responses):
                    raise
                if not attempts.failed(error, self.clock.monotonic()):
                    raise
                self._is_suspect = self._is_suspect or remedy_of(error) is not Remedy.RETRY
                self.observer.retried("call", error, attempts)
            await self.until(attempts.not_before)

    async def _within(self, attempts: Attempts, operation: Awaitable[T]) -> T:
        """The result of an attempt; the last error, or RequestTimeoutError, when it is too late."""
        ends_at = attempts.ends_at(self.clock.monotonic())
        try:
            return await self.by(ends_at, operation)
        except RequestTimeoutError as error:
            if self.clock.monotonic() < ends_at - TICK_S:
                raise  # it is the operation's own
            raise attempts.error or error from None

    async def at_leaders(
        self,
        partitions: Iterable[TopicPartition],
        ask: Callable[[int, list[TopicPartition]], Coroutine[Any, Any, T]],
    ) -> list[T]:
        """What `ask(node, its partitions)` returns for each leader, asked side by side.

        After an error that time mends, leaders are looked for anew and all are asked again, up to
        `delivery_timeout_ms`. Raises what `leader` raises, and the first error of `ask`.
        """
        partitions = list(partitions)
        attempts = Attempts(self.settings, begun=self.clock.monotonic())
        while True:
            error: KprotoError
            try:
                by_leader = await self._within(attempts, self._by_leader(partitions))
            except (BrokerConnectionError, RequestTimeoutError) as lost:
                error = lost
            else:
                asking = gather_all([ask(node, its) for node, its in by_leader.items()])
                try:
                    return await self._within(attempts, asking)
                except KprotoError as failed:
                    self.cluster.forget(topic for topic, _ in partitions)
                    error = failed
            if remedy_of(error) is Remedy.FAIL:
                raise error
            if not attempts.failed(error, self.clock.monotonic()):
                raise error
            self.observer.retried("leaders", error, attempts)
            await self.until(attempts.not_before)

    async def _by_leader(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[int, list[TopicPartition]]:
        await self.know(topic for topic, _ in partitions)
        found: dict[int, list[TopicPartition]] = {}
        for place in partitions:
            found.setdefault(await self.leader(*place), []).append(place)
        return found


def _check(request: object, timeout_ms: int | None) -> None:
    """Raise ConfigurationError for what cannot be sent."""
    if not isinstance(request, Request):
        raise ConfigurationError(f"{request!r:.80} is no request of kproto.messages")
    if timeout_ms is not None:
        check_whole_number("timeout_ms", timeout_ms, 1)
