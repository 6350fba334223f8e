"""Tests the lookup of messages by any of their names."""

from __future__ import annotations

import pytest

from kproto.schema.definitions import union
from kproto.schema.message_lookup import find_messages
from kproto.schema.unknown_names import UnknownNameError


def names(text: str) -> list[str]:
    return [spec.name for spec in find_messages(text)]


@pytest.mark.parametrize("text", ["Heartbeat", "heartbeat", "HEARTBEAT", "12"])
def test_an_api_name_finds_its_request_and_response(text: str) -> None:
    assert names(text) == ["HeartbeatRequest", "HeartbeatResponse"]


def test_every_message_is_found_by_its_name_in_any_case() -> None:
    for name in union():
        assert names(name) == names(name.lower()) == [name]


def test_names_of_former_releases_are_found() -> None:
    now = ["ListConfigResourcesRequest", "ListConfigResourcesResponse"]
    assert names("ListClientMetricsResources") == now
    assert names("listclientmetricsresourcesrequest") == now[:1]
    assert names("OffsetCommitKey") == ["OffsetCommitKey"]  # also a current name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hartbeat", "no message is called 'Hartbeat'; the nearest: HeartbeatRe"),
        ("", "no message is called ''"),
        ("9999", "no message has the api key 9999; keys are 0 to "),
        ("1" * 5000, "no message has the api key 111"),
    ],
    ids=["near", "nothing", "key", "long"],
)
def test_unknown_names_raise_an_error(text: str, said: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_messages(text)
    assert str(caught.value).startswith(said)
    assert len(str(caught.value)) < 300
