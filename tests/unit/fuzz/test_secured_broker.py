"""Tests `kproto fuzz --broker` with a broker that requires TLS and SASL."""

from __future__ import annotations

import asyncio

import pytest
import trustme

from kproto.fuzz.broker import BrokerFuzzSettings, BrokerResult, fuzz_broker
from kproto.fuzz.broker_connection import ConnectionSecurity
from kproto.security import Plain, ScramSha256, Tls
from kproto.wire.errors import AuthenticationError
from tests.unit.client.secured_broker import SECRET, USER, SecuredBroker, client_ca, server_tls

FEW = BrokerFuzzSettings(frames=12, quiet_s=0.05, check_every=4)
CA = trustme.CA()
TLS = Tls(ca=client_ca(CA))


async def fuzzed(secured: ConnectionSecurity) -> tuple[BrokerResult, int]:
    """Fuzzes a secured broker; returns the result, and the number of authentications."""
    async with SecuredBroker(
        tls=server_tls(CA, "127.0.0.1"), mechanisms=("PLAIN", "SCRAM-SHA-256")
    ) as broker:
        result = await asyncio.to_thread(
            fuzz_broker, broker.bootstrap, settings=FEW, kinds=("sound", "cut"), secured=secured
        )
        return result, broker.authentications


@pytest.mark.slow
async def test_each_frame_goes_out_behind_an_authentication() -> None:
    result, authentications = await fuzzed(ConnectionSecurity(TLS, ScramSha256(USER, SECRET)))
    assert sum(result.outcomes.values()) == 12
    assert not result.outcomes["no connection"]
    assert authentications > 12


async def test_a_wrong_password_is_one_error() -> None:
    with pytest.raises(AuthenticationError, match="refused the PLAIN authentication") as caught:
        await fuzzed(ConnectionSecurity(TLS, Plain(USER, "wrong-4711")))
    assert "4711" not in str(caught.value)


async def test_an_unknown_ca_is_one_error() -> None:
    with pytest.raises(AuthenticationError, match="CA"):
        await fuzzed(ConnectionSecurity(tls=True, sasl=Plain(USER, SECRET)))
