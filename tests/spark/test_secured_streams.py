"""Tests streams and the sink on a secured real broker, over connections that must sign in again.

The sessions of the listener SHORT end after `SESSION_MS`, so each process of a query signs in again
while the query runs.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from kproto.client import Client, NewTopic
from tests.spark.streams import planned
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.secured import Operation, allow
from tools.kafka import VERSIONS
from tools.kafka.secured import SESSION_MS, SecuredKafka, unsecured_token

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore:::pyspark"),
]

#: The lifetime of an issued token, in seconds.
TOKEN_S = 4

#: The records that a test sends, and the time over which it sends them, in seconds: a query reads
#: during several sessions, and during the lifetimes of several tokens.
RECORDS = 900
SENDING_S = 3 * max(SESSION_MS / 1000, TOKEN_S)

_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@pytest.fixture(scope="module")
def secured() -> Iterator[SecuredKafka]:
    try:
        with SecuredKafka(VERSIONS[0]) as kafka:
            yield kafka
    except CANNOT_START as error:
        not_available("a secured Kafka", error)


class Issuer(ThreadingHTTPServer):
    """A token endpoint for the client-credentials grant; its tokens are valid for `TOKEN_S`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Grant)
        self.url = f"http://127.0.0.1:{self.server_port}/token"
        #: The form and the header `Authorization` of each request.
        self.requests: list[tuple[dict[str, list[str]], str | None]] = []


class _Grant(BaseHTTPRequestHandler):
    server: Issuer

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.requests.append((form, self.headers["Authorization"]))
        token = unsecured_token("alice", lifetime_s=TOKEN_S)
        body = json.dumps({"access_token": token, "expires_in": TOKEN_S}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Writes no log."""


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def create_topics(kafka: SecuredKafka, *topics: str) -> None:
    """Creates topics of two partitions that alice may read and write."""

    async def run() -> None:
        async with Client(kafka.bootstrap["PLAINTEXT"]) as admin:
            await admin.create_topics(*(NewTopic(topic, partitions=2) for topic in topics))
            for topic in topics:
                await allow(admin, topic, Operation.READ, Operation.WRITE)

    asyncio.run(run())


async def _send_slowly(bootstrap: str, topic: str, first: int) -> None:
    async with Client(bootstrap) as client, client.producer() as producer:
        for number in range(first, first + RECORDS):
            await producer.send(topic, b"%d" % number, partition=number % 2)
            await asyncio.sleep(SENDING_S / RECORDS)


def values_of(bootstrap: str, topic: str) -> list[int]:
    """Returns all values of a topic, sorted."""

    async def run() -> list[int]:
        async with (
            Client(bootstrap) as client,
            client.consumer(topic, start="earliest", stop_at_end=True) as consumer,
        ):
            return sorted([int(each.value or b"") async for each in consumer])

    return asyncio.run(run())


def run_while_records_arrive(
    spark: Any, options: Mapping[str, str], plain: str, topics: tuple[str, str], folder: Path
) -> None:
    """Copies a topic to another topic by a stream, twice from one checkpoint, as records arrive."""
    source, target = topics
    for run in range(2):
        query = planned(
            lambda: (
                spark.readStream.format("kproto")
                .options(**options, subscribe=source, startingOffsets="earliest")
                .load()
                .select("value", "partition")
                .writeStream.format("kproto")
                .options(**options, topic=target)
                .option("checkpointLocation", str(folder))
                .trigger(processingTime="1 second")
                .start()
            )
        )
        try:
            asyncio.run(_send_slowly(plain, source, run * RECORDS))
            query.processAllAvailable()
        finally:
            query.stop()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_stream_over_tls_and_scram_signs_in_again(
    spark: Any, secured: SecuredKafka, topic_name: str, tmp_path: Path, mechanism: str
) -> None:
    source, target = f"{topic_name}-in", f"{topic_name}-out"
    create_topics(secured, source, target)
    options = {f"kafka.{k}": v for k, v in secured.properties("SHORT", mechanism).items()}
    plain = secured.bootstrap["PLAINTEXT"]
    run_while_records_arrive(spark, options, plain, (source, target), tmp_path)
    assert values_of(plain, target) == list(range(2 * RECORDS))
    read = spark.read.format("kproto").options(**options, subscribe=target).load()
    assert read.count() == 2 * RECORDS


GRANTS = {
    "Kafka 4.0's properties": {
        "kafka.sasl.oauthbearer.client.credentials.client.id": "spark",
        "kafka.sasl.oauthbearer.client.credentials.client.secret": "kestrel",
        "kafka.sasl.oauthbearer.scope": "stream",
        "kafka.sasl.jaas.config": f"{_LOGIN};",
        "kafka.sasl.login.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        ),
    },
    "jaas": {
        "kafka.sasl.jaas.config": (
            f'{_LOGIN} clientId="spark" clientSecret="kestrel" scope="stream";'
        ),
        "kafka.sasl.login.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
        ),
    },
    "librdkafka": {
        "kafka.sasl.oauthbearer.method": "oidc",
        "kafka.sasl.oauthbearer.client.id": "spark",
        "kafka.sasl.oauthbearer.client.secret": "kestrel",
        "kafka.sasl.oauthbearer.scope": "stream",
    },
}


@pytest.mark.parametrize("names", GRANTS)
def test_stream_requests_new_tokens_while_it_runs(
    spark: Any, secured: SecuredKafka, issuer: Issuer, topic_name: str, tmp_path: Path, names: str
) -> None:
    source, target = f"{topic_name}-in", f"{topic_name}-out"
    create_topics(secured, source, target)
    options = {
        "kafka.bootstrap.servers": secured.bootstrap["SASL_SSL"],
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": secured.authority.pem,
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.oauthbearer.token.endpoint.url": issuer.url,
        **GRANTS[names],
    }
    plain = secured.bootstrap["PLAINTEXT"]
    run_while_records_arrive(spark, options, plain, (source, target), tmp_path)
    assert values_of(plain, target) == list(range(2 * RECORDS))
    read = spark.read.format("kproto").options(**options, subscribe=target).load()
    assert read.count() == 2 * RECORDS
    forms = {(str(form), header) for form, header in issuer.requests}
    assert len(forms) == 1, "all requests are the same"
    ((form, header),) = forms
    assert "client_credentials" in form
    assert "stream" in form
    assert header is not None
    # The planner and the workers of two runs each request a token for every `TOKEN_S`.
    assert len(issuer.requests) > 2 * SENDING_S / TOKEN_S
    print(len(issuer.requests))
