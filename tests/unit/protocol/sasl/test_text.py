"""Tests SASLprep (RFC 4013): mapped and refused characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.protocol.sasl.credentials import SaltedCredential
from kproto.protocol.sasl.saslprep import saslprep
from kproto.wire.errors import AuthenticationError


@pytest.mark.parametrize(
    ("given_text", "prepared"),
    [  # RFC 4013, 3, and the mappings of 2.1
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b\u3000c", "a b c"),
        ("e\u0301", "é"),
        ("\u0627\u0031\u0628", "\u06271\u0628"),
        ("\U0001f642", "\U0001f642"),  # unassigned in Unicode 3.2, which a query string may contain
    ],
)
def test_saslprep(given_text: str, prepared: str) -> None:
    assert saslprep(given_text, "password") == prepared


@pytest.mark.parametrize(
    ("given_text", "complaint"),
    [  # the first two are from RFC 4013, 3
        ("\u0007", "control character"),
        ("\u0627\u0031", "directions of writing"),
        ("\u0031\u0627", "directions of writing"),
        ("\u0627a\u0628", "directions of writing"),
        ("", "empty once prepared"),
        ("\u200b\u00ad", "empty once prepared"),
        ("a\u0085", "control character"),
        ("a\ue000", "private-use"),
        ("a\ufdd0", "non-character"),
        ("a\ud800", "surrogate"),
        ("a\ufffd", "plain text"),
        ("a\u2ff0", "canonical representation"),
        ("a\u202e", "display properties"),
        ("a\U000e0041", "tagging"),
    ],
)
def test_saslprep_refuses(given_text: str, complaint: str) -> None:
    with pytest.raises(AuthenticationError, match=f"the password .*{complaint}"):
        saslprep(given_text, "password")


def test_only_a_stored_string_must_be_assigned() -> None:
    with pytest.raises(AuthenticationError, match=r"Unicode 3\.2 does not assign"):
        saslprep("\U0001f642", "password", stored=True)
    with pytest.raises(AuthenticationError, match=r"Unicode 3\.2 does not assign"):
        SaltedCredential.derive("\U0001f642")
    as_it_is = SaltedCredential.derive("\U0001f642", prepare_strings=False)
    assert as_it_is.matches("\U0001f642", prepare_strings=False)


@given(st.text(max_size=20))
def test_saslprep_is_idempotent(some_text: str) -> None:
    try:
        prepared = saslprep(some_text, "text")
    except AuthenticationError:
        return
    assert saslprep(prepared, "text") == prepared
