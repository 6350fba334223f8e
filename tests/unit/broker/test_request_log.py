"""Tests the log of requests: its order, its filter and its limits."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.broker import RequestLog
from kproto.messages import FetchRequest, MetadataRequest
from kproto.messages.base import Request
from kproto.protocol.connection import ReceivedRequest
from kproto.wire.errors import ConfigurationError


def received(message: Request[Any], size: int = 10) -> ReceivedRequest:
    return ReceivedRequest(message.API_KEY, 12, 1, "billing", message, size, b"", cls=type(message))


def test_log_keeps_requests_in_their_order_and_finds_them_by_class() -> None:
    log = RequestLog()
    for message in (MetadataRequest(), FetchRequest(), MetadataRequest(topics=None)):
        assert log(received(message)) is None
    assert [it.name for it in log.requests()] == [
        "MetadataRequest",
        "FetchRequest",
        "MetadataRequest",
    ]
    assert [it.message.topics for it in log.requests(MetadataRequest)] == [[], None]
    assert str(log.requests()[0]) == "MetadataRequest v12 from billing"


def test_log_drops_the_oldest_requests_beyond_its_limits() -> None:
    log = RequestLog(max_requests=3, max_bytes=100)
    for size in (10, 20, 30, 40):
        log(received(MetadataRequest(), size))
    assert [it.size for it in log.requests()] == [20, 30, 40]
    log(received(MetadataRequest(), 500))  # larger than the log: kept alone
    assert [it.size for it in log.requests()] == [500]
    assert log.dropped == 4
    log.clear()
    assert (log.requests(), log.dropped) == ([], 0)


def test_request_without_definition_is_logged_by_its_key() -> None:
    log = RequestLog()
    log(ReceivedRequest(999, 0, 1, None, None, 10, b""))
    (logged,) = log.requests()
    assert str(logged) == "api key 999 v0 from no client id"
    assert log.requests(MetadataRequest) == []


@pytest.mark.parametrize("limits", [{"max_requests": 0}, {"max_bytes": 0}])
def test_limit_below_one_is_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError):
        RequestLog(**limits)
