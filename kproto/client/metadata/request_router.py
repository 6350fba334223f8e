"""Sends any request to those who answer it: what is for several brokers in pieces, side by side.

Who they are says the table of `routing`, what is whose that of `splitting`. Where a broker says or
shows that it is no leader, coordinator or controller, what was known is dropped, so that the next
call finds the right one. Nothing is tried again here.
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
from .fan_out import SPLITS, Element, Split, elements_of, merged, split
from .response_hints import (
    hints_of,
    says_it_is_no_controller,
    says_it_is_no_coordinator,
    unled_topics,
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


#: Where it is the caller's fault that there is no such broker.
_NAMED_BY_CALLER: Final = (Route.NAMED, Route.RESOURCES)

#: Where metadata of topics says who answers.
_BY_PARTITION: Final = (Route.LEADER, Route.REPLICAS)


class BrokerAnswer(NamedTuple, Generic[R]):
    """What one broker was asked and said: `response`, or the `error` in its place.

    `broker` is its node id, None where any broker was asked; `request` the piece that it got.
    """

    broker: int | None
    request: Request[R]
    response: R | None
    error: KprotoError | None


class View(Protocol):
    """What is needed of the view of the cluster."""

    cluster: Cluster

    async def connection(self, broker: int | None = None) -> BrokerConnection:
        """The connection to a node, or to any."""
        ...

    async def connection_to(self, node: int) -> BrokerConnection:
        """The connection to a node that metadata named."""
        ...

    async def refresh(self, topics: Iterable[str] | None = None) -> list[TopicInfo]:
        """Ask for metadata."""
        ...

    async def refresh_ids(self, ids: Iterable[Uuid]) -> list[TopicInfo]:
        """Ask for the metadata of topics by their ids."""
        ...

    async def retrying(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Run it again after errors that time mends."""
        ...

    def is_fresh(self, name: str) -> bool:
        """True when metadata of a topic need not be asked for."""
        ...

    def hear_leaders(self, hints: Iterable[LeaderHint], brokers: Iterable[Broker]) -> bool:
        """Take over what a response says of leaders."""
        ...

    def suspect(self) -> None:
        """Brokers or the controller may have changed."""
        ...

    async def clear_suspicion(self) -> None:
        """Ask who the brokers are, if they may have changed."""
        ...


class RequestRouter:
    """The requests of a client, whatever they are."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.coordinators = Coordinators()

    async def request(
        self,
        request: Request[R],
        broker: int | None,
        version: int | None,
        timeout_ms: int | None,
    ) -> R:
        """The answer of all who were asked. Raises the first error, once all have answered."""
        answers = await self.by_broker(request, broker, version, timeout_ms)
        responses = []
        for answer in answers:
            if answer.error is not None:
                if len(answers) > 1:
                    answer.error.add_note(_who_failed(answer, answers))
                raise answer.error
            assert answer.response is not None, "it is one or the other"
            responses.append(answer.response)
        return merged(request, SPLITS.get(type(request).__name__), responses)

    async def by_broker(
        self,
        request: Request[R],
        broker: int | None,
        version: int | None,
        timeout_ms: int | None,
    ) -> list[BrokerAnswer[R]]:
        """What each broker says that answers a part of `request`."""
        await self._view.clear_suspicion()
        route = route_of(request) if broker is None else Route.NAMED
        pieces: dict[int | None, Request[R]] = {broker: request}
        if broker is None:
            pieces = await self._pieces(route, request)

        async def ask(node: int | None, piece: Request[R]) -> BrokerAnswer[R]:
            try:
                response = await self._ask(route, node, piece, version, timeout_ms)
            except KprotoError as error:
                return BrokerAnswer(node, piece, None, error)
            return BrokerAnswer(node, piece, response, None)

        if len(pieces) == 1:
            ((node, piece),) = pieces.items()
            return [await ask(node, piece)]
        return await gather_all(ask(node, piece) for node, piece in pieces.items())

    async def _ask(
        self,
        route: Route,
        node: int | None,
        request: Request[R],
        version: int | None,
        timeout_ms: int | None,
    ) -> R:
        """Ask one broker. What its answer or its silence disproves is not known any more."""
        try:
            if route in _NAMED_BY_CALLER or node is None:
                connection = await self._view.connection(node)
            else:
                connection = await self._view.connection_to(node)
            response = await connection.request(request, version=version, timeout_ms=timeout_ms)
        except (BrokerConnectionError, RequestTimeoutError):
            self._view.suspect()
            self._forget(route, request)
            raise
        if route in COORDINATORS and says_it_is_no_coordinator(response):
            self._forget(route, request)
        elif route is Route.CONTROLLER and says_it_is_no_controller(response):
            self._view.suspect()
        elif route in _BY_PARTITION:
            self._heed(response, SPLITS[type(request).__name__])
        return response

    def _forget(self, route: Route, request: Request[R]) -> None:
        """Whoever was asked is gone, or is not the one to ask."""
        if route in COORDINATORS:
            self.coordinators.forget(COORDINATORS[route].type, coordinator_keys(request))
        elif route in _BY_PARTITION:
            row = SPLITS[type(request).__name__]
            topics = (self._topic(row, element) for element in elements_of(request, row))
            self._view.cluster.forget(name for name, _ in topics if name)

    def _heed(self, response: Response, row: Split) -> None:
        """What the brokers that were asked for partitions say of their leaders."""
        cluster = self._view.cluster
        hints, brokers = hints_of(response, row, cluster)
        if hints:
            self._view.hear_leaders(hints, brokers)
        cluster.forget(unled_topics(response, row, cluster))

    # Who is asked

    async def _pieces(self, route: Route, request: Request[R]) -> dict[int | None, Request[R]]:
        """What goes to whom; None for any broker. Raises ConfigurationError."""
        cluster = self._view.cluster
        if route is Route.CONTROLLER and cluster.controller in cluster.brokers:
            return {cluster.controller: request}
        if route is Route.EVERY_BROKER:
            await self._view.refresh([])
            return dict.fromkeys(sorted(cluster.brokers), request)
        name = type(request).__name__
        row = SPLITS.get(name)
        elements = [] if row is None else elements_of(request, row)
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
                    f"{name} is answered by {route.value}; name it with broker="
                )
            owners = await self._leaders_or_replicas(route, row, elements)
        else:
            return {None: request}
        if row is None or not elements:
            if row is not None and len(cluster.brokers) > 1:
                split(request, row, owners)  # raises where one broker alone knows
            return {next((its[0] for its in owners if its), None): request}
        # Any broker says what is wrong with what nobody is known to answer for.
        others = next((its for its in owners if its), ())[:1]
        if not others:
            return {None: request}
        pieces = split(request, row, [its or others for its in owners])
        return {node: piece for node, piece in pieces.items()}  # noqa: C416 - another type of key

    async def _coordinators_for(
        self, route: Route, request: Request[R], row: Split | None, elements: Sequence[Element]
    ) -> list[tuple[int, ...]]:
        """The coordinator of each element, or that of all of the request."""
        kind = COORDINATORS[route].type
        keys = coordinator_keys(request)
        if not keys:
            raise ConfigurationError(
                f"{type(request).__name__} names no {kind.name.lower()} to route it by"
            )
        if len(self._view.cluster.brokers) == 1:
            keys = keys[:1]  # it is that broker, or none yet
        found = await self.find(kind, keys)
        if row is None or not elements:
            return [(found[keys[0]],)]
        level = row.request_levels[0]
        of_each = [found.get(level.identities(element)[0][1]) for (element,) in elements]
        return [() if node is None else (node,) for node in of_each]

    async def _leaders_or_replicas(
        self, route: Route, row: Split, elements: Sequence[Element]
    ) -> list[tuple[int, ...]]:
        """Who leads each partition, or who has it; none where that cannot be known."""
        view, cluster = self._view, self._view.cluster
        partition = row.request_levels[-1]

        def owners() -> list[tuple[int, ...]]:
            found = []
            for element in elements:
                name, _ = self._topic(row, element)
                info = cluster.topics.get(name) if name and view.is_fresh(name) else None
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

    def _topic(self, row: Split, element: Element) -> tuple[str | None, Uuid | None]:
        """The topic that a partition is of: its name, as far as it is known, and its id."""
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
        """The nodes that coordinate these groups or transactional ids.

        Those that are not known are asked for together, while they are not there yet. Raises
        BrokerResponseError for the first that cannot be found.
        """
        nodes = self._known_of(kind, keys)
        if len(nodes) == len(set(keys)):
            return nodes
        return await self._view.retrying(lambda: self._find(kind, keys))

    def _known_of(self, kind: CoordinatorType, keys: Sequence[str]) -> dict[str, int]:
        known = ((key, self._known(kind, key)) for key in keys)
        return {key: node for key, node in known if node is not None}

    def _known(self, kind: CoordinatorType, key: str) -> int | None:
        node = self.coordinators.node(kind, key)
        return node if node in self._view.cluster.brokers else None

    async def _find(self, kind: CoordinatorType, keys: Sequence[str]) -> dict[str, int]:
        """Ask for those that are not known; what is found stays, whatever becomes of the others.

        Another call may forget some of it before this one is done.
        """
        nodes = self._known_of(kind, keys)
        missing = [key for key in dict.fromkeys(keys) if key not in nodes]
        if not missing:
            return nodes
        connection = await self._view.connection()
        version = connection.version_of(FindCoordinatorRequest)

        async def ask(request: FindCoordinatorRequest) -> dict[str, int | BrokerResponseError]:
            answer = await connection.request(request, version=version)
            return coordinators_in(kind, request, answer)

        requests = find_coordinator_requests(kind, missing, version)
        errors = []
        for found in await gather_all(map(ask, requests)):
            for key, node in found.items():
                if isinstance(node, BrokerResponseError):
                    errors.append(node)
                else:
                    self.coordinators.learn(kind, key, node)
                    nodes[key] = node
        if errors:
            raise errors[0]
        if any(self._known(kind, key) is None for key in missing):
            await self._view.refresh([])  # it is a broker that has just come
        return nodes


def _who_failed(failed: BrokerAnswer[Any], answers: Sequence[BrokerAnswer[Any]]) -> str:
    others = [str(each.broker) for each in answers if each.error is None]
    told = f"; those that answered: {', '.join(others)}" if others else ""
    return (
        f"that was broker {failed.broker} of {len(answers)}{told}. "
        "`request_by_broker` gives the answer of each."
    )
