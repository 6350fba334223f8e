"""Tests which commands import asyncio without OpenSSL."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kproto.cli.event_loop import is_plaintext
from kproto.cli.whole_parser import parse
from tests.support.environment import ROOT


@pytest.mark.parametrize(
    ("words", "environment", "expected"),
    [
        (["consume", "orders"], {}, True),
        (["consume", "orders", "-b", "kafka:9092"], {"KPROTO_BOOTSTRAP": "kafka:1"}, True),
        (["topics", "list", "-X", "client.id=a"], {}, True),
        (["consume", "orders", "-X", "security.protocol=SSL"], {}, False),
        (["consume", "orders", "-X", " security.protocol = PLAINTEXT"], {}, False),
        (["consume", "orders", "--properties", "client.properties"], {}, False),
        (["consume", "orders", "--context", "production"], {}, False),
        (["consume", "orders"], {"KPROTO_PROPERTIES": "client.properties"}, False),
        (["broker"], {}, False),
        (["proxy", "127.0.0.1:0", "kafka:9092"], {}, False),
    ],
)
def test_only_options_that_cannot_configure_tls_are_plaintext(
    words: list[str], environment: dict[str, str], *, expected: bool
) -> None:
    assert is_plaintext(parse(words), environment) is expected


def run(words: list[str], after: str) -> str:
    """Imports asyncio for a command in a fresh interpreter; returns what `after` prints."""
    script = f"""
import sys
sys.path[0:0] = [{str(ROOT)!r}]
from kproto.cli.event_loop import import_asyncio
from kproto.cli.whole_parser import parse
import_asyncio(parse({words!r}), {{}})
{after}
"""
    command = [sys.executable, "-I", "-S", "-c", script]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


def test_plaintext_client_runs_without_ssl_and_ssl_can_be_imported_later() -> None:
    after = """
import asyncio
from kproto import Client, KprotoError
async def connect():
    try:
        async with Client("127.0.0.1:1"):
            pass
    except KprotoError as error:
        print(type(error).__name__, "ssl" in sys.modules)
asyncio.run(connect())
import ssl
print(ssl.create_default_context().verify_mode.name)
"""
    assert run(["consume", "orders"], after) == "BrokerConnectionError False\nCERT_REQUIRED"


def test_client_with_tls_has_the_ssl_of_asyncio() -> None:
    after = "import asyncio.sslproto; print(asyncio.sslproto.ssl is not None)"
    assert run(["consume", "orders", "-X", "security.protocol=SSL"], after) == "True"
