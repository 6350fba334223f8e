"""Tests `kproto broker` as a process: its first line, its log, and its end."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kproto import Client
from kproto.broker import BrokerSettings
from kproto.cli import main
from kproto.cli.broker import _MAX_STORED_BYTES
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.sasl_handshake_request import SaslHandshakeRequest
from kproto.protocol.error_codes import code_of
from tests.support.batches import batch_bytes
from tests.support.cli_process import complaints, started
from tests.support.environment import ROOT
from tests.support.raw_connection import RawConnection
from tests.support.secured_broker import client_tls, password, pem_of, sign_in
from tests.unit.broker.raw_requests import produce_request

TIMEOUT_S = 120


@dataclass
class RunningBroker:
    """The process of `kproto broker`, and the first line that it printed."""

    process: subprocess.Popen[str]
    first_line: str

    @property
    def bootstrap(self) -> str:
        return self.first_line.split()[-1]

    def end(self, number: signal.Signals) -> tuple[int, str, str]:
        """Sends a signal; returns the exit code, standard output and standard error.

        Omits asyncio's lines about slow callbacks from standard error.
        """
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, out, "\n".join(complaints(err))


@contextlib.contextmanager
def running(*arguments: str, module: str = "kproto") -> Iterator[RunningBroker]:
    port = () if "--listener" in arguments else ("--port", "0")
    with started("broker", *port, *arguments, module=module) as process:
        assert process.stdout is not None
        yield RunningBroker(process, process.stdout.readline())


def test_its_first_line_names_where_it_listens_and_what_is_advertised() -> None:
    with running() as broker:
        assert broker.first_line == f"kproto broker, in memory, listens on {broker.bootstrap}\n"
    with running("--advertised-host", "front", "--advertised-port", "19092") as broker:
        assert broker.bootstrap == "front:19092"
        listens = re.fullmatch(
            r"kproto broker, in memory, listens on 127\.0\.0\.1:(\d+); clients connect to \S+\n",
            broker.first_line,
        )
        assert listens
        with socket.create_connection(("127.0.0.1", int(listens[1]))):
            pass


@pytest.mark.slow
def test_it_listens_by_several_protocols(tmp_path: Path) -> None:
    certificate = tmp_path / "broker.pem"
    certificate.write_text(pem_of("localhost", "127.0.0.1"))
    with running(
        *("--listener", "SASL_SSL://127.0.0.1:0", "--listener", "PLAINTEXT://127.0.0.1:0"),
        *("--user", "alice:the secret", "--tls-certificate", str(certificate)),
    ) as broker:
        found = re.fullmatch(
            r"kproto broker, in memory, listens on SASL_SSL://(\S+), PLAINTEXT://(\S+)\n",
            broker.first_line,
        )
        assert found
        with RawConnection(found[1], tls=client_tls()) as connection:
            exchange = password("SCRAM-SHA-512", "alice", "the secret")
            assert sign_in(connection, exchange).error_code == 0
            (node,) = connection.exchange(MetadataRequest(), 9).brokers
            assert f"{node.host}:{node.port}" == found[1]
        with RawConnection(found[2]) as connection:
            assert connection.exchange(MetadataRequest(), 9).controller_id == 1


@pytest.mark.parametrize(
    ("options", "mechanisms"),
    [
        (["--user", "a:b"], ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]),
        (
            ["--user", "a:b", "--unsecured-tokens"],
            ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"],
        ),
        (["--unsecured-tokens"], ["OAUTHBEARER"]),
    ],
)
@pytest.mark.slow
def test_tokens_that_nobody_signed_are_taken_only_if_asked_for(
    options: list[str], mechanisms: list[str]
) -> None:
    with running("--listener", "SASL_PLAINTEXT://127.0.0.1:0", *options) as broker:
        found = re.search(r"SASL_PLAINTEXT://(\S+)\n", broker.first_line)
        assert found
        with RawConnection(found[1]) as connection:
            answer = connection.exchange(SaslHandshakeRequest(mechanism="none"), 1)
            assert answer.mechanisms == mechanisms


@pytest.mark.slow
def test_it_asks_for_rights() -> None:
    with (
        running(
            *("--topic", "open", "--topic", "closed"),
            *("--acl", "allow User:* describe topic open", "--super-user", "User:root"),
        ) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        answer = connection.exchange(MetadataRequest(topics=None), 9)
        assert [topic.name for topic in answer.topics] == ["open"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--acl", "allow User:alice read topic"], 2, "has 4 words"),
        (["--super-user", "root"], 2, "is not of the form Type:name"),
        (["--listener", "SSL://localhost:0"], 2, "a listener of SSL requires --tls-certificate"),
        (["--listener", "PLAINTEXT://localhost:0", "--port", "1"], 2, "--port and --listener are"),
        (["--listener", "TLS://localhost:0"], 2, "is not PROTOCOL://HOST:PORT with one of"),
        (["--listener", "SSL://localhost:x"], 2, "does not end with a port"),
        (["--user", "the secret"], 2, "a user is NAME:PASSWORD"),
        (["--user", "a:the secret"], 2, "no listener has SASL"),
        (["--user", "a:the secret", "--listener", "SSL://localhost:0"], 2, "--user is given"),
        (["--unsecured-tokens"], 2, "--unsecured-tokens is given, and no listener has SASL"),
        (["--listener", "SASL_PLAINTEXT://localhost:0"], 2, "no user can authenticate"),
        (["--user", "a:b", "--user", "a:the secret"], 2, "names a user twice"),
        (["--brokers", "0"], 2, "brokers is 0"),
        (["--release", "5.0"], 2, "release: no release is called '5.0'"),
        (["--replica-selector", "Nearest"], 2, "replica_selector is 'Nearest'"),
        (["--brokers", "3", "--rack", "a"], 2, "--rack is given 1 time, and --brokers is 3"),
        (
            ["--listener", "SSL://localhost:0", "--tls-certificate", "/nowhere"],
            2,
            "certificate ('/nowhere') cannot be read: No such file",
        ),
    ],
)
def test_contradicting_options_are_reported(
    arguments: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        assert main(["broker", *arguments]) == code
    except SystemExit as wrong:
        assert wrong.code == code  # noqa: PT017 - the command returns the code, or exits with it
    error = capsys.readouterr().err
    assert told in error
    assert "the secret" not in error


@pytest.mark.slow
async def test_max_stored_bytes_limits_the_broker() -> None:
    assert BrokerSettings().max_stored_bytes == _MAX_STORED_BYTES
    with running("--topic", "a", "--max-stored-bytes", "5000") as broker:
        large = produce_request(topic="a", records=batch_bytes(value=bytes(5000)))
        with RawConnection(broker.bootstrap) as connection:
            (answer,) = connection.exchange(large, 9).responses[0].partition_responses
        assert answer.error_code == code_of("KAFKA_STORAGE_ERROR")
        async with Client(broker.bootstrap) as client, client.producer() as producer:
            assert (await producer.send("a", bytes(4000))).offset == 0


@pytest.mark.parametrize("module", ["kproto", "kproto.cli"])
@pytest.mark.slow
async def test_it_serves_until_ctrl_c(module: str) -> None:
    with running("--topic", "a:3", "--topic", "b", "--partitions", "2", module=module) as broker:
        async with Client(broker.bootstrap) as client:
            topics = {topic.name: len(topic.partitions) for topic in await client.refresh()}
            assert topics == {"a": 3, "b": 2}
            async with client.producer() as producer:
                ack = await producer.send("a", b"hello")
                assert ack.offset == 0
        assert broker.end(signal.SIGINT) == (0, "", "")


@pytest.mark.slow
async def test_it_ends_on_sigterm_with_clients_connected() -> None:
    with running() as broker:
        async with Client(broker.bootstrap):
            assert broker.end(signal.SIGTERM) == (0, "", "")


@pytest.mark.slow
async def test_verbose_names_every_request() -> None:
    with running("-v", "--auto-create-topics") as broker:
        async with Client(broker.bootstrap) as client:
            await client.create_topics("t")
        code, out, err = broker.end(signal.SIGINT)
    assert (code, out) == (0, "")
    for expected in ("ApiVersionsRequest v5, ", "CreateTopicsRequest v7, ", " bytes, from kproto"):
        assert expected in err


@pytest.mark.slow
def test_a_taken_port_is_one_line() -> None:
    with running() as broker:
        port = broker.bootstrap.rpartition(":")[2]
        again = subprocess.run(
            [sys.executable, "-m", "kproto", "broker", "--port", port],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            cwd=ROOT,
            check=False,
        )
    assert again.returncode == 1
    assert again.stdout == ""
    assert (
        again.stderr
        == f"kproto: error: 127.0.0.1:{port}: cannot listen: {os.strerror(errno.EADDRINUSE)}\n"
    )


@pytest.mark.slow
async def test_three_brokers_in_racks() -> None:
    racks = ("--rack", "a", "--rack", "b", "--rack", "c")
    with running("-v", "--brokers", "3", *racks, "--topic", "t:3") as broker:
        assert broker.bootstrap.count(",") == 2
        async with Client(broker.bootstrap) as client:
            answer = await client.request(MetadataRequest(topics=None))
            async with client.producer() as producer:
                for partition in range(3):
                    await producer.send("t", b"v", partition=partition)
        assert [(node.node_id, node.rack) for node in answer.brokers] == [
            (1, "a"),
            (2, "b"),
            (3, "c"),
        ]
        assert [part.leader_id for part in answer.topics[0].partitions] == [1, 2, 3]
        code, _, err = broker.end(signal.SIGTERM)
        assert code == 0
        for node in (1, 2, 3):
            assert re.search(rf"broker {node}: 127\.0\.0\.1:\d+ ProduceRequest", err)


@pytest.mark.slow
async def test_a_broker_of_a_release_that_sends_readers_to_their_rack() -> None:
    selector = ("--replica-selector", "RackAwareReplicaSelector")
    racks = ("--brokers", "2", "--rack", "a", "--rack", "b")
    with running("--release", "3.9.2", *racks, *selector, "--topic", "t") as broker:
        async with Client(broker.bootstrap) as client:
            keys = (await client.request(ApiVersionsRequest(), broker=1, version=0)).api_keys
            assert [it.max_version for it in keys if it.api_key == 1] == [17]
            (topic,) = (await client.request(MetadataRequest(topics=None))).topics
            leader = topic.partitions[0].leader_id
            wanted = FetchTopic(topic="t", partitions=[FetchPartition()])
            request = FetchRequest(rack_id="ab"[2 - leader], topics=[wanted])
            answer = await client.request(request, broker=leader, version=12)
        assert answer.responses[0].partitions[0].preferred_read_replica == 3 - leader
        assert broker.end(signal.SIGTERM)[0] == 0
