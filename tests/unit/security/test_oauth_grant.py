"""Tests the OAuth client-credentials grant against the test's own issuer, with and without TLS."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import pickle
import ssl
import traceback
import urllib.parse
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trustme

from kproto import ClientCredentials, Tls
from kproto.protocol.sasl import OAuthBearerClient
from kproto.security import oauth_grant
from kproto.security.oauth_grant import read_token
from kproto.testing.clock import ManualClock
from kproto.wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    ConfigurationError,
    KprotoError,
)
from tests.support.selection import rest_slow

SECRET = "s3cret/+&=ü"
CA = trustme.CA()

_TIMED_OUT = (
    "no whole response within 200 ms|not whole after 200 ms|cannot be reached: TimeoutError"
)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes requests to 127.0.0.1 bypass the machine's HTTP proxy."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


class Issuer:
    """A token issuer that gives each request the next of `answers` (status, body).

    Repeats the last answer for all further requests.
    """

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str], dict[str, list[str]]]] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            fields = dict(line.split(": ", 1) for line in head[1:-2])
            body = await reader.readexactly(int(fields.get("Content-Length", 0)))
            self.asked.append((head[0], fields, urllib.parse.parse_qs(body.decode())))
            status, content = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if status == 0:
                return
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            writer.write(
                f"HTTP/1.1 {status} No\r\nLocation: {self.url}/other\r\n"
                f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode()
                + data
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def issuing(
    *answers: tuple[int, Any], tls: ssl.SSLContext | None = None
) -> AsyncIterator[Issuer]:
    issuer = Issuer(*answers)
    server = await asyncio.start_server(issuer.serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        scheme = "http" if tls is None else "https"
        issuer.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
        yield issuer


GOOD = (200, {"access_token": "abc.def", "expires_in": 100, "token_type": "Bearer"})


def credentials(issuer: Issuer, **others: Any) -> ClientCredentials:
    return ClientCredentials(issuer.url, "me", SECRET, **others)


async def refused(issuer: Issuer, **others: Any) -> KprotoError:
    with pytest.raises(KprotoError) as told:
        await credentials(issuer, **others).exchange("b1")
    text = "".join(traceback.format_exception(told.value))
    encoded = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert SECRET not in text
    assert encoded not in text
    assert "127.0.0.1" in str(told.value)
    return told.value


async def test_a_token() -> None:
    async with issuing(GOOD) as issuer:
        sasl = credentials(issuer, scope="kafka", extensions={"logicalCluster": "lkc"})
        exchange = await sasl.exchange("b1")
        assert isinstance(exchange, OAuthBearerClient)
        assert exchange.first() == b"n,,\x01auth=Bearer abc.def\x01logicalCluster=lkc\x01\x01"
        ((line, fields, form),) = issuer.asked
        assert line == "POST /token HTTP/1.1"
        assert form == {"grant_type": ["client_credentials"], "scope": ["kafka"]}
        assert fields["Authorization"].startswith("Basic ")
        assert base64.b64decode(fields["Authorization"][6:]).decode() == f"me:{SECRET}"


async def test_a_secret_that_is_url_encoded() -> None:
    async with issuing(GOOD) as issuer:
        await credentials(issuer, url_encoded=True).token()
        fields = issuer.asked[0][1]
    assert base64.b64decode(fields["Authorization"][6:]) == b"me:s3cret%2F%2B%26%3D%C3%BC"


async def test_a_token_is_kept_for_most_of_its_life() -> None:
    clock = ManualClock()
    async with issuing(GOOD, (200, {"access_token": "next", "expires_in": 100})) as issuer:
        sasl = credentials(issuer, clock=clock)
        assert set(await asyncio.gather(sasl.token(), sasl.token())) == {"abc.def"}
        await clock.advance(79_000)
        assert await sasl.token() == "abc.def"
        assert len(issuer.asked) == 1
        await clock.advance(1_001)
        assert await sasl.token() == "next"
        assert len(issuer.asked) == 2


async def test_a_token_without_a_life_is_kept_for_a_moment() -> None:
    clock = ManualClock()
    async with issuing((200, {"access_token": "t"})) as issuer:
        sasl = credentials(issuer, clock=clock)
        await sasl.token()
        await sasl.token()
        assert len(issuer.asked) == 1
        await clock.advance(10_001)
        await sasl.token()
        assert len(issuer.asked) == 2


@pytest.mark.parametrize("status", rest_slow([503, 500, 429, 0], 1))
async def test_an_issuer_that_is_back(status: int) -> None:
    async with issuing((status, {}), (status, {}), GOOD) as issuer:
        assert await credentials(issuer).token() == "abc.def"
        assert len(issuer.asked) == 3


@pytest.mark.parametrize(("status", "told"), [(503, "with status 503"), (0, "cannot be reached")])
async def test_an_issuer_that_stays_away(status: int, told: str) -> None:
    async with issuing((status, {})) as issuer:
        error = await refused(issuer, attempts=2)
        assert isinstance(error, BrokerConnectionError)
        assert told in str(error)
        assert len(issuer.asked) == 2


@pytest.mark.parametrize("status", [200, 400, 503])
async def test_an_answer_that_is_cut_off_may_be_asked_for_again(status: int) -> None:
    class Cut(Issuer):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            self.asked.append(("", {}, {}))
            writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 99\r\n\r\n{{".encode())
            writer.close()

    issuer = Cut()
    async with await asyncio.start_server(issuer.serve, "127.0.0.1", 0) as server:
        issuer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
        error = await refused(issuer, attempts=2)
    assert isinstance(error, BrokerConnectionError)
    assert len(issuer.asked) == 2


async def test_an_issuer_that_never_comes_to_an_end() -> None:
    is_over, has_ended = asyncio.Event(), asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Yes\r\nContent-Length: 999\r\n\r\n")
        for _ in range(100):
            writer.write(b" ")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(is_over.wait(), 0.02)
                break
        writer.close()
        has_ended.set()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        issuer = Issuer()
        issuer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
        error = await refused(issuer, attempts=1, timeout_ms=200)
        assert not has_ended.is_set()
        is_over.set()
        await has_ended.wait()
    assert isinstance(error, BrokerConnectionError)
    assert "200 ms" in str(error)


@pytest.mark.slow
async def test_an_issuer_that_is_nowhere() -> None:
    async with issuing(GOOD) as issuer:
        pass
    assert isinstance(await refused(issuer), BrokerConnectionError)


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("pause_s", [0.05, 0.4])
async def test_slow_response_of_the_issuer_times_out(status: int, pause_s: float) -> None:
    """Both one read and the whole response have a timeout; the first that expires is the error."""
    gone = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 40\r\n\r\n".encode())
            for _ in range(40):
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(pause_s)
        writer.close()
        gone.set()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
        sasl = ClientCredentials(url, "me", SECRET, timeout_ms=200, attempts=1)
        with pytest.raises(BrokerConnectionError, match=_TIMED_OUT):
            await sasl.token()
        await gone.wait()


async def test_an_issuer_that_says_nothing() -> None:
    serving: list[asyncio.Task[None] | None] = []

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        await reader.read()
        writer.close()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        issuer = Issuer()
        issuer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        error = await refused(issuer, timeout_ms=50, attempts=1)
        await asyncio.gather(*filter(None, serving))
    assert isinstance(error, BrokerConnectionError)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            (401, {"error": "invalid_client", "error_description": f"no {SECRET}\x07"}),
            "refused the client with status 401: invalid_client no <hidden>?; check client id",
        ),
        ((400, {"error": "invalid_scope"}), "status 400: invalid_scope"),
        ((404, b"<html>"), "answered with status 404 and no JSON object; is that the token URL?"),
        ((302, b""), "answered with status 302 and no JSON object"),
        ((200, b"\xff"), "and no JSON object"),
        ((200, b"[]"), "and no JSON object"),
        ((200, b"[" * 100_000), "and no JSON object"),
        ((200, {}), "has no access_token"),
        ((200, {"access_token": 1}), "has no access_token"),
        ((200, {"access_token": "ä ö"}), "characters that no bearer token may have"),
        ((200, b"x" * 300_000), "larger than 262144 bytes"),
    ],
)
async def test_answers_that_are_none(answer: tuple[int, Any], told: str) -> None:
    async with issuing(answer) as issuer:
        error = await refused(issuer)
        assert isinstance(error, AuthenticationError)
        assert told in str(error)
        assert len(issuer.asked) == 1, "no redirect is followed, nothing is asked again"


@pytest.mark.parametrize(
    ("given", "lives_s"),
    [(3600, 3600.0), ("60", 60.0), (1.5, 1.5), (-1, 0.0), (1e300, 0.0), ("x", None), (True, None)],
)
def test_how_long_a_token_lives(given: Any, lives_s: float | None) -> None:
    answer = read_token(200, json.dumps({"access_token": "t", "expires_in": given}).encode(), "x")
    assert answer == ("t", lives_s)
    assert "'t'" not in repr(answer)


async def test_tls_of_the_issuer_is_verified() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CA.issue_cert("127.0.0.1").configure_cert(context)
    async with issuing(GOOD, tls=context) as issuer:
        trusting = Tls(ca=CA.cert_pem.bytes())
        assert await credentials(issuer, tls=trusting).token() == "abc.def"
        error = await refused(issuer)
        assert isinstance(error, AuthenticationError)
        assert "comes from a CA that is not known" in str(error)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ClientCredentials("ftp://x/", "a", "b"),
        lambda: ClientCredentials("x", "a", "b"),
        lambda: ClientCredentials("https://x:y/", "a", "b"),
        lambda: ClientCredentials("https://a:b@x/", "a", "b"),
        lambda: ClientCredentials(None, "a", "b"),  # type: ignore[arg-type]  # what is tested
        lambda: ClientCredentials("https://x/", "", "b"),
        lambda: ClientCredentials("https://x/", "a", ""),
        lambda: ClientCredentials("https://x/", "a", "b", timeout_ms=0),
        lambda: ClientCredentials("https://x/", "a", "b", attempts=0),
        lambda: ClientCredentials("https://x/", "a", "b", tls=False),
        lambda: ClientCredentials("https://x/", "a", "b", extensions={"auth": "x"}),
    ],
)
def test_settings_that_cannot_work(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()


def test_nothing_secret_is_shown_or_pickled_twice(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        sasl = ClientCredentials("http://issuer/token?x=hidden", "me", SECRET)
    assert repr(sasl) == "ClientCredentials('http://issuer/token', client_id='me')"
    assert len(caplog.records) == 1
    assert "without TLS" in caplog.text
    assert SECRET not in caplog.text
    again = pickle.loads(pickle.dumps(sasl))
    assert again._headers == sasl._headers
    assert again._answer is None


def test_token_is_kept_for_80_percent_of_its_lifetime() -> None:
    assert oauth_grant.CACHED_PART == 0.8
