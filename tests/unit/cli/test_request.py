"""Tests `kproto request`: any request of the protocol from the command line."""

from __future__ import annotations

import json

import pytest

from kproto.messages import MetadataRequest
from tests.support.cli_runs import Run


def test_response_is_printed(kproto: Run, topic: str) -> None:
    found = kproto("request", "Metadata", json.dumps({"topics": [{"name": topic}]}))
    assert (found.code, found.err) == (0, [])
    response = json.loads(found.out)
    (described,) = response["topics"]
    assert (described["name"], len(described["partitions"])) == (topic, 3)


def test_api_key_and_version_are_accepted(kproto: Run) -> None:
    found = kproto("request", "18", "--api-version", "0")
    assert {"apiKey": 3, "minVersion": 0, "maxVersion": 13} in json.loads(found.out)["apiKeys"]


@pytest.mark.parametrize(
    "target", [["--broker", "1"], ["--controller"], ["--coordinator-of", "g"]], ids=" ".join
)
def test_broker_is_named(kproto: Run, target: list[str]) -> None:
    found = kproto("request", "DescribeCluster", *target)
    assert json.loads(found.out)["errorCode"] == 0


def test_error_code_is_the_exit_code(kproto: Run) -> None:
    found = kproto("request", "Metadata", '{"topics": [{"name": "nope"}]}')
    assert json.loads(found.out)["topics"][0]["errorCode"] == 3
    assert found.code == 1


def test_dry_run_prints_the_bytes(kproto: Run) -> None:
    found = kproto("request", "Metadata", '{"topics": null}', "--api-version", "4", "--dry-run")
    assert found.code == 0
    assert found.lines()[-1].endswith(MetadataRequest(topics=None).encode(4).hex())
    assert any("allow_auto_topic_creation" in line for line in found.lines())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Metadat"], "Metadata"),
        (["Metadata", "{"], "the fields are no JSON"),
        (["Metadata", "[]"], "a JSON object is wanted"),
        (["Metadata", '{"topcs": []}'], "topcs: there is no such field; known: topics"),
        (["Metadata", '{"topics": [{"nam": "a"}]}'], "topics[0].nam: there is no such field"),
        (["Metadata", "{}", "--api-version", "99"], "99"),
        (["MetadataResponse"], "is no request"),
        (["Fetch", "{}", "--broker", "7"], "7"),
    ],
    ids=" ".join,
)
def test_invalid_request_is_one_line(kproto: Run, arguments: list[str], words: str) -> None:
    found = kproto("request", *arguments)
    assert (found.code, found.out, len(found.err)) == (2, b"", 1)
    assert words in found.err[0]
