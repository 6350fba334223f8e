"""Gets tokens for OAUTHBEARER by the client-credentials grant (RFC 6749, KIP-768).

Requests a token over HTTP in a thread, caches it for most of its lifetime, and explains invalid
responses. Does not parse tokens. The issuer is the OAuth server that issues them.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import logging
import random
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from ..clock import SYSTEM_CLOCK, Clock
from ..protocol.sasl import BearerToken, ClientExchange, OAuthBearerClient
from ..protocol.sasl.text import printable
from ..tasks import start_task
from ..wire.checks import check_least
from ..wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    ConfigurationError,
)
from .diagnosis import tls_fault
from .tls import AnyTls, TlsContexts, check_tls

__all__ = ["ClientCredentials", "TokenResponse", "read_token"]

_log: Final = logging.getLogger("kproto.client")

#: Fraction of a token's lifetime during which it is cached.
CACHED_PART: Final = 0.8

#: How long a token is cached if the response states no lifetime, in s. RFC 6749 makes the lifetime
#: optional. 10 s is enough for all connections that a client opens when it starts.
CACHED_WITHOUT_LIFETIME_S: Final = 10.0

#: Largest response that is read, in bytes. A token has about 2,000.
MAX_ANSWER_BYTES: Final = 262_144

#: HTTP status codes after which the request is retried.
_RETRIABLE_STATUS: Final = frozenset({408, 425, 429, *range(500, 600)})

#: Wait in s before the second attempt, and the longest wait between two attempts, as Java's
#: sasl.login.retry.backoff.ms and .max.ms. A jitter of 20 % is applied.
BACKOFF_S: Final = 0.1
BACKOFF_MAX_S: Final = 10.0
_JITTER: Final = 0.2

#: How long after the socket's timeout the request is abandoned, in s. The socket's timeout must
#: expire first, because it closes the socket.
_GRACE_S: Final = 0.5

_LEAST: Final = {"timeout_ms": 1, "attempts": 1}


class TokenResponse(NamedTuple):
    """Holds an issuer's token. `lifetime_s` is None if the response states no lifetime."""

    token: str
    lifetime_s: float | None

    def __repr__(self) -> str:
        """Omits the token."""
        return f"TokenResponse(lifetime_s={self.lifetime_s!r})"


#: The responses of urllib: an HTTPError also has a status and a body.
_HttpAnswer: TypeAlias = http.client.HTTPResponse | urllib.error.HTTPError


class _RetriableError(Exception):
    """Raised if a retry may succeed; its text is used in the error after the last attempt."""


class ClientCredentials:
    """Authenticates by OAUTHBEARER with tokens from `token_url` for a client id and secret
    (KIP-768).

    `scope` is sent to the issuer, and `extensions` (KIP-342) are sent to the broker. `tls`
    configures the connection to an issuer with https. A response must arrive within `timeout_ms`.
    The request is sent up to `attempts` times if the issuer is unavailable or answers status 408,
    425, 429 or 5xx. `url_encoded` URL-encodes id and secret in the header, as RFC 6749 requires;
    Java does so only with sasl.oauthbearer.header.urlencode.

    Raises ConfigurationError for invalid arguments. `exchange` raises AuthenticationError if the
    issuer refuses or returns no token, and BrokerConnectionError if the issuer is unavailable.
    """

    mechanism = "OAUTHBEARER"
    readable = True

    def __init__(
        self,
        token_url: str,
        client_id: str,
        client_secret: str,
        scope: str | None = None,
        *,
        tls: AnyTls = True,
        extensions: Mapping[str, str] = MappingProxyType({}),
        url_encoded: bool = False,
        timeout_ms: int = 5_000,
        attempts: int = 3,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.token_url = token_url
        self.client_id = client_id
        self.scope = scope
        self.extensions = dict(extensions)
        self.timeout_ms = timeout_ms
        self.attempts = attempts
        check_least(self, _LEAST)
        check_tls(tls)
        self._issuer = _issuer_address(token_url)
        for what, text in (("client_id", client_id), ("client_secret", client_secret)):
            if not isinstance(text, str) or not text:
                raise ConfigurationError(f"{what} is empty, or no str; set it")
        BearerToken("token", self.extensions)  # raises for an extension that cannot be sent
        if tls is False:
            raise ConfigurationError("tls is False: omit tls, because token_url has the scheme")
        self._headers = _headers(client_id, client_secret, url_encoded=url_encoded)
        self._hidden = (client_secret, self._headers["Authorization"].partition(" ")[2])
        self._body = _body(scope)
        self._tls = tls
        self._contexts = TlsContexts(tls)
        self._clock = clock
        self._answer: TokenResponse | None = None
        self._cached_until = float("-inf")
        self._pending_token: asyncio.Task[str] | None = None
        if token_url.lower().startswith("http:"):
            _log.warning("%s is used without TLS: the network can read the secret", self._issuer)

    def __repr__(self) -> str:
        """Omits the client secret."""
        return f"ClientCredentials({self._issuer!r}, client_id={self.client_id!r})"

    async def exchange(self, host: str) -> ClientExchange:
        """Returns a new exchange, with the cached token or a new one; `host` is not used."""
        token = await self.token()
        try:
            return OAuthBearerClient(BearerToken(token, self.extensions))
        except ConfigurationError:
            raise AuthenticationError(
                f"{self._issuer}: the issuer's token has characters that no bearer token may have"
            ) from None

    async def token(self) -> str:
        """Returns the cached token, or requests one; concurrent callers share one request."""
        if self._answer is not None and self._clock.monotonic() < self._cached_until:
            return self._answer.token
        pending = self._pending_token
        if (
            pending is None
            or pending.done()
            or pending.get_loop() is not asyncio.get_running_loop()
        ):
            pending = self._pending_token = start_task(self._request_token())
            pending.add_done_callback(_retrieve_exception)
        return await asyncio.shield(pending)

    async def _request_token(self) -> str:
        attempt = 1
        while True:
            requested_at = self._clock.monotonic()
            try:
                answer = await self._fetch_with_timeout()
            except _RetriableError as error:
                if attempt == self.attempts:
                    raise BrokerConnectionError(
                        f"no token: {error}", address=self._issuer
                    ) from None
            else:
                lifetime_s = answer.lifetime_s
                cache_s = (
                    CACHED_WITHOUT_LIFETIME_S if lifetime_s is None else CACHED_PART * lifetime_s
                )
                self._cached_until = requested_at + cache_s
                self._answer = answer
                return answer.token
            wait = min(BACKOFF_S * 2.0 ** (attempt - 1), BACKOFF_MAX_S)
            chance = random.random()  # noqa: S311 - jitter, no secret
            await self._clock.sleep(wait * (1 + _JITTER * (2 * chance - 1)))
            attempt += 1

    async def _fetch_with_timeout(self) -> TokenResponse:
        """Requests a token once, in a thread.

        Raises the errors of `_fetch`, and _RetriableError if the request takes longer than
        `timeout_ms` plus `_GRACE_S`.
        """
        try:
            async with self._clock.timeout(self.timeout_ms / 1000 + _GRACE_S):
                return await asyncio.to_thread(self._fetch)
        except TimeoutError:
            raise _RetriableError(
                f"the issuer sent no whole response within {self.timeout_ms} ms"
            ) from None

    def _fetch(self) -> TokenResponse:
        """Requests a token once. Blocks, so the caller runs this function in a thread."""
        context = self._contexts.cached() or self._contexts.renew()
        handlers = [urllib.request.HTTPSHandler(context=context), _NoRedirects()]
        opener = urllib.request.build_opener(*handlers)
        ends_at = self._clock.monotonic() + self.timeout_ms / 1000
        # The scheme was checked: http or https.
        request = urllib.request.Request(self.token_url, self._body, self._headers)  # noqa: S310
        try:
            with _opened(opener, request, self.timeout_ms / 1000) as answer:
                status = answer.status
                assert status is not None, "responses have one"
                if status in _RETRIABLE_STATUS:
                    raise _RetriableError(f"the issuer answered with status {status}")
                return read_token(status, self._read(answer, ends_at), self._issuer, self._hidden)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            cause = reason if isinstance(reason, BaseException) else error
            name = urllib.parse.urlsplit(self.token_url).hostname or ""
            fault = tls_fault(cause, self._issuer, name, shows_certificate=None)
            if fault is not None:
                raise fault from None
            reason = getattr(cause, "strerror", None) or type(cause).__name__
            raise _RetriableError(f"the issuer cannot be reached: {reason}") from None

    def _read(self, answer: _HttpAnswer, ends_at: float) -> bytes:
        """Returns the body; raises _RetriableError if the body is not complete at `ends_at`.

        Reads in pieces, because an issuer that sends single bytes would never exceed the socket's
        timeout, and would block the thread. Raises AuthenticationError if the body is too large,
        and IncompleteRead if the issuer closes the connection before the end of the body.
        """
        body = bytearray()
        while piece := answer.read1(MAX_ANSWER_BYTES):
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise AuthenticationError(
                    f"{self._issuer}: the issuer's response is larger than {MAX_ANSWER_BYTES}"
                    " bytes; is that the token URL?"
                )
            if self._clock.monotonic() >= ends_at:
                raise _RetriableError(
                    f"the issuer's response is not whole after {self.timeout_ms} ms (timeout_ms)"
                )
        if getattr(answer, "length", None):  # the missing bytes of the body
            raise http.client.IncompleteRead(bytes(body))
        return bytes(body)

    def __getstate__(self) -> dict[str, Any]:
        """Omits the cached token, the TLS contexts and a pending request."""
        state = dict(vars(self))
        state |= {"_answer": None, "_cached_until": float("-inf"), "_pending_token": None}
        del state["_contexts"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._contexts = TlsContexts(self._tls)


def read_token(
    status: int, body: bytes, issuer: str, hidden: tuple[str, ...] = ()
) -> TokenResponse:
    """Returns the token in an issuer's response (RFC 6749, 5).

    Raises AuthenticationError for a refusal and for an invalid response. The error quotes the
    issuer's error description, in which the texts in `hidden` are replaced.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise AuthenticationError(
            f"{issuer}: the issuer answered with status {status} and no JSON object; is that the"
            " token URL?"
        )
    if not 200 <= status < 300:
        description = " ".join(
            str(content[key]) for key in ("error", "error_description") if content.get(key)
        )
        raise AuthenticationError(
            f"{issuer}: the issuer refused the client with status {status}"
            f"{': ' if description else ''}{_shown(description, hidden)}"
            "; check client id, secret and scope"
        )
    token = content.get("access_token")
    if not isinstance(token, str) or not token:
        raise AuthenticationError(f"{issuer}: the issuer's response has no access_token")
    expires_in = content.get("expires_in")
    if (
        isinstance(expires_in, str)
        and expires_in.isascii()
        and expires_in.isdigit()
        and len(expires_in) < 19
    ):
        expires_in = int(expires_in)  # some issuers write it as text
    if isinstance(expires_in, bool) or not isinstance(expires_in, int | float):
        return TokenResponse(token, None)
    return TokenResponse(token, float(expires_in) if 0 < expires_in < 1e12 else 0.0)


def _opened(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout_s: float
) -> _HttpAnswer:
    """Sends an HTTP request; returns the response, whose body is not read yet.

    Raises no error for a status such as 401: the caller reads the body of such a response, too.
    """
    try:
        answer: http.client.HTTPResponse = opener.open(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        return error
    return answer


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, because the client secret may be sent to `token_url` only."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _issuer_address(url: str) -> str:
    """Returns scheme, host, port and path of the token URL, without its query.

    Raises ConfigurationError for an invalid URL, and for a URL with a user or password.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except (ValueError, AttributeError, TypeError):
        _refuse_url()
    if parts.scheme not in ("http", "https") or not parts.hostname:
        _refuse_url()
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError("token_url has a user; pass client_id and client_secret instead")
    return f"{parts.scheme}://{parts.hostname}{'' if port is None else f':{port}'}{parts.path}"


def _refuse_url() -> NoReturn:
    raise ConfigurationError("token_url is no URL; write https://issuer.example.com/token")


def _headers(client_id: str, client_secret: str, *, url_encoded: bool) -> dict[str, str]:
    if url_encoded:
        client_id = urllib.parse.quote_plus(client_id)
        client_secret = urllib.parse.quote_plus(client_secret)
    basic = base64.b64encode(f"{client_id}:{client_secret}".encode()).decode("ascii")
    return {
        "Authorization": f"Basic {basic}",
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
    }


def _body(scope: str | None) -> bytes:
    fields = {"grant_type": "client_credentials"}
    if scope:
        fields["scope"] = scope
    return urllib.parse.urlencode(fields).encode("ascii")


def _shown(text: str, hidden: tuple[str, ...]) -> str:
    for secret in hidden:
        text = text.replace(secret, "<hidden>")
    return printable(text)


def _retrieve_exception(task: asyncio.Task[str]) -> None:
    if not task.cancelled():
        task.exception()  # retrieved so that asyncio does not log it; the callers get it, too
