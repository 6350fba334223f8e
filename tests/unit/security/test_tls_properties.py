"""Tests the conversion of properties `ssl.*`, with the names of Java and of librdkafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kproto.security import Tls
from kproto.security.properties import read_values
from kproto.wire.errors import ConfigurationError

CERTIFICATE = "-----BEGIN CERTIFICATE-----\n" + "A" * 64 + "\nBBB=\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nhunter2hunter2=\n-----END PRIVATE KEY-----\n"


def tls(**properties: Any) -> Any:
    """Returns the `tls` setting for properties; in a keyword's name, `__` stands for a dot."""
    named = {name.replace("__", "."): value for name, value in properties.items()}
    return read_values({"security.protocol": "SSL", **named}).settings["tls"]


@pytest.mark.parametrize(
    ("properties", "wanted"),
    [
        ({}, True),
        ({"ssl__ca__location": "probe"}, True),
        ({"ssl__truststore__type": "JKS"}, True),
        ({"enable__ssl__certificate__verification": True}, True),
        ({"ssl__endpoint__identification__algorithm": "HTTPS"}, True),
        ({"ssl__endpoint__identification__algorithm": "none"}, Tls(check_hostname=False)),
        ({"enable__ssl__certificate__verification": "false"}, Tls(verify=False)),
        ({"ssl__truststore__certificates": CERTIFICATE}, Tls(ca=CERTIFICATE)),
        ({"ssl__ca__pem": CERTIFICATE.replace("\n", " ")}, Tls(ca=CERTIFICATE)),
        ({"ssl__ca__pem": CERTIFICATE + "\n" + CERTIFICATE}, Tls(ca=CERTIFICATE * 2)),
        (
            {"ssl__truststore__type": "pem", "ssl__truststore__location": "ca.pem"},
            Tls(ca=Path("ca.pem")),
        ),
        (
            {
                "ssl__ca__location": "/a",
                "ssl__truststore__type": "PEM",
                "ssl__truststore__location": "/a",
            },
            Tls(ca=Path("/a")),
        ),
        (
            {
                "ssl__keystore__type": "PEM",
                "ssl__keystore__location": "me.pem",
                "ssl__key__password": "p",
            },
            Tls(certificate=Path("me.pem"), key_password="p"),
        ),
        (
            {
                "ssl__keystore__type": "PEM",
                "ssl__keystore__certificate__chain": CERTIFICATE,
                "ssl__keystore__key": KEY,
            },
            Tls(certificate=CERTIFICATE, key=KEY),
        ),
        (
            {"ssl__certificate__pem": CERTIFICATE, "ssl__key__pem": KEY},
            Tls(certificate=CERTIFICATE, key=KEY),
        ),
    ],
)
def test_properties_set_the_tls_settings(properties: dict[str, Any], wanted: bool | Tls) -> None:
    assert tls(**properties) == wanted


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        (
            {"ssl__truststore__location": "trust.jks"},
            (
                r"^ssl\.truststore\.location is a JKS store, because ssl\.truststore\.type is not "
                r"set; kproto reads only PEM\. Convert it: keytool -list -rfc -keystore STORE > "
                r"ca\.pem\. Then set ssl\.truststore\.type=PEM and "
                r"ssl\.truststore\.location=ca\.pem"
            ),
        ),
        (
            {"ssl__truststore__type": "PKCS12", "ssl__truststore__location": "t.p12"},
            r"is a PKCS12 store; .*openssl pkcs12 -in STORE -nokeys -out ca\.pem",
        ),
        (
            {"ssl__keystore__location": "me.jks"},
            "is a JKS store, .*keytool -importkeystore .*openssl pkcs12",
        ),
        (
            {"ssl__keystore__type": "pkcs12", "ssl__keystore__location": "me.p12"},
            r"is a PKCS12 store; .*openssl pkcs12 -in STORE -out me\.pem",
        ),
        ({"ssl__keystore__type": "BCFKS"}, r"^ssl\.keystore\.type must be PEM"),
        (
            {"ssl__truststore__type": "JKS", "ssl__truststore__certificates": CERTIFICATE},
            r"set ssl\.truststore\.type=PEM",
        ),
        (
            {"ssl__ca__location": "/a", "ssl__ca__pem": CERTIFICATE},
            r"^ssl\.ca\.location and ssl\.ca\.pem set the same thing, and differ",
        ),
        ({"ssl__key__location": "/k"}, r"^ssl\.key\.location is set without its certificate"),
        ({"ssl__keystore__key": KEY}, r"^ssl\.keystore\.key is set without its certificate"),
        ({"ssl__key__password": "hunter2"}, r"^ssl\.key\.password is set without a certificate"),
        (
            {
                "ssl__keystore__type": "PEM",
                "ssl__keystore__location": "/me",
                "ssl__key__pem": KEY,
            },
            r"^ssl\.keystore\.location holds the private key too: omit ssl\.key\.pem",
        ),
        ({"ssl__key__pem": "hunter2"}, r"^ssl\.key\.pem cannot be read; it must be PEM"),
        (
            {"ssl__ca__location": ""},
            r"^ssl\.ca\.location cannot be read; it must be the path of a file",
        ),
        ({"ssl__endpoint__identification__algorithm": "x"}, "it must be https, none or empty"),
    ],
)
def test_contradictions_are_reported(properties: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        tls(**properties)
    assert "hunter" not in str(caught.value)


def test_an_encrypted_key_with_headers_stays_as_it_is() -> None:
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n"
        "abcd\n-----END RSA PRIVATE KEY-----\n"
    )
    assert tls(ssl__certificate__pem=CERTIFICATE, ssl__key__pem=key).key == key
