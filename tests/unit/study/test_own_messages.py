"""Tests that `kproto.study` reads the messages of other packages, also with api keys of Kafka."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kproto import messages
from kproto.messages import ApiVersionsResponse, FetchRequest
from kproto.protocol.connection import ClientConnection, ServerConnection
from kproto.protocol.message_classes import (
    KAFKA_MESSAGES,
    MessageClasses,
    definitions_in,
    is_kafka_message,
)
from kproto.proxy.address_rewriting import nodes_in
from kproto.proxy.event_log import parse_apis
from kproto.schema import study
from kproto.schema.definitions import union
from kproto.study import annotate_frame, find_message_class, guess, nodes
from kproto.study.conversations import ConversationSplitter, EventKind, Side
from kproto.study.exchanges import note_software, pair_exchanges
from kproto.study.flows import events_of_segments
from kproto.study.redaction import redact_frame
from kproto.study.request_detection import RequestDetector, detector_for
from kproto.wire.errors import ConfigurationError
from tests.support.environment import ROOT
from tests.support.own_protocol import (
    field,
    imported_package,
    make_package,
    message,
    write_releases,
)
from tests.unit.codegen.packages import write_definitions
from tests.unit.study.packets import connection

#: The api keys of Produce, ControlledShutdown, SaslHandshake, ApiVersions and AddPartitionsToTxn,
#: for which `kproto.protocol` and `kproto.study` have rules of their own.
KEYS_WITH_RULES = (0, 7, 17, 18, 24)


@pytest.fixture(scope="module")
def parcels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("own")
    write_releases(folder / "parcels")
    out = make_package(
        folder / "parcels", folder / "parcels_of_study", "--secret", "TrackRequest.Token"
    )
    with imported_package(out) as package:
        yield package


@pytest.fixture(scope="module")
def colliding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Returns a package whose requests have the api keys of KEYS_WITH_RULES, and Kafka's names."""
    folder = tmp_path_factory.mktemp("colliding")
    definitions = [
        message(kind, f"Own{key}{kind.title()}", "0-1", field("ErrorCode", "int16"), apiKey=key)
        for key in KEYS_WITH_RULES
        for kind in ("request", "response")
    ]
    brokers = field("Brokers", "[]Broker", fields=[field("Name", "string")])
    definitions += [
        message("request", "MetadataRequest", "0", apiKey=2000),
        message("response", "MetadataResponse", "0", brokers, apiKey=2000),
        message("request", "FarRequest", "0-40", field("Text", "string"), apiKey=30_000),
        message("response", "FarResponse", "0-40", field("Text", "string"), apiKey=30_000),
    ]
    write_definitions(folder / "definitions", definitions)
    out = make_package(folder / "definitions", folder / "colliding_of_study")
    with imported_package(out) as package:
        yield package


def talk(package: ModuleType, request: Any, response: Any, version: int) -> tuple[bytes, bytes]:
    _, asked = ClientConnection("me").send(request, version)
    server = ServerConnection(MessageClasses(package))
    return asked, server.send(server.receive(asked[4:]), response)


def test_packages_and_api_keys_of_classes(parcels: Any, colliding: Any) -> None:
    classes = MessageClasses(parcels, colliding)
    assert classes.packages == (colliding, parcels, messages)
    assert KAFKA_MESSAGES.packages == (messages,)
    assert classes.api_keys == KAFKA_MESSAGES.api_keys | {1000, 2000, 30_000}
    assert is_kafka_message(FetchRequest)
    assert is_kafka_message(type("Mine", (FetchRequest,), {"__slots__": ()}))
    assert not is_kafka_message(parcels.FetchRequest)


def test_definitions_of_a_package_without_its_file_are_refused(parcels: Any) -> None:
    assert definitions_in(messages) is union()
    assert set(definitions_in(parcels)) == set(parcels.MODULES)
    for wrong in (study, importlib.import_module("json"), importlib.import_module("kproto")):
        with pytest.raises(ConfigurationError, match="is no package of messages"):
            definitions_in(wrong)
    Path(parcels.__file__).with_name("sub").mkdir()
    Path(parcels.__file__).with_name("sub").joinpath("__init__.py").write_text("MODULES = {}")
    with pytest.raises(ConfigurationError, match="is no package of messages"):
        definitions_in(importlib.import_module(f"{parcels.__name__}.sub"))


def test_names_are_searched_in_own_packages_first(parcels: Any) -> None:
    classes = MessageClasses(parcels)
    assert find_message_class("fetch", classes=classes) is parcels.FetchRequest
    assert find_message_class(3, response=True, classes=classes) is parcels.PrintLabelResponse
    assert find_message_class("LabelRequest", classes=classes) is parcels.PrintLabelRequest
    assert find_message_class("ParcelEvent", classes=classes) is parcels.ParcelEvent
    assert find_message_class("Heartbeat", classes=classes) is messages.HeartbeatRequest
    with pytest.raises(ConfigurationError, match="'TrakRequest'; the nearest: TrackRequest"):
        find_message_class("TrakRequest", classes=classes)
    assert parse_apis(["track,PrintLabel,Heartbeat"], classes) == {1000, 3, 12}
    with pytest.raises(ConfigurationError, match=r"do you mean Track\?"):
        parse_apis(["trak"], classes)


def test_functions_of_study_take_own_definitions(parcels: Any) -> None:
    known = definitions_in(parcels)
    assert [spec.name for spec in study.messages("label", known)] == [
        "PrintLabelRequest",
        "PrintLabelResponse",
    ]
    assert study.meaning("TrackResponse", "Parcels.Weight", known) == "In grams."
    assert study.meaning("FetchRequest", known=known) == ""
    assert study.meaning("FetchRequest", "ReplicaId", known) == ""
    assert study.find_message("LabelRequest", known).name == "PrintLabelRequest"
    assert [row.field for row in study.message_rows("TrackRequest", 2, known)] == [
        "Token",
        "ParcelIds",
        "TimeoutMs",
        "Depot",
    ]
    assert study.least_size("FetchRequest", 0, known) == (4, 4)
    assert study.message_layout("ParcelEvent", 1, known).flexible
    assert [str(change.kind) for change in study.changes("ParcelEvent", 0, 1, known)] == [
        "flexible",
        "added",
    ]
    for name in ("HeartbeatRequest", "GroupCoordinatorRequest"):
        with pytest.raises(study.UnknownNameError):
            study.find_message(name, known)


def test_a_class_of_an_unknown_package_reads_its_own_frame(parcels: Any) -> None:
    asked, _ = talk(parcels, parcels.TrackRequest(), parcels.TrackResponse(), 2)
    tree = annotate_frame(asked, parcels.TrackRequest, 2)
    assert tree.value == "TrackRequest v2"


def test_guesses_are_of_own_packages(parcels: Any) -> None:
    asked, told = talk(
        parcels, parcels.PrintLabelRequest(parcel_id="p1"), parcels.PrintLabelResponse(), 1
    )
    classes = MessageClasses(parcels)
    assert guess(asked, classes=classes)[0].message == "PrintLabelRequest"
    assert {each.message for each in guess(told, classes=classes)} <= set(parcels.MODULES)
    assert guess(asked, messages={"MetadataRequest"}, classes=classes) == []


@pytest.mark.parametrize("key", KEYS_WITH_RULES)
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("error_code", [0, 35])
def test_rules_of_kafka_do_not_apply_to_own_messages(
    colliding: Any, key: int, version: int, error_code: int
) -> None:
    """The version of the header follows from the api key, as in Kafka's generator."""
    classes = MessageClasses(colliding)
    asks, tells = (getattr(colliding, f"Own{key}{kind}") for kind in ("Request", "Response"))
    splitter = ConversationSplitter(classes=classes, keep_bytes=True)
    for _ in range(2):
        asked, told = talk(colliding, asks(error_code=1), tells(error_code=error_code), version)
        (request,) = splitter.feed(Side.CLIENT, 0, asked)
        (response,) = splitter.feed(Side.BROKER, 1, told)
        assert (request.kind, request.api, request.is_answered) == (
            EventKind.MESSAGE,
            f"Own{key}",
            True,
        )
        assert (response.kind, response.api, response.note) == (
            EventKind.MESSAGE,
            f"Own{key}",
            "",
        )
        assert response.received is not None
        assert response.received.message == tells(error_code=error_code)
        assert response.errors == ((("error code 35", 1),) if error_code else ())
        tree = annotate_frame(told, tells, version, classes=classes)
        assert [node.meaning for node in nodes(tree) if node.name == "error_code"] == [""]
        assert tree.value == f"Own{key}Response v{version}"
    assert splitter.waiting == 0


def test_software_of_other_packages_is_not_taken_for_kafkas(colliding: Any) -> None:
    pair = talk(colliding, colliding.Own18Request(), colliding.Own18Response(), 0)
    events = events_of_segments(connection([pair]), classes=MessageClasses(colliding))
    software: dict[tuple[str, str], set[int]] = {}
    (exchange,) = note_software(pair_exchanges(events), software)
    assert (exchange.event.api, software) == ("Own18", {})


def test_refused_api_versions_still_have_the_layout_of_v0(parcels: Any) -> None:
    classes = MessageClasses(parcels)
    splitter = ConversationSplitter(classes=classes)
    _, asked = ClientConnection("me").send(messages.ApiVersionsRequest(), 4)
    splitter.feed(Side.CLIENT, 0, asked)
    body = ApiVersionsResponse(error_code=35).encode(0)
    told = (len(body) + 4).to_bytes(4, "big") + asked[8:12] + body
    (event,) = splitter.feed(Side.BROKER, 0, told)
    assert (event.version, event.errors) == (0, (("UNSUPPORTED_VERSION", 1),))


def test_own_requests_are_found_in_the_middle_of_a_connection(colliding: Any) -> None:
    classes = MessageClasses(colliding)
    splitter = ConversationSplitter(classes=classes, from_middle=True)
    asked, told = talk(
        colliding, colliding.FarRequest(text="a"), colliding.FarResponse(text="b"), 40
    )
    events = splitter.feed(Side.CLIENT, 0, b"\0\1\2" * 30 + asked)
    assert [(event.kind, event.api) for event in events] == [
        (EventKind.MISSING, "unknown"),
        (EventKind.MESSAGE, "Far"),
    ]
    assert splitter.feed(Side.BROKER, 0, told)[-1].api == "Far"
    assert not detector_for(KAFKA_MESSAGES).start.match(asked)
    assert detector_for(classes).start.match(asked)
    assert not RequestDetector(KAFKA_MESSAGES).may_be_request(asked[4:])


def test_own_secrets_are_redacted(parcels: Any) -> None:
    classes = MessageClasses(parcels)
    asked, _ = talk(parcels, parcels.TrackRequest(token="s3cret"), parcels.TrackResponse(), 2)
    (event,) = ConversationSplitter(classes=classes).feed(Side.CLIENT, 0, asked)
    assert redact_frame(event) == asked.replace(b"s3cret", b"******")
    broken = asked[:-3] + b"\xff\xff\xff"
    (event,) = ConversationSplitter(classes=classes).feed(Side.CLIENT, 0, broken)
    assert event.kind is EventKind.BROKEN
    assert b"s3cret" not in redact_frame(event)
    asked, _ = talk(parcels, parcels.FetchRequest(), parcels.FetchResponse(), 0)
    (event,) = ConversationSplitter(classes=classes).feed(Side.CLIENT, 0, asked)
    assert redact_frame(event) == asked


FORKED = ("ApiVersions", "Metadata", "Produce", "SaslHandshake")


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Returns a package of some of Kafka's own messages, as a fork of Kafka has."""
    folder = tmp_path_factory.mktemp("fork")
    clients = ROOT / "schemas" / "4.4.0" / "clients"
    names = [f"{api}{kind}.json" for api in FORKED for kind in ("Request", "Response")]
    write_definitions(folder / "definitions", [(clients / name).read_text() for name in names])
    with imported_package(make_package(folder / "definitions", folder / "fork")) as package:
        yield package


def test_rules_of_kafka_apply_to_the_messages_of_a_fork(fork: Any) -> None:
    splitter = ConversationSplitter(classes=MessageClasses(fork))

    def ask(request: Any, version: int) -> Any:
        _, data = ClientConnection("me").send(request, version)
        (event,) = splitter.feed(Side.CLIENT, 0, data)
        assert event.kind is EventKind.MESSAGE
        assert event.received is not None
        assert type(event.received.message) is type(request)
        return event

    named = fork.ApiVersionsRequest(client_software_name="fork", client_software_version="1")
    asked = ask(named, 4)
    body = ApiVersionsResponse(error_code=35).encode(0)
    told = (len(body) + 4).to_bytes(4, "big") + asked.data[8:12] + body
    (event,) = splitter.feed(Side.BROKER, 0, told)
    assert (event.version, event.errors) == (0, (("UNSUPPORTED_VERSION", 1),))
    assert not ask(fork.ProduceRequest(acks=0), 9).is_answered
    ask(fork.SaslHandshakeRequest(mechanism="PLAIN"), 0)
    (token,) = splitter.feed(Side.CLIENT, 0, b"\0\0\0\4\0a\0b")
    assert token.kind is EventKind.TOKEN
    brokers = importlib.import_module("fork.metadata_response")
    broker = brokers.MetadataResponseBroker(node_id=1, host="b1", port=9092)
    ((node, address, _),) = nodes_in(fork.MetadataResponse(brokers=[broker]))
    assert (node.id, str(address)) == (1, "b1:9092")


def test_responses_with_a_name_of_kafka_have_no_brokers(colliding: Any) -> None:
    brokers = importlib.import_module(f"{colliding.__name__}.metadata_response")
    response = colliding.MetadataResponse(brokers=[brokers.Broker(name="b1")])
    assert list(nodes_in(response)) == []
    assert list(nodes_in(colliding.Own0Response())) == []
