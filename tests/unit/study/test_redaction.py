"""Tests that outputs and recordings show no secret; redacted frames must keep their structure."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.messages import SaslAuthenticateRequest, SaslAuthenticateResponse
from kproto.messages.alter_configs_request import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from kproto.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kproto.messages.base import Request
from kproto.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kproto.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kproto.messages.envelope_request import EnvelopeRequest
from kproto.messages.envelope_response import EnvelopeResponse
from kproto.messages.metadata_request import MetadataRequest
from kproto.protocol.connection import ClientConnection, read_request
from kproto.protocol.framing import frame
from kproto.proxy.event_log import event_as_text
from kproto.study.conversations import ConversationSplitter, EventKind, Side, TrafficEvent
from kproto.study.redaction import redact_frame, redacted_json
from kproto.study.secret_fields import HIDDEN, has_secrets
from tests.unit.study.talk import Step, frames

SECRET = b"tops3cret!"

REQUESTS = [
    (SaslAuthenticateRequest(auth_bytes=SECRET), 2),
    (SaslAuthenticateRequest(auth_bytes=SECRET), 0),
    (
        AlterUserScramCredentialsRequest(
            upsertions=[ScramCredentialUpsertion(name="u", salt=SECRET, salted_password=SECRET)]
        ),
        0,
    ),
    (
        AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_name="n",
                    configs=[AlterableConfig(name="password", value=SECRET.decode())],
                )
            ]
        ),
        2,
    ),
    (EnvelopeRequest(request_data=b"..." + SECRET, client_host_address=b"1234"), 0),
]


def event_of(request: Request[Any], version: int) -> TrafficEvent:
    _, asked = ClientConnection("me").send(request, version)
    (event,) = ConversationSplitter().feed(Side.CLIENT, 0, asked)
    return event


@pytest.mark.parametrize(("request_", "version"), REQUESTS)
def test_a_secret_is_asterisks_in_a_frame_to_read(request_: Request[Any], version: int) -> None:
    event = event_of(request_, version)
    hidden = redact_frame(event)
    assert SECRET in event.data
    assert SECRET not in hidden
    assert len(hidden) == len(event.data)
    assert b"*" * len(SECRET) in hidden
    assert read_request(hidden[4:]).message is not None
    assert redact_frame(event) == hidden  # redaction does not change the event itself


@pytest.mark.parametrize(("request_", "version"), REQUESTS)
def test_a_secret_is_hidden_in_json(request_: Request[Any], version: int) -> None:
    hidden = redacted_json(request_, version)
    assert HIDDEN in str(hidden)
    assert redacted_json(request_, version, show=True) == request_.to_json(version)
    shown = str(request_.to_json(version))
    assert all(word in shown for word in str(hidden).split() if HIDDEN not in word)


def test_answers_have_secrets_too() -> None:
    steps: list[Step] = [
        (SaslAuthenticateRequest(auth_bytes=b"x"), SaslAuthenticateResponse(auth_bytes=SECRET), 2),
        (
            CreateDelegationTokenRequest(),
            CreateDelegationTokenResponse(token_id="t", hmac=SECRET),
            3,
        ),
        (
            EnvelopeRequest(request_data=b"...", client_host_address=b"1234"),
            EnvelopeResponse(response_data=b"..." + SECRET),
            0,
        ),
    ]
    talk = ConversationSplitter()
    for asked, answer in frames(steps):
        talk.feed(Side.CLIENT, 0, asked)
        (event,) = talk.feed(Side.BROKER, 0, answer)
        assert SECRET in event.data
        assert SECRET not in redact_frame(event)


def test_unreadable_bytes_that_may_be_secret_are_hidden() -> None:
    _, asked = ClientConnection("me").send(SaslAuthenticateRequest(auth_bytes=SECRET), 2)
    cut = frame(asked[4:-3])
    (broken,) = ConversationSplitter().feed(Side.CLIENT, 0, cut)
    assert broken.kind is EventKind.BROKEN
    assert redact_frame(broken) == cut[:12] + b"*" * (len(cut) - 12)
    future = frame(b"\0\x24\0\x63", asked[8:])  # no definition has this version
    (unknown,) = ConversationSplitter().feed(Side.CLIENT, 0, future)
    assert unknown.kind is EventKind.UNKNOWN
    assert SECRET not in redact_frame(unknown)
    (raw,) = ConversationSplitter().feed(Side.CLIENT, 0, b"\xff\xff\xff\xff" + SECRET)
    assert SECRET not in redact_frame(raw)


def test_unknown_message_is_hidden_after_its_header() -> None:
    talk = ConversationSplitter()
    future = frame(b"\0\xff\0\1\0\0\0\7\0\2me" + SECRET)
    (unknown,) = talk.feed(Side.CLIENT, 0, future)
    assert unknown.kind is EventKind.UNKNOWN
    assert redact_frame(unknown) == future[: -len(SECRET)] + b"*" * len(SECRET)
    answer = frame(b"\0\0\0\7" + SECRET)
    (told,) = talk.feed(Side.BROKER, 0, answer)
    assert redact_frame(told) == answer[:8] + b"*" * len(SECRET)


def test_a_token_without_a_handshake_is_not_told() -> None:
    (token,) = ConversationSplitter().feed(Side.CLIENT, 0, frame(b"\x60\x31" + SECRET * 2))
    assert token.kind is EventKind.BROKEN
    assert redact_frame(token) == token.data[:8] + b"*" * (len(token.data) - 8)
    number = int.from_bytes(SECRET[2:6], "big")
    assert str(number) not in event_as_text(token, 1)
    assert "bytes are" not in event_as_text(token, 1)


def test_bytes_after_a_body_with_a_secret_are_hidden() -> None:
    _, asked = ClientConnection("me").send(SaslAuthenticateRequest(auth_bytes=b"x"), 1)
    more = frame(asked[4:] + SECRET)
    talk = ConversationSplitter()
    (event,) = talk.feed(Side.CLIENT, 0, more)
    assert event.kind is EventKind.MESSAGE
    assert redact_frame(event) == more[: -len(SECRET) - 1] + b"*" * (len(SECRET) + 1)
    body = SaslAuthenticateResponse(auth_bytes=b"x").encode(1)
    answer = frame(asked[8:12] + body + SECRET)
    (told,) = talk.feed(Side.BROKER, 0, answer)
    assert SECRET not in redact_frame(told)


def test_other_frames_stay_as_they_are() -> None:
    event = event_of(MetadataRequest(topics=[]), 12)
    assert redact_frame(event) is event.data
    assert not has_secrets(MetadataRequest)
    assert has_secrets(SaslAuthenticateResponse)
