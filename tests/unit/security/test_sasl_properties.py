"""Tests the conversion of properties `sasl.*`: mechanisms, login modules, tokens, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kproto.security import ClientCredentials, DelegationToken, OAuthBearer, Plain, ScramSha256, Tls
from kproto.security.properties import read_values
from kproto.security.token_sources import TokenFile
from kproto.wire.errors import ConfigurationError

KAFKA = "org.apache.kafka.common.security."
PLAIN = f"{KAFKA}plain.PlainLoginModule"
SCRAM = f"{KAFKA}scram.ScramLoginModule"
BEARER = f"{KAFKA}oauthbearer.OAuthBearerLoginModule"
URL = "https://idp.example.com/token"


def sasl(mechanism: str | None, properties: dict[str, Any]) -> Any:
    named = {} if mechanism is None else {"sasl.mechanism": mechanism}
    return read_values({"security.protocol": "SASL_SSL", **named, **properties}).settings["sasl"]


def jaas(module: str, **options: str) -> dict[str, str]:
    told = " ".join(f'{name.replace("__", ".")}="{value}"' for name, value in options.items())
    return {"sasl.jaas.config": f"{module} required {told};"}


@pytest.mark.parametrize(
    ("mechanism", "properties", "wanted"),
    [
        ("PLAIN", jaas(PLAIN, username="a", password="b"), Plain("a", "b")),
        (
            "PLAIN",
            {"sasl.username": "a", "sasl.password": "b", **jaas(PLAIN, username="a", password="b")},
            Plain("a", "b"),
        ),
        ("PLAIN", {"sasl.username": "a", **jaas(PLAIN, password="b")}, Plain("a", "b")),
        (
            "SCRAM-SHA-256",
            jaas(f"kafkashaded.{SCRAM}", username="a", password="b"),
            ScramSha256("a", "b"),
        ),
        (
            "SCRAM-SHA-256",
            jaas(SCRAM, username="a", password="b", tokenauth="true"),
            DelegationToken("a", "b"),
        ),
        (
            "SCRAM-SHA-256",
            jaas(SCRAM, username="a", password="b", tokenauth="false"),
            ScramSha256("a", "b"),
        ),
        # Spaces at the ends of a secret in a mapping belong to the secret.
        ("PLAIN", {"sasl.username": " a ", "sasl.password": " b "}, Plain("a", " b ")),
    ],
)
def test_names_and_passwords(mechanism: str, properties: dict[str, str], wanted: Any) -> None:
    assert sasl(mechanism, properties) == wanted


@pytest.mark.parametrize(
    ("mechanism", "properties", "said"),
    [
        (None, {}, r"^sasl\.mechanism is not set, and its default is GSSAPI"),
        ("GSSAPI", {}, r"^sasl\.mechanism asks for GSSAPI \(Kerberos\), which kproto does not"),
        (
            "PLAIN",
            jaas("com.sun.security.auth.module.Krb5LoginModule", useKeyTab="true"),
            r"^sasl\.jaas\.config asks for GSSAPI",
        ),
        (
            "AWS_MSK_IAM",
            jaas("software.amazon.msk.auth.iam.IAMLoginModule"),
            r"^sasl\.mechanism is 'AWS_MSK_IAM'; kproto has PLAIN, .*from_properties\(…, sasl=…\)",
        ),
        ("hunter2", {}, r"^sasl\.mechanism is no mechanism"),
        (
            "PLAIN",
            jaas("com.example.LoginModule", password="hunter2"),
            r"^sasl\.jaas\.config has a login module com\.example\.LoginModule that kproto does",
        ),
        ("PLAIN", jaas("hunter2"), "has a login module that kproto does not support"),
        (
            "SCRAM-SHA-512",
            jaas(PLAIN, username="a", password="hunter2"),
            "has PlainLoginModule, which is for PLAIN, and sasl.mechanism is SCRAM-SHA-512",
        ),
        ("PLAIN", {}, r"^sasl\.mechanism needs a username, and none is set: set sasl\.username"),
        (
            "PLAIN",
            {"sasl.username": "a"},
            r"needs a password, and none is set: set sasl\.password, or sasl\.jaas\.config",
        ),
        ("PLAIN", jaas(PLAIN, username="a"), r"^sasl\.jaas\.config needs a password"),
        ("PLAIN", jaas(PLAIN, username="a", password=""), "^the option password of .* is empty"),
        (
            "PLAIN",
            {"sasl.username": "b", **jaas(PLAIN, username="a", password="hunter2")},
            r"^sasl\.username and the option username of sasl\.jaas\.config set the same thing",
        ),
        (
            "PLAIN",
            {"sasl.password": "hunter3", **jaas(PLAIN, username="a", password="hunter2")},
            r"^sasl\.password and the option password of sasl\.jaas\.config set the same thing",
        ),
        ("PLAIN", {"sasl.username": "a", "sasl.password": "hun\0ter"}, "holds a NUL"),
        ("PLAIN", {"sasl.mechanisms": "SCRAM-SHA-256"}, r"^sasl\.mechanism and sasl\.mechanisms"),
        ("OAUTHBEARER", {}, r"needs sasl\.oauthbearer\.token\.endpoint\.url, .*OAuthBearer\("),
        (
            "OAUTHBEARER",
            {"sasl.oauthbearer.token.endpoint.url": URL},
            r"needs sasl\.oauthbearer\.client\.credentials\.client\.id, or the option clientId",
        ),
        (
            "OAUTHBEARER",
            {"sasl.oauthbearer.token.endpoint.url": URL, **jaas(BEARER, clientId="a")},
            "or the option clientSecret",
        ),
        (
            "OAUTHBEARER",
            {
                "sasl.oauthbearer.token.endpoint.url": URL,
                **jaas(BEARER, clientId="a", clientSecret=""),
            },
            "^the option clientSecret of sasl.jaas.config is empty",
        ),
        (
            "OAUTHBEARER",
            {"sasl.login.callback.handler.class": "com.google.cloud.GcpLoginCallbackHandler"},
            r"^sasl\.login\.callback\.handler\.class is com\.google\.cloud\.GcpLoginCallback",
        ),
        (
            "OAUTHBEARER",
            {"sasl.oauthbearer.jwt.retriever.class": f"{KAFKA}oauthbearer.JwtBearerJwtRetriever"},
            r"^sasl\.oauthbearer\.jwt\.retriever\.class is org\.apache.* does not support",
        ),
        (
            "OAUTHBEARER",
            {"sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer"},
            r"^sasl\.oauthbearer\.grant\.type must be client_credentials",
        ),
        (
            "OAUTHBEARER",
            {"sasl.oauthbearer.extensions": "hunter2"},
            r"^sasl\.oauthbearer\.extensions must be key=value,key=value",
        ),
        (
            "OAUTHBEARER",
            {"sasl.oauthbearer.extensions": "a=hunter2", **jaas(BEARER, extension_a="hunter3")},
            r"^sasl\.oauthbearer\.extensions and the options extension_… .* differ",
        ),
        (
            "OAUTHBEARER",
            {"sasl.oauthbearer.token.endpoint.url": "file://elsewhere/hunter2"},
            r"must be https://… or file:///path",
        ),
        (
            "OAUTHBEARER",
            jaas(BEARER, unsecuredLoginStringClaim_sub="a", unsecuredLoginLifetimeSeconds="x"),
            "unsecuredLoginLifetimeSeconds of sasl.jaas.config must be a number",
        ),
    ],
)
def test_missing_and_unknown_values_are_reported(
    mechanism: str | None, properties: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        sasl(mechanism, properties)
    assert "hunter" not in str(caught.value)


def test_the_grant_by_properties_of_newer_kafkas() -> None:
    properties = {
        "sasl.oauthbearer.jwt.retriever.class": f"{KAFKA}oauthbearer.ClientCredentialsJwtRetriever",
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": "hunter/2",
        "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.header.urlencode": "true",
        "sasl.oauthbearer.token.endpoint.url": URL,
        "https.ca.location": "/ca.pem",
    }
    made = sasl("OAUTHBEARER", properties)
    wanted = ClientCredentials(URL, "me", "hunter/2", "kafka", url_encoded=True)
    for name in ("token_url", "scope", "_headers"):
        assert vars(made)[name] == vars(wanted)[name]
    assert vars(made)["_tls"] == Tls(ca=Path("/ca.pem"))
    assert "hunter" not in repr(made)


def test_errors_of_the_grant_name_the_property() -> None:
    properties = {
        "sasl.oauthbearer.token.endpoint.url": "gopher://hunter2",
        **jaas(BEARER, clientId="me", clientSecret="hunter2"),
    }
    with pytest.raises(ConfigurationError, match=r"^sasl\.oauthbearer\.token\.endpoint\.url: "):
        sasl("OAUTHBEARER", properties)


async def test_a_token_that_stands_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a token"
    path.write_text("header.claims.signature\n")
    url = path.as_uri()
    made = sasl("OAUTHBEARER", {"sasl.oauthbearer.token.endpoint.url": url})
    assert made.token == TokenFile(path)
    exchange = await made.exchange("broker")
    assert b"auth=Bearer header.claims.signature\x01" in exchange.first()


async def test_a_token_that_stands_in_strimzis_options() -> None:
    made = sasl(
        "OAUTHBEARER",
        {
            "sasl.login.callback.handler.class": (
                "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
            ),
            **jaas(BEARER, oauth__access__token="a.b.c"),
        },
    )
    assert b"auth=Bearer a.b.c\x01" in (await made.exchange("broker")).first()


async def test_a_token_that_nobody_signed() -> None:
    made = sasl("OAUTHBEARER", jaas(BEARER, unsecuredLoginStringClaim_sub="alice", extension_a="b"))
    assert isinstance(made, OAuthBearer)
    first = (await made.exchange("broker")).first()
    assert first.startswith(b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.")
    assert first.endswith(b".\x01a=b\x01\x01")
