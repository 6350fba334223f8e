"""Tests tokens from files, and unsigned tokens."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import threading
from pathlib import Path

import pytest

from kproto.security.mechanisms import OAuthBearer
from kproto.security.token_sources import MAX_TOKEN_BYTES, TokenFile, UnsecuredToken
from kproto.wire.errors import AuthenticationError, ConfigurationError


def parts(token: str) -> list[dict[str, object]]:
    header, claims, signature = token.split(".")
    assert signature == ""
    return [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (header, claims)]


def test_the_claims_of_a_token_that_nobody_signed() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginStringClaim_scope": "all",
        "unsecuredLoginNumberClaim_level": "3",
        "unsecuredLoginLifetimeSeconds": "60",
    }
    made = UnsecuredToken.from_options(options)
    assert made is not None
    at_ten = UnsecuredToken(made.claims, made.lifetime_s, now_s=lambda: 10.0)
    assert parts(at_ten()) == [
        {"alg": "none"},
        {"iat": 10.0, "exp": 70.0, "sub": "alice", "scope": "all", "level": 3.0},
    ]
    assert "alice" not in repr(made)


def test_without_a_principal_there_is_no_token() -> None:
    assert UnsecuredToken.from_options({}) is None
    named = {"unsecuredLoginStringClaim_user": "a"}
    assert UnsecuredToken.from_options(named) is None
    assert UnsecuredToken.from_options({**named, "unsecuredLoginPrincipalClaimName": "user"})


async def test_a_file_is_read_again_each_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    source = TokenFile(path)
    assert await source() == "one"
    path.write_text("two")
    assert await source() == "two"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
async def test_file_that_is_a_pipe_blocks_no_other_task(tmp_path: Path) -> None:
    path = tmp_path / "token"
    os.mkfifo(path)
    go_on = threading.Event()
    writer = threading.Thread(target=lambda: go_on.wait() and path.write_text("tok.en"))
    writer.start()
    asked = asyncio.ensure_future(OAuthBearer(TokenFile(path)).exchange("b1"))
    await asyncio.sleep(0.05)
    try:
        assert not asked.done()
    finally:
        go_on.set()
        exchange = await asked
        writer.join()
    assert b"Bearer tok.en\x01" in exchange.first()


def test_a_file_that_holds_no_token_is_told(tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match=r"cannot read the token of .*: No such file"):
        TokenFile(tmp_path / "none").read()
    path = tmp_path / "token"
    path.write_text("hünter2")
    with pytest.raises(AuthenticationError, match="it holds no ASCII text") as caught:
        TokenFile(path).read()
    assert "nter2" not in str(caught.value)
    path.write_bytes(b"x" * (MAX_TOKEN_BYTES + 1))
    with pytest.raises(AuthenticationError, match="is larger than 524288 bytes"):
        TokenFile(path).read()


@pytest.mark.parametrize("url", ["file:", "file://host/path", "file://[", "file:///a%00b"])
def test_a_url_of_no_file_is_told(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^the\.name must be https://"):
        TokenFile.of_url("the.name", url)
