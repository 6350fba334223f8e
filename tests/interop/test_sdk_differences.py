"""Tests the differences of the official SDKs that docs/how-to/cloudevents-sdks.md lists.

A question is asked of kproto, too, so that the page's column for kproto is tested.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from kproto_cloudevents import (
    EVENT_GRID,
    LENIENT,
    CloudEvent,
    CloudEventError,
    Profile,
    from_kafka,
    partition_key,
    to_kafka,
)

from tests.support.availability import not_available
from tests.support.environment import ROOT
from tests.support.go_programs import built
from tools.setup.java import JavaNotFoundError, java_home
from tools.setup.javac import CompilerError, compile_java
from tools.setup.maven import MavenError, fetch_jars

pytestmark = [pytest.mark.peers, pytest.mark.exhaustive]

SDKS: Final = Path(__file__).parent / "sdks"
CACHE: Final = ROOT / ".cache" / "cloudevents_sdk"
TIMEOUT_S: Final = 60
ERROR: Final = "error"

REQUIRED: Final = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
NEW: Final = {"id": "1", "source": "/s", "type": "t"}
VENDOR: Final = "application/vnd.x+json"


def b64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def binary(value: bytes | None, *headers: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Returns the question for a record in binary mode."""
    required = [(f"ce_{name}", text) for name, text in REQUIRED.items()]
    return {"headers": [*required, *headers], "value": b64(value), **more}


def document(more: str, **asked: Any) -> dict[str, Any]:
    """Returns the question for a record in structured mode, with more members."""
    text = json.dumps({**REQUIRED, "time": "2020-01-01T00:00:00Z"})[:-1] + f", {more}}}"
    headers = [("content-type", "application/cloudevents+json")]
    return {"headers": headers, "value": b64(text.encode()), **asked}


def new(data: bytes | None, mode: str, **attributes: str) -> dict[str, Any]:
    """Returns the question for a new event."""
    return {"attributes": {**NEW, **attributes}, "data": b64(data), "mode": mode}


def of_object(content_type: str) -> dict[str, Any]:
    return document(f'"datacontenttype": "{content_type}", "data": {{"a": 1}}')


def member(answer: dict[str, Any]) -> Any:
    """Returns the member `data` or `data_base64` of a structured record, with its name."""
    if ERROR in answer:
        return ERROR
    members = json.loads(base64.b64decode(answer["value"]))
    return {name: members[name] for name in ("data", "data_base64") if name in members}


def text_after_data(answer: dict[str, Any]) -> Any:
    text = base64.b64decode(answer["value"]).decode().replace(" ", "")
    return text.partition('"data":')[2].rstrip("}")


def data_of(answer: dict[str, Any]) -> Any:
    """Returns the data of an event; if it is JSON, without blanks."""
    if ERROR in answer:
        return ERROR
    data = answer["data"]
    return data if data is None else base64.b64decode(data).decode().replace(" ", "")


def value_of(answer: dict[str, Any]) -> Any:
    return None if answer["value"] is None else base64.b64decode(answer["value"]).decode()


#: By subject: the question, the part of the answer that counts, and this part for kproto, Java, Go
#: and Python. A callable as the expected part is a test of the part.
SUBJECTS: Final[dict[str, tuple[dict[str, Any], Any, Sequence[Any]]]] = {
    "empty value": (binary(b""), data_of, ["", None, None, None]),
    "null value": (binary(None), data_of, [None, None, None, None]),
    "no data": (new(None, "binary"), value_of, [None, None, None, ""]),
    "empty data": (new(b"", "binary"), value_of, ["", "", None, ""]),
    "copy of empty": (binary(b"", mode="binary"), value_of, ["", None, None, ""]),
    "+json object": (of_object(VENDOR), data_of, ['{"a":1}', ERROR, ERROR, '{"a":1}']),
    "letters+json object": (
        of_object("application/problem+json"),
        data_of,
        ['{"a":1}', '{"a":1}', ERROR, '{"a":1}'],
    ),
    "+json Base64": (
        document(f'"datacontenttype": "{VENDOR}", "data_base64": "eyJhIjoxfQ=="'),
        data_of,
        ['{"a":1}'] * 4,
    ),
    "JSON bytes": (
        new(b"{}", "structured", datacontenttype="application/json"),
        member,
        [{"data": {}}, {"data": {}}, {"data_base64": "e30="}, {"data_base64": "e30="}],
    ),
    "+json bytes": (
        new(b"{}", "structured", datacontenttype=VENDOR),
        member,
        [{"data": {}}, *[{"data_base64": "e30="}] * 3],
    ),
    "object of an unknown type": (
        {**new(None, "structured", datacontenttype="model/gltf"), "object": {"a": 1}},
        member,
        # The SDK for Java takes bytes only.
        [ERROR, None, ERROR, {"data": "{'a': 1}"}],
    ),
    "+json object of Go": (
        {**new(None, "structured", datacontenttype=VENDOR), "object": {"a": 1}},
        member,
        [{"data": {"a": 1}}, None, {"data": '{"a":1}'}, {"data": {"a": 1}}],
    ),
    "number": (
        document('"data": 1.10', mode="structured"),
        text_after_data,
        ["1.10", "1.1", "1.10", "1.1"],
    ),
    "dataschema": (
        binary(None, ("ce_dataschema", "#")),
        lambda answer: answer.get("invalid") or answer.get("dataschema") or ERROR,
        [ERROR, "#", "dataschema", "#"],
    ),
    "upper case": (
        {
            "headers": [(f"CE_{name.capitalize()}", text) for name, text in REQUIRED.items()],
            "value": None,
        },
        lambda answer: answer.get("type", ERROR),
        [ERROR, ERROR, "t", "t"],
    ),
    "added attributes": (
        binary(b"x", key="k"),
        lambda answer: sorted(set(answer) - set(REQUIRED) - {"data"}),
        [[], [], ["kafkaoffset", "kafkapartition", "kafkatopic"], ["partitionkey", "time"]],
    ),
    "key": (
        new(None, "binary", partitionkey="k"),
        lambda answer: answer["key"],
        [None, None, "k", "k"],
    ),
    "leap second": (
        binary(None, ("ce_time", "2016-12-31T23:59:60Z")),
        lambda answer: ERROR if ERROR in answer else answer["time"],
        ["2016-12-31T23:59:60Z", ERROR, ERROR, ERROR],
    ),
    "application/json without ce_ headers": (
        {**document('"data": 1'), "headers": [("content-type", "application/json")]},
        data_of,
        [ERROR, ERROR, ERROR, "1"],
    ),
}


def of_kproto(asked: dict[str, Any], profile: Profile = Profile()) -> dict[str, Any]:  # noqa: B008
    """Returns the answer of kproto to a question."""
    try:
        if "headers" in asked:
            headers = [(name, text.encode()) for name, text in asked["headers"]]
            value = None if asked["value"] is None else base64.b64decode(asked["value"])
            event = from_kafka(None, value, headers, profile=profile)
            if not isinstance(event, CloudEvent):
                return {ERROR: event.reason}
        else:
            data = None if asked["data"] is None else base64.b64decode(asked["data"])
            event = CloudEvent(asked["attributes"], data=asked.get("object", data))
        if "mode" in asked:
            record = to_kafka(event, asked["mode"])
            return {"value": b64(record.value), "key": record.key}
    except CloudEventError as error:
        return {ERROR: str(error)}
    return {**event, "data": b64(event.data_bytes())}


def answers_of(command: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the answers of a program to all questions."""
    lines = "".join(json.dumps(asked) + "\n" for asked, _, _ in SUBJECTS.values())
    run = subprocess.run(
        command, input=lines, capture_output=True, text=True, check=True, timeout=TIMEOUT_S
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def check(answers: Sequence[dict[str, Any]], column: int) -> None:
    found = {
        subject: (part(answer), expected[column])
        for (subject, (asked, part, expected)), answer in zip(
            SUBJECTS.items(), answers, strict=True
        )
        if not (column == 1 and "object" in asked)
    }
    assert {subject: got for subject, (got, _) in found.items()} == {
        subject: expected for subject, (_, expected) in found.items()
    }


def test_kproto_reads_and_writes_as_documented() -> None:
    check([of_kproto(asked) for asked, _, _ in SUBJECTS.values()], 0)


def test_options_of_kproto_do_as_other_sdks() -> None:
    sdks = Profile(empty_is_no_data=True)
    assert of_kproto(SUBJECTS["empty value"][0], sdks)["data"] is None
    assert value_of(of_kproto(SUBJECTS["copy of empty"][0], sdks)) == ""
    assert of_kproto(SUBJECTS["dataschema"][0], EVENT_GRID)["dataschema"] == "#"
    assert of_kproto(SUBJECTS["upper case"][0], LENIENT)["type"] == "t"
    by_json = Profile(json_events=True)
    without_headers = SUBJECTS["application/json without ce_ headers"][0]
    assert data_of(of_kproto(without_headers, by_json)) == "1"
    keyed = to_kafka(CloudEvent(NEW, partitionkey="k"), key_mapper=partition_key)
    assert keyed.key == b"k"


def test_the_sdk_for_python_differs_as_documented(peers_python: Path) -> None:
    check(answers_of([str(peers_python), str(SDKS / "sdk.py")]), 3)


def test_the_sdk_for_go_differs_as_documented(tmp_path: Path) -> None:
    check(answers_of([str(built("the SDK for Go", SDKS / "go", tmp_path))]), 2)


def test_the_sdk_for_java_differs_as_documented(tmp_path: Path) -> None:
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        jars = fetch_jars(
            CACHE,
            SDKS / "java" / "pom.xml",
            name="the SDK for Java",
            sign="cloudevents-kafka-*.jar",
            otherwise="leave out this test",
        )
        libraries = os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))
        home = java_home()
        compile_java(home, [SDKS / "java" / "Sdk.java"], tmp_path, libraries=libraries, cache=CACHE)
    except (MavenError, JavaNotFoundError, CompilerError) as error:
        not_available("the SDK for Java", error)
    class_path = os.pathsep.join((str(tmp_path), libraries))
    check(answers_of([str(home / "bin" / "java"), "-cp", class_path, "Sdk"]), 1)
