"""Defines one node of a cluster, with its listeners and the sessions of its clients."""

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
from .acceptor import Acceptor, ListenerTls, address_of, listen, listen_on_reserved, reserve_port
from .cluster_state import ClusterState
from .context import Context
from .faults import ControlFunctions
from .fetch_sessions import FetchSessionCache
from .listeners import Endpoint, Listener
from .registry import Api, served_apis
from .releases import advertised_versions
from .sasl_authenticator import SaslAuthenticator
from .security.sasl_session import CredentialStore, SaslSession
from .security.server_tls import server_context
from .session import Session
from .settings import BrokerSettings

__all__ = ["Node"]

#: The API keys of GetTelemetrySubscriptions and PushTelemetry.
_TELEMETRY_KEYS: Final = (71, 72)

#: Maximum threads of a node that validate bearer tokens, as in asyncio's default executor.
_VALIDATORS: Final = 32


@dataclass(slots=True)
class _BoundListener:
    """Holds a listener, its advertised endpoint, and its bound or configured port.

    `acceptor` is set while the node listens on the port, else None. `reserved_socket` is set while
    the node is stopped and keeps the port reserved, else None.
    """

    listener: Listener
    endpoint: Endpoint
    port: int
    acceptor: Acceptor | None = None
    reserved_socket: socket.socket | None = None

    def release_port(self) -> None:
        reserved_socket, self.reserved_socket = self.reserved_socket, None
        if reserved_socket is not None:
            reserved_socket.close()


class Node:
    """Serves `apis` to clients, as a node of `cluster`.

    `controls` has the control functions of a test, which refuse, delay or cut off requests.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        cluster: ClusterState,
        apis: Iterable[Api],
        controls: ControlFunctions,
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
        #: Whether the node is stopped and will listen on the same ports again.
        self._keeps_ports = False
        self._credentials = CredentialStore(
            users=cluster.users,
            tokens=cluster.tokens,
            validate=settings.validate_token or unsecured_validator(clock.now_ms),
            validate_is_slow=settings.validate_token is not None,
        )
        self._bound_listeners = {
            listener.name: _BoundListener(
                listener, self._register_endpoint(listener, listener.port), listener.port
            )
            for listener in settings.all_listeners
        }

    def _register_endpoint(self, listener: Listener, port: int) -> Endpoint:
        """Registers the advertised endpoint of a listener with the cluster."""
        endpoint = Endpoint(
            self._settings.node_id,
            listener.advertised_host or listener.host,
            listener.advertised_port or port,
            listener.name,
            self._settings.rack,
        )
        self._cluster.register_endpoint(endpoint)
        return endpoint

    def _new_fetch_sessions(self) -> FetchSessionCache:
        return FetchSessionCache(
            self._settings.max_incremental_fetch_session_cache_slots,
            self._settings.min_incremental_fetch_session_eviction_ms,
        )

    @property
    def _first_listener(self) -> _BoundListener:
        return next(iter(self._bound_listeners.values()))

    @property
    def node_id(self) -> int:
        """Returns the node id."""
        return self._settings.node_id

    @property
    def rack(self) -> str | None:
        """Returns the rack of the node."""
        return self._settings.rack

    @property
    def is_listening(self) -> bool:
        """Returns True if the node listens, so that clients can connect."""
        return self._first_listener.acceptor is not None

    @property
    def bootstrap(self) -> str:
        """Returns the advertised `host:port` of the first listener.

        Raises ConfigurationError if no port is bound or reserved.
        """
        return self.bootstrap_of(self._first_listener.listener.name)

    def bootstrap_of(self, listener: str) -> str:
        """Returns the advertised `host:port` of the listener with the name `listener`.

        Raises ConfigurationError for an unknown listener, and if no port is bound or reserved.
        """
        self._check_listening()
        bound_listener = self._bound_listeners.get(listener)
        if bound_listener is None:
            raise ConfigurationError(
                f"there is no listener {listener!r}: take one of {', '.join(self._bound_listeners)}"
            )
        return address_of(bound_listener.endpoint.host, bound_listener.endpoint.port)

    @property
    def listens_at(self) -> str:
        """Returns the `host:port` that the first listener is bound to.

        Raises ConfigurationError if no port is bound or reserved.
        """
        self._check_listening()
        return address_of(self._first_listener.listener.host, self._first_listener.port)

    def _check_listening(self) -> None:
        if self._first_listener.acceptor is None and not self._keeps_ports:
            raise ConfigurationError("the broker does not listen; use it in `async with`")

    @property
    def connections(self) -> int:
        """Returns the number of client connections."""
        return len(self._sessions)

    def start(self) -> None:
        """Starts to listen on all listeners.

        Raises BrokerConnectionError if an address is not available, and ConfigurationError if a
        certificate cannot be read; then no listener listens. Also raises ConfigurationError if the
        node listens already; then the listeners stay open.
        """
        if self._first_listener.acceptor is not None:
            raise ConfigurationError(f"the broker listens at {self.listens_at} already")
        self._fetch_sessions = self._new_fetch_sessions()  # a restart ends all fetch sessions
        encryptions = {
            name: self._encryption(bound_listener.listener)
            for name, bound_listener in self._bound_listeners.items()
        }
        if self._settings.validate_token is not None:
            self._validators = ThreadPoolExecutor(
                _VALIDATORS, thread_name_prefix="kproto-validate-token"
            )
        try:
            for name, bound_listener in self._bound_listeners.items():
                self._listen(bound_listener, encryptions[name])
        except BaseException:
            self._stop(keep_ports=self._keeps_ports)
            self._end_validators()
            raise
        self._keeps_ports = False

    def _encryption(self, listener: Listener) -> ListenerTls | None:
        if listener.tls is None:
            return None
        return ListenerTls(
            server_context(listener.tls), self._settings.tls_handshake_timeout_ms / 1000
        )

    def _listen(self, bound_listener: _BoundListener, encryption: ListenerTls | None) -> None:
        listener = bound_listener.listener
        reserved_socket, bound_listener.reserved_socket = bound_listener.reserved_socket, None
        if reserved_socket is None:
            listening = listen(
                listener.host, bound_listener.port if self._keeps_ports else listener.port
            )
        else:
            listening = listen_on_reserved(reserved_socket)
        bound_listener.port = listening.getsockname()[1]
        bound_listener.endpoint = self._register_endpoint(listener, bound_listener.port)
        context = Context(
            cluster=self._cluster,
            settings=self._settings,
            endpoint=bound_listener.endpoint,
            versions=self._advertised_versions(),
            clock=self._clock,
            security_protocol=listener.security_protocol,
            fetch_sessions=self._fetch_sessions,
        )
        bound_listener.acceptor = Acceptor(
            listening,
            partial(self._new_session, context, listener),
            self._clock,
            encryption,
            self._connection_throttle_ms,
        )

    async def close(self, *, keep_ports: bool = False) -> None:
        """Stops listening and closes all sessions.

        With `keep_ports` the ports stay reserved, and the next `start` uses them again. If `close`
        is cancelled, it still closes the sessions, but does not wait until they have ended.
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
        """Shuts down the threads that validate tokens, without waiting for a blocked thread."""
        validators, self._validators = self._validators, None
        if validators is not None:
            validators.shutdown(wait=False, cancel_futures=True)

    def abort(self, *, keep_ports: bool = False) -> set[asyncio.Task[None]]:
        """Stops listening and aborts all sessions, without waiting.

        Returns the tasks of connections that are being set up.
        """
        arriving = self._stop(keep_ports=keep_ports)
        for session in self._sessions:
            session.abort()
        return arriving

    def release_ports(self) -> None:
        """Closes the listening sockets of a node whose event loop is closed."""
        self._stop()
        self._end_validators()

    def _stop(self, *, keep_ports: bool = False) -> set[asyncio.Task[None]]:
        """Stops listening at once; returns the tasks that set up connections."""
        self._keeps_ports = keep_ports
        arriving: set[asyncio.Task[None]] = set()
        for bound_listener in self._bound_listeners.values():
            acceptor, bound_listener.acceptor = bound_listener.acceptor, None
            if acceptor is not None:
                arriving |= acceptor.close()
            if not keep_ports:
                bound_listener.release_port()
            elif bound_listener.reserved_socket is None:
                bound_listener.reserved_socket = reserve_port(
                    bound_listener.listener.host, bound_listener.port
                )
        return arriving

    def _new_session(self, context: Context, listener: Listener) -> Session:
        return Session(
            context,
            self._apis,
            self._classes,
            self._controls,
            self._sessions.add,
            self._sessions.discard,
            self._sasl_authenticator(listener),
        )

    def _advertised_versions(self) -> dict[int, range]:
        """Returns the versions that ApiVersions lists, by API key."""
        hidden = () if self._settings.client_telemetry else _TELEMETRY_KEYS
        versions = {key: api.versions for key, api in self._apis.items() if key not in hidden}
        return advertised_versions(self._settings.release, versions)

    def _connection_throttle_ms(self, host: str) -> int:
        """Returns the throttle time of a new connection in ms (connection_creation_rate)."""
        quota_manager = self._cluster.quota_manager_of(self.node_id)
        return quota_manager.record_connection(host, self._clock.now_ms())

    def _sasl_authenticator(self, listener: Listener) -> SaslAuthenticator | None:
        """Returns an authenticator for a new connection; None for a listener without SASL."""
        if not listener.mechanisms:
            return None
        authentication = SaslSession(
            self._credentials, listener.mechanisms, self._settings.sasl_session_lifetime_ms
        )
        return SaslAuthenticator(authentication, self._clock, self._validators)
