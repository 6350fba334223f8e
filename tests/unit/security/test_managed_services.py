"""Tests the properties files that managed services document; only names are changed."""

from __future__ import annotations

import logging
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from kproto.security import (
    ClientCredentials,
    DelegationToken,
    Plain,
    ScramSha256,
    ScramSha512,
    Tls,
)
from kproto.security.properties import ClientProperties, from_properties

PLAIN_JAVA = """
    # Required connection configs
    bootstrap.servers=pkc-4nxyz.eu-central-1.aws.example.cloud:9092
    security.protocol=SASL_SSL
    sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
username='QXZ7AB3CDEFGH2KL' password='cfltq/Zk0+hunter2==';
    sasl.mechanism=PLAIN
    client.dns.lookup=use_all_dns_ips
    session.timeout.ms=45000
    acks=all
    client.id=ccloud-java-client-5d9c2f11

    # Required connection configs for the schema registry
    schema.registry.url=https://psrc-8qxyz.eu-central-1.aws.example.cloud
    basic.auth.credentials.source=USER_INFO
    basic.auth.user.info=SRKEY:srsecret/hunter2
"""

PLAIN_LIBRDKAFKA = """
    bootstrap.servers=pkc-4nxyz.eu-central-1.aws.example.cloud:9092
    security.protocol=SASL_SSL
    sasl.mechanisms=PLAIN
    sasl.username=QXZ7AB3CDEFGH2KL
    sasl.password=cfltq/Zk0+hunter2==
    session.timeout.ms=45000
    client.id=ccloud-python-client-5d9c2f11
"""

PLAIN_OF_A_HUB = r"""
    bootstrap.servers=mynamespace.servicebus.example.net:9093
    request.timeout.ms=60000
    security.protocol=SASL_SSL
    sasl.mechanism=PLAIN
    sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
username="$ConnectionString" \
password="Endpoint=sb://mynamespace.example.net/;SharedAccessKeyName=all;SharedAccessKey=hunter2=";
"""

SCRAM = r"""
    bootstrap.servers=b-1.demo.c2.kafka.example.com:9096,b-2.demo.c2.kafka.example.com:9096
    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
      username="alice" \
      password="alice-secret-hunter2";
"""

SCRAM_PEM = r"""
    bootstrap.servers=kafka-demo.example.com:21302
    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-256
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
      username="avnadmin" password="AVNS_hunter2";
    ssl.truststore.type=PEM
    ssl.truststore.location=/etc/kafka/ca.pem
    ssl.endpoint.identification.algorithm=
"""

OAUTHBEARER = r"""
    bootstrap.servers=pkc-4nxyz.eu-central-1.aws.example.cloud:9092
    security.protocol=SASL_SSL
    sasl.oauthbearer.token.endpoint.url=https://myidp.example.com/oauth2/default/v1/token
    sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler
    sasl.mechanism=OAUTHBEARER
    sasl.jaas.config= \
      org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
        clientId='0oa1b2c3' \
        scope='kafka' \
        clientSecret='hunter2' \
        extension_logicalCluster='lkc-12345' \
        extension_identityPoolId='pool-abcd';
"""

OAUTHBEARER_LIBRDKAFKA = """
    bootstrap.servers=pkc-4nxyz.eu-central-1.aws.example.cloud:9092
    security.protocol=SASL_SSL
    sasl.mechanisms=OAUTHBEARER
    sasl.oauthbearer.method=OIDC
    sasl.oauthbearer.client.id=0oa1b2c3
    sasl.oauthbearer.client.secret=hunter2
    sasl.oauthbearer.scope=kafka
    sasl.oauthbearer.token.endpoint.url=https://myidp.example.com/oauth2/default/v1/token
    sasl.oauthbearer.extensions=logicalCluster=lkc-12345,identityPoolId=pool-abcd
"""

OAUTHBEARER_STRIMZI = r"""
    bootstrap.servers=demo-c.bf2.kafka.example.com:443
    security.protocol=SASL_SSL
    sasl.mechanism=OAUTHBEARER
    sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
      oauth.client.id="srvc-acct" \
      oauth.client.secret="hunter2" \
      oauth.token.endpoint.uri="https://sso.example.com/token" ;
    sasl.login.callback.handler.class=io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler
"""

CLIENT_CERTIFICATE = """
    bootstrap.servers=kafka-demo.example.com:21301
    security.protocol=SSL
    ssl.ca.location=ca.pem
    ssl.certificate.location=service.cert
    ssl.key.location=service.key
"""


def read(tmp_path: Path, text: str) -> ClientProperties:
    path = tmp_path / "client.properties"
    path.write_text(dedent(text))
    return from_properties(path)


def vars_of(grant: ClientCredentials) -> dict[str, Any]:
    """Returns the settings of a grant, which include headers and body with the secret."""
    return {name: vars(grant)[name] for name in ("token_url", "extensions", "_headers", "_body")}


def said_by(found: ClientProperties) -> dict[str, Any]:
    grant = found.settings["sasl"]
    assert isinstance(grant, ClientCredentials)
    return vars_of(grant)


def test_plain_over_tls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = read(tmp_path, PLAIN_JAVA)
    assert found.bootstrap == "pkc-4nxyz.eu-central-1.aws.example.cloud:9092"
    assert found.settings == {
        "client_id": "ccloud-java-client-5d9c2f11",
        "tls": True,
        "sasl": Plain("QXZ7AB3CDEFGH2KL", "cfltq/Zk0+hunter2=="),
    }
    assert (found.producer, found.consumer) == ({"acks": "all"}, {})
    assert caplog.record_tuples == [
        (
            "kproto.security",
            logging.WARNING,
            (
                f"{tmp_path}/client.properties: no effect here: client.dns.lookup,"
                " schema.registry.url, basic.auth.credentials.source,"
                " basic.auth.user.info"
            ),
        )
    ]
    assert "hunter" not in repr(found) + caplog.text


def test_plain_in_librdkafkas_names(tmp_path: Path) -> None:
    java, here = read(tmp_path, PLAIN_JAVA), read(tmp_path, PLAIN_LIBRDKAFKA)
    assert {**here.settings, "client_id": ""} == {**java.settings, "client_id": ""}


def test_a_password_with_marks_in_it(tmp_path: Path) -> None:
    found = read(tmp_path, PLAIN_OF_A_HUB)
    assert found.settings == {
        "request_timeout_ms": 60_000,
        "tls": True,
        "sasl": Plain(
            "$ConnectionString",
            "Endpoint=sb://mynamespace.example.net/;SharedAccessKeyName=all;"
            "SharedAccessKey=hunter2=",
        ),
    }


def test_scram(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = read(tmp_path, SCRAM)
    assert found.bootstrap is not None
    assert found.bootstrap.count(",") == 1
    assert found.settings == {"tls": True, "sasl": ScramSha512("alice", "alice-secret-hunter2")}
    assert not caplog.records  # no property is unused


def test_scram_with_a_certificate_authority_of_its_own(tmp_path: Path) -> None:
    assert read(tmp_path, SCRAM_PEM).settings == {
        "tls": Tls(ca=Path("/etc/kafka/ca.pem"), check_hostname=False),
        "sasl": ScramSha256("avnadmin", "AVNS_hunter2"),
    }


def test_a_delegation_token(tmp_path: Path) -> None:
    text = SCRAM.replace('"alice" \\', '"token-id" tokenauth="true" \\')
    assert read(tmp_path, text).settings["sasl"] == DelegationToken(
        "token-id", "alice-secret-hunter2", "SCRAM-SHA-512"
    )


@pytest.mark.parametrize("text", [OAUTHBEARER, OAUTHBEARER_LIBRDKAFKA])
def test_a_token_of_a_server(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    assert said_by(found) == vars_of(
        ClientCredentials(
            "https://myidp.example.com/oauth2/default/v1/token",
            "0oa1b2c3",
            "hunter2",
            "kafka",
            extensions={"logicalCluster": "lkc-12345", "identityPoolId": "pool-abcd"},
        )
    )
    assert found.settings["tls"] is True
    assert "hunter" not in repr(found)


def test_strimzis_options(tmp_path: Path) -> None:
    wanted = ClientCredentials("https://sso.example.com/token", "srvc-acct", "hunter2")
    assert said_by(read(tmp_path, OAUTHBEARER_STRIMZI)) == vars_of(wanted)


def test_a_client_certificate(tmp_path: Path) -> None:
    assert read(tmp_path, CLIENT_CERTIFICATE).settings == {
        "tls": Tls(ca=Path("ca.pem"), certificate=Path("service.cert"), key=Path("service.key"))
    }
