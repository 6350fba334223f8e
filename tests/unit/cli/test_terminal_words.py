"""Tests that errors and warnings on the terminal name commands and options, nothing of Python."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from kproto.broker.faults import Refuse
from kproto.cli.client_warnings import print_client_warnings
from kproto.cli.terminal_words import part_text, terminal_text
from kproto.client.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminError,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    MemberToRemove,
    PatternType,
    QuotaName,
    ResourceType,
    TopicPartitionReplica,
)
from kproto.messages import ProduceRequest
from kproto.protocol.error_codes import code_of
from kproto.wire.errors import KprotoError
from tests.support.cli_runs import Run
from tests.support.embedded import ThreadedBroker

ACL = AclBinding(
    ResourceType.TOPIC,
    "orders",
    "User:a",
    AclOperation.READ,
    AclPermissionType.ALLOW,
    "*",
    PatternType.PREFIXED,
)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (ACL, "allow read on topic orders* to User:a from *"),
        (AclBindingFilter(principal="User:a"), "ACLs of User:a"),
        (ClientQuotaEntity("ann", QuotaName.DEFAULT), "--user ann --client-id-default"),
        (ConfigResource(ConfigResourceType.BROKER_LOGGER, "1"), "broker-logger/1"),
        (MemberToRemove(instance_id="i"), "member i"),
        (TopicPartitionReplica("t", 0, 1), "t:0 on broker 1"),
        (("t", 3), "t:3"),
        ("g", "'g'"),
        (1, "broker 1"),
    ],
)
def test_parts_have_words_of_the_command_line(part: object, words: str) -> None:
    assert part_text(part) == words


def test_failed_parts_are_listed_with_their_words() -> None:
    error = AdminError("creating", {"a": 1}, {ACL: KprotoError("no")}, [ACL])
    assert terminal_text(error) == (
        "creating: 1 of 2 failed: allow read on topic orders* to User:a from *: no "
        "(no answer to an attempt; a broker may have made the change)"
    )


def test_positions_in_a_call_are_left_out() -> None:
    error = KprotoError("element 3, counted from 0: the key is no bytes; no later one is sent")
    assert terminal_text(error) == "the key is no bytes"


def test_errors_of_commands_name_no_class_of_python(kproto: Run, topic: str) -> None:
    failing = [
        ("quotas", "set", "--user", "ann", "nothing=1"),
        ("acls", "add", "topic", topic, "--principal", "User:a", "--operation", "read"),
        ("groups", "remove-members", "g", "--member", "m", "--yes"),
        ("produce", "missing-topic"),
        ("consume", "missing-topic"),
        ("topics", "delete-records", "missing-topic", "--before-offset", "1", "--yes"),
    ]
    for command in failing:
        stdin = b"a" if command[0] == "produce" else None
        try:
            found = kproto(*command, stdin=stdin)
        except SystemExit:
            continue
        text = "\n".join(found.err)
        assert found.code == 1, command
        for word in ("(group", "Binding", "Entity", "MemberToRemove", "_ms", "create_topics"):
            assert word not in text, command


def test_missing_topic_names_the_command_that_creates_it(kproto: Run) -> None:
    for command in ("produce", "consume"):
        found = kproto(command, "nowhere", stdin=b"a" if command == "produce" else None)
        assert found.code == 1
        assert "kproto topics create creates it" in found.err[-1]
        assert "-X allow.auto.create.topics=true" in found.err[-1]


def test_reason_of_refused_deletion_of_records_is_told(
    kproto: Run, served: ThreadedBroker, topic: str
) -> None:
    name = f"{topic}-compacted"
    compacted = {"cleanup.policy": "compact"}
    served.call(lambda broker: broker.create_topic(name, configs=compacted))
    found = kproto("topics", "delete-records", name, "--before-offset", "0", "--yes")
    assert found.code == 1
    assert "POLICY_VIOLATION" in found.err[0]
    assert "cleanup.policy of the topic does not include delete" in found.err[0]


@pytest.mark.parametrize("quiet", [False, True])
def test_retry_warning_is_a_line_of_the_command(
    quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = io.StringIO()
    monkeypatch.setattr(sys, "stderr", printed)
    print_client_warnings(quiet=quiet)
    print_client_warnings(quiet=quiet)  # a second command prints each line once, too
    logger = logging.getLogger("kproto.client")
    logger.warning("producing to %s is retried: %s", "t[0]", "NOT_LEADER_OR_FOLLOWER")
    expected = "kproto: warning: producing to t[0] is retried: NOT_LEADER_OR_FOLLOWER\n"
    assert printed.getvalue() == ("" if quiet else expected)


@pytest.mark.parametrize("options", [[], ["-q"]], ids=" ".join)
def test_retries_of_produce_are_warnings(
    kproto: Run, served: ThreadedBroker, topic: str, options: list[str]
) -> None:
    def refuse(request: object) -> Refuse:
        return Refuse(code_of("NOT_LEADER_OR_FOLLOWER"))

    served.call(lambda broker: broker.control(refuse, request=ProduceRequest, times=1))
    found = kproto("produce", topic, "-p", "0", *options, stdin=b"a")
    assert found.code == 0
    assert len(found.err) == (0 if options else 1)
    for line in found.err:
        assert line.startswith(f"kproto: warning: producing to {topic}[0] is retried: ")
