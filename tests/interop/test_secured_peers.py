"""Tests other clients with the secured broker: TLS and each mechanism, right and wrong secrets."""

from __future__ import annotations

import json
import logging
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from kproto.broker import Broker, BrokerSettings, Listener
from kproto.protocol.sasl.unsecured_jws import unsecured_token
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.secured_broker import (
    ALL_MECHANISMS,
    PASSWORDS,
    authority_pem,
    of_kind,
    pem_of,
    server_tls,
)

pytestmark = pytest.mark.peers

SCRIPTS = Path(__file__).parent / "peer_scripts"
PEERS = ("kafka_python", "aiokafka", "confluent_kafka")
TIMEOUT_S = 60
GUESSED = "guessed-wrong"

Case = tuple[str, str | None]
CASES: list[Case] = [
    ("SSL", None),
    *((protocol, each) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for each in ALL_MECHANISMS),
]

#: `make test` runs each case with one peer; the other combinations are exhaustive.
COMING_IN = [
    pytest.param(
        peer,
        case,
        marks=() if (number + at) % len(PEERS) == 0 else pytest.mark.exhaustive,
        id=f"{peer}-{case}",
    )
    for number, peer in enumerate(PEERS)
    for at, case in enumerate(CASES)
]

#: With SASL_SSL a wrong secret has the same result as with SASL_PLAINTEXT, so only exhaustive runs
#: have these cases.
WRONG_CASES = [
    pytest.param(case, marks=[pytest.mark.exhaustive] * (case[0] == "SASL_SSL"), id=str(case))
    for case in CASES
    if case[1]
]


@pytest.fixture(scope="module")
def broker() -> Iterator[ThreadedBroker]:
    listeners = (
        Listener("SSL", tls=server_tls("required")),
        of_kind("SASL_PLAINTEXT"),
        of_kind("SASL_SSL"),
    )
    settings = BrokerSettings(
        listeners=listeners, users=PASSWORDS, delegation_token_secret_key="the key"
    )
    with threaded_broker(settings) as running:
        running.call(make_topics)
        yield running


def make_topics(broker: Broker) -> None:
    for peer in PEERS:
        broker.create_topic(peer)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("certificates")
    (folder / "ca.pem").write_text(authority_pem())
    (folder / "peer.pem").write_text(pem_of("peer@example.org", common_name="peer"))
    return {"ca": str(folder / "ca.pem"), "certificate": str(folder / "peer.pem")}


def run(python: Path, peer: str, wanted: dict[str, Any]) -> dict[str, str]:
    done = subprocess.run(
        [python, SCRIPTS / f"secured_{peer}.py", json.dumps({"topic": peer, **wanted})],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return answer


def wanted_of(broker: ThreadedBroker, case: Case) -> dict[str, Any]:
    protocol, mechanism = case
    now_ms = time.time_ns() // 1_000_000
    return {
        "bootstrap": broker.call(lambda it: it.bootstrap_of(protocol)),
        "protocol": protocol,
        "mechanism": mechanism,
        "user": "alice",
        "patience_ms": 30_000,
        "password": PASSWORDS["alice"],
        "token": unsecured_token("alice", now_ms=now_ms),
    }


@pytest.mark.parametrize(("peer", "case"), COMING_IN)
def test_a_peer_comes_in_writes_and_reads(
    broker: ThreadedBroker,
    peers_python: Path,
    files: dict[str, str],
    caplog: pytest.LogCaptureFixture,
    peer: str,
    case: Case,
) -> None:
    with caplog.at_level(logging.INFO, "kproto.broker"):
        assert run(peers_python, peer, {**wanted_of(broker, case), **files}) == {"value": "hello"}
    name = "CN=peer,OU=Oven,O=Bread" if case == ("SSL", None) else "alice"
    assert f"as User:{name}\n" in caplog.text
    assert PASSWORDS["alice"] not in caplog.text


#: kafka-python retries until its timeout, up to half a minute.
TRIED_AGAIN = pytest.param("kafka_python", marks=pytest.mark.exhaustive)


@pytest.mark.parametrize("peer", [TRIED_AGAIN, *PEERS[1:]])
@pytest.mark.parametrize("case", WRONG_CASES)
def test_a_peer_with_a_wrong_secret_is_refused(
    broker: ThreadedBroker,
    peers_python: Path,
    files: dict[str, str],
    caplog: pytest.LogCaptureFixture,
    peer: str,
    case: Case,
) -> None:
    wrong = {
        "password": GUESSED,
        "token": unsecured_token("alice", now_ms=1000),
        "patience_ms": 3000,  # kafka-python retries until this timeout
    }
    with caplog.at_level(logging.INFO, "kproto.broker"):
        answer = run(peers_python, peer, {**wanted_of(broker, case), **files, **wrong})
    if case[1] == "OAUTHBEARER" and peer == "aiokafka":
        # aiokafka ignores the refusal and continues, so the broker closes the connection.
        assert "closed" in answer["error"]
        assert "the client sent a request before it was authenticated" in caplog.text
    elif case[1] == "OAUTHBEARER" and peer == "confluent_kafka":
        assert "token" in answer["error"]
    else:
        assert "uthentication" in answer["error"], answer
        assert "authentication failed: " in caplog.text
    assert GUESSED not in caplog.text


@pytest.mark.parametrize("peer", ["confluent_kafka", TRIED_AGAIN])
def test_a_peer_without_a_certificate_stays_outside(
    broker: ThreadedBroker, peers_python: Path, files: dict[str, str], peer: str
) -> None:
    stranger = Path(files["certificate"]).with_name("stranger.pem")
    issued = trustme.CA().issue_cert("eve@example.org")
    stranger.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    wanted = {**wanted_of(broker, ("SSL", None)), **files, "certificate": str(stranger)}
    assert "error" in run(peers_python, peer, wanted)
