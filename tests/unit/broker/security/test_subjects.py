"""Tests certificate subjects as strings, against results of Java's `X500Principal.getName()`."""

from __future__ import annotations

import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from kproto.broker.security.subjects import subject_of
from kproto.wire.errors import AuthenticationError

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
CN = NameOID.COMMON_NAME


Attribute = tuple[x509.ObjectIdentifier, str, _ASN1Type | None]


def certificate(*relative_names: list[Attribute]) -> bytes:
    """Returns a DER certificate with this subject."""
    subject = x509.Name(
        x509.RelativeDistinguishedName(
            x509.NameAttribute(kind, value, as_type) for kind, value, as_type in each
        )
        for each in relative_names
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(x509.Name([x509.NameAttribute(CN, "issuer")]))
        .public_key(KEY.public_key())
        .serial_number(5)
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2040, 1, 1, tzinfo=dt.UTC))
        .sign(KEY, None)
        .public_bytes(serialization.Encoding.DER)
    )


def one(text: str, as_type: _ASN1Type | None = None) -> bytes:
    return certificate([(CN, text, as_type)])


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            certificate(
                [(NameOID.COUNTRY_NAME, "DE", None)],
                [(NameOID.ORGANIZATION_NAME, "Bread", None)],
                [(NameOID.ORGANIZATIONAL_UNIT_NAME, "Oven", None)],
                [(CN, "alice", None)],
            ),
            "CN=alice,OU=Oven,O=Bread,C=DE",
        ),
        (
            certificate(
                [
                    (CN, "x", None),
                    (NameOID.ORGANIZATION_NAME, "y", None),
                    (NameOID.USER_ID, "u", None),
                ],
                [(NameOID.DOMAIN_COMPONENT, "kproto", None)],
                [(NameOID.STREET_ADDRESS, "s", None)],
                [(NameOID.STATE_OR_PROVINCE_NAME, "st", None)],
                [(NameOID.LOCALITY_NAME, "l", None)],
            ),
            "L=l,ST=st,STREET=s,DC=kproto,CN=x+O=y+UID=u",
        ),
        (
            certificate(
                [(NameOID.EMAIL_ADDRESS, "a@b.c", None)],
                [(NameOID.SERIAL_NUMBER, "123", None)],
                [(CN, "mail", None)],
            ),
            "CN=mail,2.5.4.5=#1303313233,1.2.840.113549.1.9.1=#16056140622e63",
        ),
        (one('a,b+c=d#e"f;g<h>i\\j'), r"CN=a\,b\+c\=d\#e\"f\;g\<h\>i\\j"),
        (one(" lead"), r"CN=\ lead"),
        (one("trail  "), r"CN=trail\ \ "),
        (one("   "), r"CN=\ \ \ "),
        (one("#x"), r"CN=\#x"),
        (one("a\0b"), r"CN=a\00b"),
        (one("Grüße 🥖 日本"), "CN=Grüße 🥖 日本"),
        (one("t61 x", _ASN1Type.T61String), "CN=t61 x"),
        (one("bmp", _ASN1Type.BMPString), r"CN=\00b\00m\00p"),
        (one("vis", _ASN1Type.VisibleString), "CN=#1a03766973"),
        (one("num 1", _ASN1Type.NumericString), "CN=#12056e756d2031"),
        (certificate(), ""),
    ],
)
def test_a_subject_is_written_as_java_writes_it(made: bytes, expected: str) -> None:
    assert subject_of(made) == expected


@given(st.binary(max_size=200))
def test_invalid_certificate_raises_authentication_error(data: bytes) -> None:
    with pytest.raises(AuthenticationError, match="subject that cannot be read"):
        subject_of(data)


@given(st.data())
def test_a_certificate_that_is_cut_or_changed_gives_text_or_that_error(data: st.DataObject) -> None:
    whole = bytearray(one("alice"))
    at = data.draw(st.integers(0, 120))
    whole[at] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(whole)))
    try:
        assert isinstance(subject_of(bytes(whole[:end])), str)
    except AuthenticationError as error:
        assert "subject" in str(error)  # noqa: PT017 - either is right
