"""Tests errors: the clauses that they name, messages for wrong types, and quoted values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kproto_cloudevents
import pytest
from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    KafkaRecord,
    NotAnEvent,
    kafka_record,
    register_format,
    to_json,
    to_json_batch,
    to_kafka,
)
from kproto_cloudevents.errors import quoted
from kproto_cloudevents.pulsar import pulsar_message, to_pulsar

PACKAGE = Path(kproto_cloudevents.__file__).parent

#: Functions whose errors have no clause: they report arguments of a wrong Python type, and
#: packages that are not installed or lack a version.
WITHOUT_CLAUSE = {
    ("event/cloud_event.py", "_no_mapping_error"),
    ("event/cloud_event.py", "no_event_error"),
    ("event/extensions.py", "register"),
    ("formats/json_format.py", "_text"),
    ("kafka/codec.py", "decode"),
    ("kafka/record.py", "check_shape"),
    ("kafka/stream.py", "event_of"),
    ("official_sdk.py", "_class"),
    ("official_sdk.py", "from_sdk"),
    ("official_sdk.py", "to_sdk"),
    ("pulsar.py", "_checked_message"),
    ("formats/typed_attributes.py", "missing_package_error"),
}


def raised() -> Iterator[tuple[str, str, bool]]:
    """Yields each call in the code that creates an error, as (file, function, has clauses)."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                    "CloudEventError",
                    "UnknownVersionError",
                    "UnknownFormatError",
                ):
                    named = any(keyword.arg == "clauses" for keyword in node.keywords)
                    yield path.relative_to(PACKAGE).as_posix(), function.name, named


def test_every_error_names_its_clause() -> None:
    found = list(raised())
    assert len(found) > 40
    without = {(file, function) for file, function, named in found if not named}
    assert without <= WITHOUT_CLAUSE


NO_EVENT: Any = NotAnEvent(KafkaRecord(None, b"x"), "no event")
EVENT = CloudEvent(id="1", source="/s", type="t")
WRONG: Any = "wrong"


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda: CloudEvent(WRONG), "attributes are a mapping of names to values, not str"),
        (lambda: EVENT.replace(WRONG), "attributes are a mapping of names to values, not str"),
        (lambda: to_json(NO_EVENT), "a CloudEvent is required, not NotAnEvent"),
        (lambda: to_json_batch([EVENT, NO_EVENT]), "a CloudEvent is required, not NotAnEvent"),
        (lambda: kafka_record(NO_EVENT), "a CloudEvent is required, not NotAnEvent"),
        (lambda: pulsar_message(NO_EVENT), "a CloudEvent is required, not NotAnEvent"),
        (lambda: to_kafka(WRONG), "str cannot be written as an event"),
        (lambda: to_pulsar(NO_EVENT), "NotAnEvent cannot be written as an event"),
        (lambda: register_format(WRONG), "an EventFormat is required, not str"),
        (lambda: to_kafka(EVENT, "structured", event_format=WRONG), "an EventFormat is required"),
        (lambda: to_pulsar(EVENT, "structured", event_format=WRONG), "an EventFormat is required"),
    ],
)
def test_a_wrong_type_is_named(attempt: Callable[[], object], reason: str) -> None:
    with pytest.raises(CloudEventError, match=reason):
        attempt()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('a"b\\', '"a\\"b\\\\"'),
        ("ü\u00a0", '"ü\\xa0"'),
        ("\n\x00\ud800", '"\\n\\x00\\ud800"'),
        ("x" * 100, f'"{"x" * 48}…"'),
    ],
)
def test_a_quoted_value_is_escaped_and_shortened(text: str, shown: str) -> None:
    assert quoted(text) == shown


def test_an_error_has_its_parts_as_attributes() -> None:
    with pytest.raises(CloudEventError) as caught:
        CloudEvent(id="1", source="/s", type="t", time="tomorrow")
    error = caught.value
    assert (error.where, error.reason, error.clauses) == (
        "time",
        '"tomorrow" is not RFC 3339',
        ('CloudEvents 1.0 "Timestamp"',),
    )
