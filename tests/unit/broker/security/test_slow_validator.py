"""Tests that a slow token validator does not delay clients with another mechanism."""

from __future__ import annotations

import contextlib
import threading
import time

from kproto.broker import BrokerSettings, Listener
from kproto.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kproto.messages.sasl_handshake_request import SaslHandshakeRequest
from kproto.protocol.sasl import BearerIdentity, BearerToken
from tests.support.embedded import threaded_broker
from tests.support.raw_connection import RawConnection

#: The number of connections that wait for the validator; asyncio's thread pool has fewer threads.
WAITING = 40


def validating() -> list[str]:
    """Returns the names of the threads that validate tokens."""
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("kproto-validate-token")]


def test_plain_authenticates_while_validators_block() -> None:
    go_on = threading.Event()

    def validate(token: BearerToken) -> BearerIdentity:
        go_on.wait(30)
        return BearerIdentity("bob")

    settings = BrokerSettings(
        listeners=(Listener("SASL_PLAINTEXT", mechanisms=("PLAIN", "OAUTHBEARER")),),
        users={"alice": "secret"},
        validate_token=validate,
    )
    with threaded_broker(settings) as broker, contextlib.ExitStack() as open_ones:
        open_ones.callback(go_on.set)
        for _ in range(WAITING):
            waiting = open_ones.enter_context(RawConnection(broker.bootstrap))
            waiting.exchange(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
            token = b"n,,\x01auth=Bearer abc\x01\x01"
            waiting.send(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert validating(), "the broker runs no validator"
        alice = open_ones.enter_context(RawConnection(broker.bootstrap))
        alice.exchange(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        shown = SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")
        assert alice.exchange(shown, 2).error_code == 0
        assert not go_on.is_set()
    end = time.monotonic() + 20
    while validating():
        assert time.monotonic() < end, "its threads end with it"
        time.sleep(0.001)
