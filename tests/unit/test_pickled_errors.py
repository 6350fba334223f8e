"""Tests that every error, and the public values of client and records, can be pickled and copied.

A process pool pickles an error to return it. If the error cannot be unpickled, the pool breaks.
"""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Iterator
from typing import Any

import kproto_cloudevents
import pytest

import kproto
from kproto.client.commits.errors import NoCommittedOffsetError
from kproto.client.fetch.position_validation import LogTruncatedError
from kproto.client.groups.group_protocol import GroupProtocolMismatchError
from kproto.protocol.broker_errors import BROKER_ERRORS
from kproto.protocol.error_codes import error_of_code

RECORDS = [kproto.ProducerRecord(b"v", b"k", (("h", b"x"),), 1, 2)]

CAUSES = [
    kproto.RequestTimeoutError("late"),
    kproto.AuthenticationError("refused"),
    error_of_code(10, "producing"),
]

#: Arguments of the errors whose constructors take more than a text.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "AdminError": ("creating topics", {"a": 1}, {"b": CAUSES[2]}, ["b"]),
    "BrokerResponseError": (3, "UNKNOWN_TOPIC_OR_PARTITION", "fetching"),
    "DeliveryError": ("t", 2, RECORDS, CAUSES[0], {"t": RECORDS, "u": RECORDS}, {"v": 3}),
    "UnauthenticatedDeliveryError": ("t", 2, RECORDS, CAUSES[1]),
    "TransactionError": ("a reason", "billing-1", CAUSES[0]),
    "LogTruncatedError": ("t", 1, 10, None),
    "NoCommittedOffsetError": ("g", [("t", 1)]),
} | {each.__name__: (1, "NAME", "text") for each in BROKER_ERRORS.values()}

#: Keyword arguments that must survive.
KEYWORDS: dict[str, dict[str, Any]] = {
    "DecodeError": {"message": "Fetch", "version": 3, "field": "topics[0]", "offset": 7},
    "EncodeError": {"message": "Fetch", "version": 3, "field": "topics[0]"},
    "CorruptBatchError": {"offset": 7, "base_offset": 8},
    "UnreadableRecordError": {
        "topic": "t",
        "partition": 3,
        "record_offset": 8,
        "next_offset": 9,
        "raw": b"raw",
        "content": "record",
    },
    "UndecodableRecordError": {
        "topic": "t",
        "partition": 3,
        "record_offset": 8,
        "field": "value",
        "raw": b"raw",
    },
    "BrokerConnectionError": {"address": "h:1", "never_written": True},
    "CommitFailedError": {"name": "ILLEGAL_GENERATION", "retriable": True},
    "GroupProtocolMismatchError": {"is_certain": True},
    "CloudEventError": {"where": "id", "clauses": ("3.1",)},
    "Stop": {"done": True},
}


def modules() -> Iterator[Any]:
    for package in (kproto, kproto_cloudevents):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "__main__" not in found.name and ".messages." not in found.name:
                yield found.name


def error_classes() -> list[type[Exception]]:
    """Returns KprotoError, CloudEventError, `Stop` and all their subclasses, even internal ones."""
    for name in modules():
        if not name.startswith("kproto_cloudevents.official"):
            importlib.import_module(name)
    found: set[type[Exception]] = set()
    left: list[type[Exception]] = [
        kproto.KprotoError,
        kproto_cloudevents.CloudEventError,
        kproto.Stop,
        GroupProtocolMismatchError,
    ]
    while left:
        each = left.pop()
        if each not in found and each.__module__.startswith(("kproto.", "kproto_cloudevents.")):
            found.add(each)
            left += each.__subclasses__()
    return sorted(found, key=lambda each: each.__qualname__)


def instance(kind: type[Exception]) -> Exception:
    own = [each for each in kind.__mro__ if each.__name__ in ARGUMENTS]
    arguments = ARGUMENTS[own[0].__name__] if own else ("a reason",)
    keywords: dict[str, Any] = KEYWORDS.get(kind.__name__, {})
    error = kind(*arguments, **keywords)
    error.add_note("a note")
    return error


def outline(error: BaseException) -> tuple[Any, ...]:
    """Returns the parts of an error that must be equal after pickling or copying."""

    def comparable(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: comparable(each) for key, each in value.items()}
        return outline(value) if isinstance(value, BaseException) else value

    return type(error), str(error), comparable(vars(error))


@pytest.mark.parametrize("way", ["pickle", "copy", "deepcopy"])
def test_every_error_survives(way: str) -> None:
    classes = error_classes()
    assert {kproto.DeliveryError, LogTruncatedError, NoCommittedOffsetError} <= {*classes}
    for kind in classes:
        error = instance(kind)
        again = {
            "pickle": lambda error=error: pickle.loads(pickle.dumps(error)),
            "copy": lambda error=error: copy.copy(error),
            "deepcopy": lambda error=error: copy.deepcopy(error),
        }[way]()
        assert outline(again) == outline(error), kind


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: type(cause).__name__)
def test_delivery_error_keeps_its_class_and_cause(cause: kproto.KprotoError) -> None:
    error = kproto.DeliveryError("t", 2, RECORDS, cause)
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, kproto.AuthenticationError) == isinstance(
        cause, kproto.AuthenticationError
    )
    assert (again.topic, again.partition, again.records) == ("t", 2, RECORDS)
    assert outline(again.cause) == outline(cause)
    assert again.by_topic == {"t": RECORDS}
