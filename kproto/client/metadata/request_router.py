"""`RequestRouter`: sends a request to the brokers that answer it.

`routing` determines the brokers, and `fan_out` splits a request for several brokers; the pieces are
sent concurrently. If a broker is not the leader, coordinator or controller any more, the router
drops the outdated metadata, so that the next call finds the right broker. The router retries no
request except FindCoordinator.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from ...messages.base import Request, Response
from ...messages.find_coordinator_request import FindCoordinatorRequest
from ...wire.errors import (
    BrokerConnectionError,
    BrokerResponseError,
    ConfigurationError,
    KprotoError,
    RequestTimeoutError,
)
from ...wire.uuid import Uuid
from ..core.gather import gather_all
from ..network.connection import BrokerConnection
from .cluster import Broker, Cluster, LeaderHint, TopicInfo
from .coordinators import Coordinators, coordinators_in, find_coordinator_requests
from .fan_out import SPLIT_RULES, Element, SplitRule, merged, request_elements, split
from .response_hints import (
    hints_of,
    is_not_controller,
    is_not_coordinator,
    topics_with_moved_leaders,
)
from .routing import (
    COORDINATORS,
    CoordinatorType,
    Route,
    coordinator_keys,
    named_broker,
    route_of,
)

__all__ = ["BrokerAnswer", "RequestRouter"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")


#: Routes whose brokers the caller names: a broker that does not exist is a ConfigurationError.
_NAMED_BY_CALLER: Final = (Route.NAMED, Route.RESOURCES)

#: Routes that need metadata of topics.
_BY_PARTITION: Final = (Route.LEADER, Route.REPLICAS)


class BrokerAnswer(NamedTuple, Generic[R]):
    """The answer of one broker: its `response`, or an `error`.

    `broker` is the node id of the broker, None if any broker could answer; `request` is the piece
    of the request that was sent to it.
    """

    broker: int | None
    request: Request[R]
    response: R | None
    error: KprotoError | None


class RouterClusterView(Protocol):
    """The part of the cluster view that the router uses."""

    cluster: Cluster

    async def connection(self, broker: int | None = None) -> BrokerConnection:
        """Returns the connection to a node, or to any broker."""
        ...

    async def connection_to(self, node: int) -> BrokerConnection:
        """Returns the connection to a node of the metadata."""
        ...

    async def refresh(self, topics: Iterable[str] | None = None) -> list[TopicInfo]:
        """Requests metadata of `topics`, by default of all topics; returns the metadata."""
        ...

    async def refresh_ids(self, ids: Iterable[Uuid]) -> list[TopicInfo]:
        """Requests metadata of topics by their ids; returns the metadata."""
        ...

    async def retrying(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Retries an operation after retriable errors."""
        ...

    async def within(self, limit_ms: int | None, operation: Awaitable[T]) -> T:
        """Returns the result of `operation`, or raises RequestTimeoutError after `limit_ms`."""
        ...

    def has_current_metadata(self, name: str) -> bool:
        """Returns True if metadata of a topic is known and not too old."""
        ...

    def update_leaders(self, hints: Iterable[LeaderHint], brokers: Iterable[Broker]) -> bool:
        """Applies the leaders that a response names; returns True if a leader is new."""
        ...

    def invalidate_brokers(self) -> None:
        """Marks the brokers and the controller as outdated."""
        ...

    async def refresh_invalid_brokers(self) -> None:
        """Refreshes the brokers if `invalidate_brokers` has marked them as outdated."""
        ...


class RequestRouter:
    """Routes the requests of `ClusterView.request`; finds coordinators for the whole client."""

    def __init__(self, view: RouterClusterView) -> None:
        self._view = view
        self.coordinators = Coordinators()

    async def request(
        self,
        request: Request[R],
        broker: int | None,
        version: int | None,
        timeout_ms: int | None,
    ) -> R:
        """Sends `request` to all brokers that must answer it, and returns the merged response.

        If brokers fail, waits until all brokers have answered or failed, and raises the first
        error.
        """
        answers = await self.by_broker(request, broker, version, timeout_ms)
        responses = []
        for answer in answers:
            if answer.error is not None:
                if len(answers) > 1:
                    answer.error.add_note(_failure_note(answer, answers))
                raise answer.error
            assert answer.response is not None, "it is one or the other"
            responses.append(answer.response)
        return merged(request, SPLIT_RULES.get(type(request).__name__), responses)

    async def by_broker(
        self,
        request: Request[R],
        broker: int | None,
        version: int | None,
        timeout_ms: int | None,
        within_ms: int | None = None,
    ) -> list[BrokerAnswer[R]]:
        """Sends each broker its part of `request`; returns the answers of the brokers.

        `within_ms` is the time for each broker, with the time to connect to it.
        """
        await self._view.refresh_invalid_brokers()
        route = route_of(request) if broker is None else Route.NAMED
        pieces: dict[int | None, Request[R]] = {broker: request}
        if broker is None:
            pieces = await self._pieces(route, request)

        async def send(node: int | None, piece: Request[R]) -> BrokerAnswer[R]:
            sending = self._send(route, node, piece, version, timeout_ms)
            try:
                response = await self._view.within(within_ms, sending)
            except KprotoError as error:
                return BrokerAnswer(node, piece, None, error)
            return BrokerAnswer(node, piece, response, None)

        if len(pieces) == 1:
            ((node, piece),) = pieces.items()
            return [await send(node, piece)]
        return await gather_all(send(node, piece) for node, piece in pieces.items())

    async def _send(
        self,
        route: Route,
        node: int | None,
        request: Request[R],
        version: int | None,
        timeout_ms: int | None,
    ) -> R:
        """Sends a request to one broker; forgets leaders and coordinators that are outdated.

        A leader or coordinator is outdated if the response says so, or if the connection is lost or
        times out.
        """
        try:
            connection = await self._connection(route, node)
            response = await connection.request(request, version=version, timeout_ms=timeout_ms)
        except (BrokerConnectionError, RequestTimeoutError):
            self._view.invalidate_brokers()
            self._forget(route, request)
            raise
        if route in COORDINATORS and is_not_coordinator(response):
            self._forget(route, request)
        elif route is Route.CONTROLLER and is_not_controller(response):
            self._view.invalidate_brokers()
        elif route in _BY_PARTITION:
            self._apply_hints(response, SPLIT_RULES[type(request).__name__])
        return response

    async def _connection(self, route: Route, node: int | None) -> BrokerConnection:
        """Returns the connection for a request; its error tells that nothing was written."""
        try:
            if route in _NAMED_BY_CALLER or node is None:
                return await self._view.connection(node)
            return await self._view.connection_to(node)
        except BrokerConnectionError as error:
            error.never_written = True
            raise

    def _forget(self, route: Route, request: Request[R]) -> None:
        """Drops the possibly outdated coordinators or topic metadata that routed `request`."""
        if route in COORDINATORS:
            self.coordinators.forget(COORDINATORS[route].type, coordinator_keys(request))
        elif route in _BY_PARTITION:
            row = SPLIT_RULES[type(request).__name__]
            topics = (self._topic(row, element) for element in request_elements(request, row))
            self._view.cluster.forget(name for name, _ in topics if name)

    def _apply_hints(self, response: Response, row: SplitRule) -> None:
        """Applies the leaders that a response names; drops topics whose leaders are outdated."""
        cluster = self._view.cluster
        hints, brokers = hints_of(response, row, cluster)
        if hints:
            self._view.update_leaders(hints, brokers)
        cluster.forget(topics_with_moved_leaders(response, row, cluster))

    # Routing

    async def _pieces(self, route: Route, request: Request[R]) -> dict[int | None, Request[R]]:
        """Returns the part of a request for each broker, by node id; the key None is any broker.

        Raises ConfigurationError if the brokers cannot be determined, or if the request cannot be
        split.
        """
        cluster = self._view.cluster
        if route is Route.CONTROLLER and cluster.controller in cluster.brokers:
            return {cluster.controller: request}
        if route is Route.EVERY_BROKER:
            await self._view.refresh([])
            return dict.fromkeys(sorted(cluster.brokers), request)
        name = type(request).__name__
        row = SPLIT_RULES.get(name)
        elements = [] if row is None else request_elements(request, row)
        if route in COORDINATORS:
            owners = await self._coordinators_for(route, request, row, elements)
        elif route is Route.RESOURCES:
            named = [named_broker(resource) for (resource,) in elements]
            owners = [() if node is None else (node,) for node in named]
        elif route in (*_BY_PARTITION, Route.NAMED):
            if not cluster.brokers:
                await self._view.refresh([])
            if len(cluster.brokers) <= 1:
                return {None: request}
            if row is None:
                raise ConfigurationError(
                    f"{name} is answered by {route.value}: pass its node id as broker="
                )
            owners = await self._leaders_or_replicas(route, row, elements)
        else:
            return {None: request}
        if row is None or not elements:
            if row is not None and len(cluster.brokers) > 1:
                split(request, row, owners)  # raises if one broker alone can answer
            return {next((its[0] for its in owners if its), None): request}
        # If no broker is known for an element, any broker returns the right error.
        others = next((its for its in owners if its), ())[:1]
        if not others:
            return {None: request}
        pieces = split(request, row, [its or others for its in owners])
        return {node: piece for node, piece in pieces.items()}  # noqa: C416 - another type of key

    async def _coordinators_for(
        self, route: Route, request: Request[R], row: SplitRule | None, elements: Sequence[Element]
    ) -> list[tuple[int, ...]]:
        """Returns, for each of `elements`, a tuple with the node id of its coordinator.

        The tuple is empty if the coordinator is unknown. Without elements, returns one tuple: the
        coordinator of the first key in the request. Raises ConfigurationError if the request has no
        keys.
        """
        kind = COORDINATORS[route].type
        keys = coordinator_keys(request)
        if not keys:
            raise ConfigurationError(
                f"{type(request).__name__} names no {kind.name.lower()}, so it has no coordinator"
            )
        if len(self._view.cluster.brokers) == 1:
            keys = keys[:1]  # that broker coordinates all of them
        found = await self.find(kind, keys)
        if row is None or not elements:
            return [(found[keys[0]],)]
        level = row.request_levels[0]
        of_each = [found.get(level.identities(element)[0][1]) for (element,) in elements]
        return [() if node is None else (node,) for node in of_each]

    async def _leaders_or_replicas(
        self, route: Route, row: SplitRule, elements: Sequence[Element]
    ) -> list[tuple[int, ...]]:
        """Returns the node ids that answer for each partition: its leader, or all of its replicas.

        `route` selects leader or replicas. The node ids of a partition are empty if metadata has
        none.
        """
        view, cluster = self._view, self._view.cluster
        partition = row.request_levels[-1]

        def owners() -> list[tuple[int, ...]]:
            found = []
            for element in elements:
                name, _ = self._topic(row, element)
                info = (
                    cluster.topics.get(name) if name and view.has_current_metadata(name) else None
                )
                at = partition.identities(element[-1])[0][1]
                part = None if info is None else info.partitions.get(at)
                nodes: tuple[int, ...] = ()
                if part is not None:
                    nodes = (part.leader,) if route is Route.LEADER else part.replicas
                found.append(tuple(node for node in nodes if node in cluster.brokers))
            return found

        known = owners()
        topics = [
            self._topic(row, each) for each, its in zip(elements, known, strict=True) if not its
        ]
        names = {name for name, _ in topics if name}
        ids = {topic_id for name, topic_id in topics if not name and topic_id}
        if names:
            await view.refresh(names)
        if ids:
            await view.refresh_ids(ids)
        return owners() if topics else known

    def _topic(self, row: SplitRule, element: Element) -> tuple[str | None, Uuid | None]:
        """Returns the name and the id of a partition's topic, each None if it is unknown."""
        name: str | None = None
        topic_id: Uuid | None = None
        for _, each in row.request_levels[-2].identities(element[-2]):
            if isinstance(each, str):
                name = each
            else:
                topic_id = each
        if not name and topic_id is not None:
            name = self._view.cluster.topic_name(topic_id)
        return name or None, topic_id

    # Coordinators

    async def find(self, kind: CoordinatorType, keys: Sequence[str]) -> dict[str, int]:
        """Returns the node ids of coordinators, by key: a group id or a transactional id.

        Looks up all unknown coordinators together; retries while a coordinator is not available.
        Raises BrokerResponseError for the first group or id whose coordinator cannot be found.
        """
        nodes = self._known_coordinators(kind, keys)
        if len(nodes) == len(set(keys)):
            return nodes
        return await self._view.retrying(lambda: self._find(kind, keys))

    def _known_coordinators(self, kind: CoordinatorType, keys: Sequence[str]) -> dict[str, int]:
        known = ((key, self._known_coordinator(kind, key)) for key in keys)
        return {key: node for key, node in known if node is not None}

    def _known_coordinator(self, kind: CoordinatorType, key: str) -> int | None:
        node = self.coordinators.node(kind, key)
        return node if node in self._view.cluster.brokers else None

    async def _find(self, kind: CoordinatorType, keys: Sequence[str]) -> dict[str, int]:
        """Requests the unknown coordinators; returns the node ids of all coordinators, by key.

        Stores the coordinators that are found, and then raises the first error, if any. A
        concurrent call may remove a stored coordinator before this call returns.
        """
        nodes = self._known_coordinators(kind, keys)
        missing = [key for key in dict.fromkeys(keys) if key not in nodes]
        if not missing:
            return nodes
        connection = await self._view.connection()
        version = connection.version_of(FindCoordinatorRequest)

        async def send(request: FindCoordinatorRequest) -> dict[str, int | BrokerResponseError]:
            answer = await connection.request(request, version=version)
            return coordinators_in(kind, request, answer)

        requests = find_coordinator_requests(kind, missing, version)
        errors = []
        for found in await gather_all(map(send, requests)):
            for key, node in found.items():
                if isinstance(node, BrokerResponseError):
                    errors.append(node)
                else:
                    self.coordinators.store(kind, key, node)
                    nodes[key] = node
        if errors:
            raise errors[0]
        if any(self._known_coordinator(kind, key) is None for key in missing):
            await self._view.refresh([])  # the coordinator has just joined the cluster
        return nodes


def _failure_note(failed: BrokerAnswer[Any], answers: Sequence[BrokerAnswer[Any]]) -> str:
    others = [str(each.broker) for each in answers if each.error is None]
    answered = f": {', '.join(others)}" if others else ""
    return (
        f"the error is of broker {failed.broker}; "
        f"{len(others)} of {len(answers)} brokers answered{answered}. "
        "`request_by_broker` returns the answer of each."
    )
