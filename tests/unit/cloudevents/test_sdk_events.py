"""Tests `to_sdk` and `from_sdk` with the real SDK, and without it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kproto_cloudevents import CloudEvent, CloudEventError, JsonMap
from kproto_cloudevents.official_sdk import from_sdk, to_sdk

from .test_official_sdk import ROOT, run

ROUND_TRIP = """
import datetime, json
from kproto_cloudevents import JSON_NULL, CloudEvent, CloudEventError, JsonMap
from kproto_cloudevents.official_sdk import from_sdk, to_sdk

REQUIRED = dict(specversion="1.0", id="1", source="/s", type="t")
EVENTS = [
    CloudEvent(REQUIRED),
    CloudEvent(REQUIRED, data=b"\\x00\\xff", datacontenttype="a/b"),
    CloudEvent(REQUIRED, data=b""),
    CloudEvent(REQUIRED, data="text", datacontenttype="text/plain"),
    CloudEvent(REQUIRED, data={"a": [1, 2.5, None]}, datacontenttype="application/json"),
    CloudEvent(REQUIRED, data=[1], subject="x", dataschema="urn:x"),
    CloudEvent(REQUIRED, data="a JSON string"),
    CloudEvent(REQUIRED, data=JSON_NULL, datacontenttype="application/json"),
    CloudEvent(REQUIRED, time="2018-04-05T03:56:24Z", n=5, ok=True, raw=b"\\x00", text="x"),
    CloudEvent(REQUIRED, time="2018-04-05T03:56:24.123456-05:00"),
    CloudEvent({**REQUIRED, "specversion": "0.3"}, schemaurl="/x", data=[1]),
    CloudEvent({**REQUIRED, "specversion": "0.3"}, map=JsonMap.of({"a": [1]})),
]
for event in EVENTS:
    made = to_sdk(event, api=API)
    assert type(made).__module__.startswith(PLACE), type(made)
    assert ("time" in made.get_attributes()) == ("time" in event), "a time was made up"
    back = from_sdk(made)
    assert back == event, (back, event)
made = to_sdk(EVENTS[8], api=API)
assert made.get_attributes()["n"] == 5
assert made.get_attributes()["ok"] is True
assert made.get_attributes()["raw"] == "AA=="
assert from_sdk(type(made)(dict(type="t", source="/s"), {"a": 1})).json() == {"a": 1}
for time in ("2016-12-31T23:59:60Z", "2018-04-05T03:56:24.1234567Z"):
    try:
        exact = from_sdk(to_sdk(CloudEvent(REQUIRED, time=time), api=API))
    except CloudEventError as error:
        assert API == "core" and "cannot hold" in str(error), error
    else:
        assert API == "v1" and exact.time == time
print(len(EVENTS))
"""


@pytest.mark.peers
@pytest.mark.parametrize(("api", "place"), [("core", "cloudevents.core"), ("v1", "cloudevents.v1")])
@pytest.mark.parametrize("folder", [ROOT, ROOT / "cloudevents"])
def test_events_round_trip_through_the_real_sdk(
    peers_python: Path, api: str, place: str, folder: Path
) -> None:
    assert run(peers_python, f"API, PLACE = {api!r}, {place!r}\n{ROUND_TRIP}", folder) == "12\n"


@pytest.mark.parametrize("api", ["core", "v1"])
def test_without_the_sdk_the_error_names_the_package(api: str) -> None:
    """The error must be the same in the project's root, which has a folder `cloudevents`.

    The SDK's package has the same name, so Python could import this folder instead.
    """
    code = f"""
import sys
sys.path[:0] = ["", "cloudevents"]
from kproto_cloudevents import CloudEvent, CloudEventError
from kproto_cloudevents.official_sdk import to_sdk
try:
    to_sdk(CloudEvent(id="1", source="/", type="t"), api={api!r})
except CloudEventError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "the official SDK is not installed: pip install 'cloudevents>=2'\n"


class Made:
    """Implements the interface of the SDK's events."""

    def __init__(self, data: Any = None, **attributes: Any) -> None:
        self.data = data
        self.attributes = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
        self.attributes |= attributes

    def get_attributes(self) -> dict[str, Any]:
        return self.attributes

    def get_data(self) -> Any:
        return self.data


def test_reading_needs_no_sdk() -> None:
    event = from_sdk(Made({"a": 1}, time=datetime(2020, 1, 1, tzinfo=UTC), subject=None, n=5))
    assert event.time == "2020-01-01T00:00:00Z"
    assert "subject" not in event
    assert event["n"] == 5
    assert event.json() == {"a": 1}
    old = from_sdk(Made(specversion="0.3", map={"a": 1}))
    assert old["map"] == JsonMap('{"a":1}')


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (Made(id=""), 'id: "" must not be empty'),
        (Made(x=1.5), "x: float is no attribute value"),
        (Made(time=datetime(2020, 1, 1)), "time: .* has no UTC offset"),  # noqa: DTZ001 - on purpose
        (Made({1, 2}), "data: the value cannot be written as JSON"),
        ("an event", "str is no event of the SDK"),
    ],
)
def test_other_objects_than_events_are_refused(made: Any, message: str) -> None:
    with pytest.raises(CloudEventError, match=message):
        from_sdk(made)


def test_versions_and_apis_missing_in_the_sdk_are_refused() -> None:
    old = CloudEvent({"cloudEventsVersion": "0.1", "eventType": "t", "source": "/", "eventID": "1"})
    with pytest.raises(CloudEventError, match="the SDK has no cloudEventsVersion"):
        to_sdk(old)
    with pytest.raises(CloudEventError, match="api is core or v1"):
        to_sdk(CloudEvent(id="1", source="/", type="t"), api="v2")  # type: ignore[arg-type]  # no such API
