"""`ClusterView`: the cluster as producer, consumer and admin see it.

Sends any request to whoever answers it, knows topics and leaders, and asks again for what has
grown old. What a response means is its caller's; what to do about an error is `retry`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, TypeVar

from ...clock import Clock
from ...messages.base import Request, Response
from ...messages.find_coordinator_request import FindCoordinatorRequest
from ...messages.metadata_request import MetadataRequest, MetadataRequestTopic
from ...protocol.error_codes import code_of, error_of_code
from ...wire.checks import check_whole_number
from ...wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    ConfigurationError,
    KprotoError,
    ProtocolError,
    RequestTimeoutError,
)
from ..connections.broker_connection import BrokerConnection
from ..connections.pool import ConnectionPool
from ..observing.observer import Observer
from ..retry import TICK_S, Attempts, Remedy, remedy_of
from ..settings import Address, ClientSettings
from .changes import Changes
from .coordinators import Coordinators, coordinator_of, find_coordinator_request
from .metadata import Broker, Cluster, LeaderHint, TopicInfo, TopicPartition, why_unled
from .response_codes import says_it_is_no_controller, says_it_is_no_coordinator
from .routing import (
    COORDINATORS,
    CoordinatorType,
    Route,
    coordinator_keys,
    merged,
    named_broker,
    route_of,
)

__all__ = ["ClusterView"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")

_NO_SUCH_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")
_NO_LEADER: Final = code_of("LEADER_NOT_AVAILABLE")

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
        self._coordinators = Coordinators()
        self._heard_of: dict[str, float] = {}  # when metadata of a topic came
        self._hinted: dict[TopicPartition, float] = {}  # when who leads it came in another response
        self._refreshing: dict[frozenset[str] | None, asyncio.Task[list[TopicInfo]]] = {}
        self._is_suspect = False  # a broker was lost, or said that it is not the controller

    async def close(self) -> None:
        """Close every connection; what waits and what comes later gets an error."""
        await self._pool.close()
        # Without connections they end at once; cancelled, they would take along who waits for them.
        await asyncio.gather(*self._refreshing.values(), return_exceptions=True)

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
        if not isinstance(request, Request):
            raise ConfigurationError(f"{request!r:.80} is no request of kproto.messages")
        if timeout_ms is not None:
            check_whole_number("timeout_ms", timeout_ms, 1)
        if self._is_suspect:
            await self._ask_for_brokers()
        route = route_of(request) if broker is None else Route.NAMED
        try:
            if route in COORDINATORS:
                return await self._at_coordinator(route, request, version, timeout_ms)
            if route is Route.EVERY_BROKER:
                return await self._at_every_broker(request, version, timeout_ms)
            connection = await self.connection(
                self._node_for(route, request) if broker is None else broker
            )
            response = await connection.request(request, version=version, timeout_ms=timeout_ms)
        except (BrokerConnectionError, RequestTimeoutError):
            self._is_suspect = True
            raise
        if route is Route.CONTROLLER and says_it_is_no_controller(response):
            self._is_suspect = True
        return response

    async def _ask_for_brokers(self) -> None:
        """Who the brokers are, where, and which of them is the controller."""
        try:
            await self.refresh([])
        except KprotoError:
            return  # asked again by the next request
        self._is_suspect = False

    async def connection_for(self, request: Request[R]) -> BrokerConnection:
        """A connection to who answers `request`, for one that is made to fit the version."""
        if self._is_suspect:
            await self._ask_for_brokers()
        return await self.connection(self._node_for(route_of(request), request))

    def _node_for(self, route: Route, request: Request[R]) -> int | None:
        """The node that answers; None when any does. Raises ConfigurationError."""
        if route is Route.CONTROLLER and self.cluster.controller in self.cluster.brokers:
            return self.cluster.controller
        if route is Route.RESOURCES:
            return named_broker(request)
        if route in (Route.LEADER, Route.NAMED) and len(self.cluster.brokers) > 1:
            raise ConfigurationError(
                f"{type(request).__name__} is answered by {route.value}; name it with broker="
            )
        return None

    async def connection(
        self, broker: int | None = None, *, owner: object = None
    ) -> BrokerConnection:
        """The connection to the broker of that node id, or to any; see `Client.connection`."""
        if broker is None:
            return await self._pool.to_any(self.cluster.brokers.values())
        if broker not in self.cluster.brokers:
            await self.refresh([])
        if broker not in self.cluster.brokers:
            known = ", ".join(map(str, sorted(self.cluster.brokers))) or "none"
            raise ConfigurationError(f"the cluster has no broker {broker}; it has {known}")
        return await self.connection_to(broker, owner=owner)

    async def connection_to(self, node: int, *, owner: object = None) -> BrokerConnection:
        """The connection to a node that metadata named. Raises BrokerConnectionError, also when
        the node has left since: another will lead what it led."""
        address = self.cluster.brokers.get(node)
        if address is None:
            raise BrokerConnectionError(f"broker {node} has left the cluster")
        return await self._pool.to(address, owner)

    def connection_at_hand(self, node: int) -> BrokerConnection | None:
        """The connection that `connection_to` would give, if it is open."""
        address = self.cluster.brokers.get(node)
        return None if address is None else self._pool.at_hand(address)

    async def release(self, owner: object) -> None:
        """Close the connections that `owner` has for himself."""
        await self._pool.release(owner)

    def abort(self, owner: object) -> None:
        """The same, for who cannot wait."""
        self._pool.abort(owner)

    async def _at_every_broker(
        self, request: Request[R], version: int | None, timeout_ms: int | None
    ) -> R:
        """Ask all side by side. Raises the first error: an answer that lacks a broker is none."""
        await self.refresh([])

        async def ask(node: int) -> R:
            connection = await self.connection_to(node)
            return await connection.request(request, version=version, timeout_ms=timeout_ms)

        return merged(request, await _all_of(map(ask, sorted(self.cluster.brokers))))

    # Coordinators

    async def _at_coordinator(
        self, route: Route, request: Request[R], version: int | None, timeout_ms: int | None
    ) -> R:
        """Ask the coordinator, and forget it where it says or shows that it is another."""
        kind = COORDINATORS[route].type
        keys = coordinator_keys(request)
        what = f"{type(request).__name__} names"
        if not keys:
            raise ConfigurationError(f"{what} no {kind.name.lower()} to route it by")
        if len(keys) > 1 and len(self.cluster.brokers) > 1:
            raise ConfigurationError(
                f"{what} {len(keys)} of them, whose coordinators may be several brokers; ask for "
                "one at a time, or name the broker with broker="
            )
        node = await self.coordinator(kind, keys[0])
        try:
            connection = await self.connection_to(node)
            response = await connection.request(request, version=version, timeout_ms=timeout_ms)
        except (BrokerConnectionError, RequestTimeoutError):
            self._coordinators.forget(kind, keys)
            raise
        if says_it_is_no_coordinator(response):
            self._coordinators.forget(kind, keys)
        return response

    async def coordinator(self, kind: CoordinatorType, key: str) -> int:
        """The node that coordinates the group or transactional id `key`.

        It is asked for while it is not there yet. Raises BrokerResponseError.
        """
        known = self._coordinators.node(kind, key)
        if known is not None and known in self.cluster.brokers:
            return known
        node = await self.retrying(lambda: self._find_coordinator(kind, key))
        self._coordinators.learn(kind, key, node)
        return node

    async def _find_coordinator(self, kind: CoordinatorType, key: str) -> int:
        connection = await self.connection()
        version = connection.version_of(FindCoordinatorRequest)
        request = find_coordinator_request(kind, key, version)
        answer = await connection.request(request, version=version)
        return coordinator_of(kind, key, answer, version)

    # Metadata

    async def refresh(self, topics: Iterable[str] | None = None) -> list[TopicInfo]:
        """Ask for metadata of `topics`, or of all; see `Client.refresh`."""
        wanted = None if topics is None else frozenset(topics)
        task = self._refreshing.get(wanted)
        if task is None:
            task = asyncio.create_task(self._refresh(wanted))
            self._refreshing[wanted] = task
            task.add_done_callback(lambda done: self._refreshed(wanted, done))
        return await asyncio.shield(task)

    def _refreshed(
        self, wanted: frozenset[str] | None, task: asyncio.Task[list[TopicInfo]]
    ) -> None:
        self._refreshing.pop(wanted, None)
        if not task.cancelled():
            task.exception()  # whoever waited has it; when nobody does any more, it is seen here

    async def _refresh(self, wanted: frozenset[str] | None) -> list[TopicInfo]:
        connection = await self.connection()
        version = connection.version_of(MetadataRequest)
        # In v0 no name means every topic; later versions say so by null.
        named = [MetadataRequestTopic(name=name) for name in sorted(wanted or ())]
        request = MetadataRequest(
            topics=None if wanted is None and version > 0 else named,
            allow_auto_topic_creation=version <= _ALWAYS_CREATES,
        )
        response = await connection.request(request, version=version)
        topics = self.cluster.update(response, whole=wanted is None)
        self.observer.refreshed()
        self._tell_changes()
        now = self.clock.monotonic()
        self._heard_of.update({topic.name: now for topic in topics if not topic.error_code})
        return topics

    def _tell_changes(self) -> None:
        if self.observer.tells_changes:
            self.observer.changed(self._changes.heard(self.cluster))

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

    async def by(self, moment: float, operation: Awaitable[T]) -> T:
        """The result of `operation`; RequestTimeoutError when it is not there by `moment`."""
        try:
            async with self.clock.timeout(max(0.0, moment - self.clock.monotonic())):
                return await operation
        except TimeoutError as error:
            if isinstance(error, KprotoError) or self.clock.monotonic() < moment - TICK_S:
                raise  # it is the operation's own
            limit = self.settings.delivery_timeout_ms
            raise RequestTimeoutError(
                f"no broker answered within {limit} ms (delivery_timeout_ms)"
            ) from None

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
                asking = _all_of([ask(node, its) for node, its in by_leader.items()])
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


async def _all_of(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Their results, side by side. After the first error none of them is left running."""
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
