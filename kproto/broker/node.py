"""One node: where it listens, and the sessions of the clients that are connected to it.

Knows listeners and sessions; what is answered is handed to it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

from ..clock import Clock
from ..protocol.message_classes import MessageClasses
from ..protocol.sasl.unsecured_jws import unsecured_validator
from ..wire.errors import ConfigurationError
from .acceptor import Acceptor, Encryption, address_of, listen, listen_again, reserve
from .cluster_state import ClusterState, Endpoint
from .context import Context
from .faults import Controls
from .fetch_sessions import FetchSessionCache
from .listeners import Listener
from .registry import Api, served_apis
from .releases import advertised_versions
from .sasl_authenticator import SaslAuthenticator
from .security.sasl_session import CredentialStore, SaslSession
from .security.server_tls import server_context
from .session import Session
from .settings import BrokerSettings

__all__ = ["Node"]

#: Threads in which a node validates bearer tokens: the most that asyncio takes for its own.
_VALIDATORS: Final = 32


@dataclass(slots=True)
class _Place:
    """A listener and where it is; with an acceptor while it listens, or a port that is kept."""

    listener: Listener
    endpoint: Endpoint
    port: int
    acceptor: Acceptor | None = None
    held: socket.socket | None = None

    def give_up_port(self) -> None:
        held, self.held = self.held, None
        if held is not None:
            held.close()


class Node:
    """A member of `cluster` that answers `apis`, and does to requests what `controls` say."""

    def __init__(
        self,
        settings: BrokerSettings,
        cluster: ClusterState,
        apis: Iterable[Api],
        controls: Controls,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._apis = served_apis(apis, settings)
        self._classes = MessageClasses(requests=[api.request for api in self._apis.values()])
        self._controls = controls
        self._clock = clock
        self._sessions: set[Session] = set()
        self._fetch_sessions = self._new_fetch_sessions()
        self._validators: ThreadPoolExecutor | None = None
        #: Whether the node is stopped and will listen at the same ports again.
        self._ports_kept = False
        self._directory = CredentialStore(
            users=cluster.users,
            tokens=cluster.tokens,
            validate=settings.validate_token or unsecured_validator(clock.now_ms),
            validate_is_slow=settings.validate_token is not None,
        )
        self._places = {
            listener.name: _Place(listener, self._at(listener, listener.port), listener.port)
            for listener in settings.all_listeners
        }

    def _at(self, listener: Listener, port: int) -> Endpoint:
        """Tell the cluster where clients of a listener reach this node."""
        endpoint = Endpoint(
            self._settings.node_id,
            listener.advertised_host or listener.host,
            listener.advertised_port or port,
            listener.name,
            self._settings.rack,
        )
        self._cluster.join(endpoint)
        return endpoint

    def _new_fetch_sessions(self) -> FetchSessionCache:
        return FetchSessionCache(
            self._settings.max_incremental_fetch_session_cache_slots,
            self._settings.min_incremental_fetch_session_eviction_ms,
        )

    @property
    def _first(self) -> _Place:
        return next(iter(self._places.values()))

    @property
    def node_id(self) -> int:
        """The id by which clients know it."""
        return self._settings.node_id

    @property
    def rack(self) -> str | None:
        """Where it stands."""
        return self._settings.rack

    @property
    def is_listening(self) -> bool:
        """Whether clients can connect."""
        return self._first.acceptor is not None

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients. Raises ConfigurationError without a port, which may be kept."""
        return self.bootstrap_of(self._first.listener.name)

    def bootstrap_of(self, listener: str) -> str:
        """`host:port` of a listener for clients; raises ConfigurationError for an unknown one."""
        self._check_listening()
        place = self._places.get(listener)
        if place is None:
            raise ConfigurationError(
                f"there is no listener {listener!r}: take one of {', '.join(self._places)}"
            )
        return address_of(place.endpoint.host, place.endpoint.port)

    @property
    def listens_at(self) -> str:
        """`host:port` of the first listener itself; raises as `bootstrap` does."""
        self._check_listening()
        return address_of(self._first.listener.host, self._first.port)

    def _check_listening(self) -> None:
        if self._first.acceptor is None and not self._ports_kept:
            raise ConfigurationError("the broker does not listen; use it in `async with`")

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return len(self._sessions)

    def start(self) -> None:
        """Listen. Raises BrokerConnectionError when an address cannot be had.

        Raises ConfigurationError for certificates that cannot be read. Then nothing listens.
        """
        if self._first.acceptor is not None:
            raise ConfigurationError(f"the broker listens at {self.listens_at} already")
        self._fetch_sessions = self._new_fetch_sessions()  # those of before are over
        encryptions = {
            name: self._encryption(place.listener) for name, place in self._places.items()
        }
        if self._settings.validate_token is not None:
            self._validators = ThreadPoolExecutor(
                _VALIDATORS, thread_name_prefix="kproto-validate-token"
            )
        try:
            for name, place in self._places.items():
                self._listen(place, encryptions[name])
        except BaseException:
            self._stop(keep_ports=self._ports_kept)
            self._end_validators()
            raise
        self._ports_kept = False

    def _encryption(self, listener: Listener) -> Encryption | None:
        if listener.tls is None:
            return None
        return Encryption(
            server_context(listener.tls), self._settings.tls_handshake_timeout_ms / 1000
        )

    def _listen(self, place: _Place, encryption: Encryption | None) -> None:
        listener = place.listener
        held, place.held = place.held, None
        if held is None:
            listening = listen(listener.host, place.port if self._ports_kept else listener.port)
        else:
            listening = listen_again(held)
        place.port = listening.getsockname()[1]
        place.endpoint = self._at(listener, place.port)
        context = Context(
            cluster=self._cluster,
            settings=self._settings,
            endpoint=place.endpoint,
            versions=advertised_versions(
                self._settings.release, {key: api.versions for key, api in self._apis.items()}
            ),
            clock=self._clock,
            security_protocol=listener.security_protocol,
            fetch_sessions=self._fetch_sessions,
        )
        place.acceptor = Acceptor(
            listening, partial(self._new_session, context, listener), self._clock, encryption
        )

    async def close(self, *, keep_ports: bool = False) -> None:
        """Stop listening and end every session; `start` listens again, at the ports that are kept.

        Cancelled, it ends them all the same, and does not wait until nothing of them is left.
        """
        arriving = self.abort(keep_ports=keep_ports)
        try:
            if arriving:
                await asyncio.wait(arriving)
            if self._sessions:
                await asyncio.wait([session.closed for session in self._sessions])
        finally:
            self._end_validators()

    def _end_validators(self) -> None:
        """Let the threads end; one that waits for somebody ends after that."""
        validators, self._validators = self._validators, None
        if validators is not None:
            validators.shutdown(wait=False, cancel_futures=True)

    def abort(self, *, keep_ports: bool = False) -> set[asyncio.Task[None]]:
        """Do the same at once, without waiting; the tasks that end those who were just accepted."""
        arriving = self._stop(keep_ports=keep_ports)
        for session in self._sessions:
            session.abort()
        return arriving

    def _stop(self, *, keep_ports: bool = False) -> set[asyncio.Task[None]]:
        """Stop listening at once; the tasks that end those who were just accepted."""
        self._ports_kept = keep_ports
        arriving: set[asyncio.Task[None]] = set()
        for place in self._places.values():
            acceptor, place.acceptor = place.acceptor, None
            if acceptor is not None:
                arriving |= acceptor.close()
            if not keep_ports:
                place.give_up_port()
            elif place.held is None:
                place.held = reserve(place.listener.host, place.port)
        return arriving

    def _new_session(self, context: Context, listener: Listener) -> Session:
        return Session(
            context,
            self._apis,
            self._classes,
            self._controls,
            self._sessions.add,
            self._sessions.discard,
            self._gate(listener),
        )

    def _gate(self, listener: Listener) -> SaslAuthenticator | None:
        """What stands before a connection; None where nobody is asked who they are."""
        if not listener.mechanisms:
            return None
        authentication = SaslSession(
            self._directory, listener.mechanisms, self._settings.sasl_session_lifetime_ms
        )
        return SaslAuthenticator(authentication, self._clock, self._validators)
