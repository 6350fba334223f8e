"""Tests OffsetCommit and OffsetFetch requests and responses at every version, as plain data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kproto import ProtocolError
from kproto.client.commits.offset_requests import (
    OffsetAndMetadata,
    commit_answers,
    commit_requests,
    committed_in,
    committed_requests,
)
from kproto.client.network.version_selection import version_for
from kproto.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kproto.messages.base import Request
from kproto.messages.offset_commit_response import (
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kproto.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kproto.protocol.error_codes import code_of
from kproto.protocol.negotiation import ApiRange, negotiate
from kproto.wire.errors import BrokerResponseError, UnsupportedVersionError
from kproto.wire.uuid import ZERO_UUID, Uuid

A, B = Uuid.random(), Uuid.random()
IDS = {"a": A, "b": B}


class Identity(NamedTuple):
    member_id: str
    generation: int
    instance_id: str | None
    has_epoch: bool = False


def chosen(request: Request, highest: int) -> int:  # type: ignore[type-arg]  # either
    """Returns the version that the client chooses for a broker with versions up to `highest`."""
    ranges = {request.API_KEY: ApiRange(0, highest)}
    return version_for(request, lambda kind, most: negotiate(kind, ranges, at_most=most))


def commit(
    highest: int,
    identity: Identity | None,
    offsets: dict[tuple[str, int], OffsetAndMetadata],
    label: Callable[[OffsetAndMetadata], str] = lambda its: its.metadata,
) -> tuple[OffsetCommitRequest, int]:
    """Returns the OffsetCommit for a broker with versions up to `highest`, and its version.

    Raises UnsupportedVersionError if no version suits.
    """
    refused: UnsupportedVersionError | None = None
    for request in commit_requests("g", identity, offsets, label):
        try:
            return request, chosen(request, highest)
        except UnsupportedVersionError as error:
            refused = error
    assert refused is not None
    raise refused


@pytest.mark.parametrize("highest", OffsetCommitRequest.VALID_VERSIONS)
def test_commit_has_the_fields_of_each_version(highest: int) -> None:
    offsets = {("a", 1): OffsetAndMetadata(5, 3, A, "m"), ("b", 0): OffsetAndMetadata(6, 4, B)}
    request, version = commit(
        highest, Identity("me", 8, None), offsets, lambda its: f"l{its.metadata}"
    )
    assert version == highest
    read = OffsetCommitRequest.decode(request.encode(version), version)
    assert read.group_id == "g"
    if version >= 1:
        assert (read.member_id, read.generation_id_or_member_epoch) == ("me", 8)
    found = {
        (topic.topic_id if version >= 10 else topic.name, part.partition_index): (
            part.committed_offset,
            part.committed_leader_epoch,
            part.committed_metadata,
        )
        for topic in read.topics
        for part in topic.partitions
    }
    a, b = (A, B) if version >= 10 else ("a", "b")
    epochs = (3, 4) if version >= 6 else (-1, -1)
    label = "" if version >= 10 else "l"
    assert found == {
        (a, 1): (5, epochs[0], f"{label}m"),
        (b, 0): (6, epochs[1], label),
    }


def test_commit_uses_names_if_one_topic_has_no_id() -> None:
    offsets = {("a", 1): OffsetAndMetadata(5, 3, A), ("b", 0): OffsetAndMetadata(6, 4)}
    assert commit(10, None, offsets)[1] == 9


def test_static_member_needs_a_version_with_instance_ids() -> None:
    arguments = Identity("me", 8, "one"), {("a", 1): OffsetAndMetadata(5)}
    assert commit(7, *arguments)[1] == 7
    with pytest.raises(UnsupportedVersionError, match="group_instance_id"):
        commit(6, *arguments)


def test_commit_without_a_member_has_no_member_id() -> None:
    request, _ = commit(10, None, {("a", 1): OffsetAndMetadata(5)})
    assert (request.member_id, request.generation_id_or_member_epoch) == ("", -1)


@pytest.mark.parametrize("by_id", [True, False])
def test_commit_response_is_read(by_id: bool) -> None:
    offsets = {("a", 1): OffsetAndMetadata(5, 3, A), ("b", 0): OffsetAndMetadata(6, 4, B)}
    refused = OffsetCommitResponsePartition(
        partition_index=0, error_code=code_of("ILLEGAL_GENERATION")
    )
    response = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name="" if by_id else name,
                topic_id=IDS[name] if by_id else ZERO_UUID,
                partitions=its,
            )
            for name, its in (
                ("b", [refused]),
                ("a", [OffsetCommitResponsePartition(partition_index=1)]),
            )
        ]
    )
    found = commit_answers(response, offsets)
    assert found["a", 1] is None
    error = found["b", 0]
    assert error is not None
    assert (error.name, list(found)) == ("ILLEGAL_GENERATION", [("a", 1), ("b", 0)])
    response.topics.pop()
    with pytest.raises(ProtocolError, match=r"lacks a\[1\]"):
        commit_answers(response, offsets)


def fetch_offsets(highest: int) -> tuple[OffsetFetchRequest, int]:
    """Returns the OffsetFetch for a broker with versions up to `highest`, and its version."""
    for request in committed_requests("g", [("a", 0), ("b", 1), ("a", 2)], IDS.__getitem__):
        try:
            return request, chosen(request, highest)
        except UnsupportedVersionError:
            continue
    raise AssertionError("no shape")


@pytest.mark.parametrize("highest", OffsetFetchRequest.VALID_VERSIONS)
def test_committed_offsets_are_requested_at_each_version(highest: int) -> None:
    request, version = fetch_offsets(highest)
    assert version == highest
    read = OffsetFetchRequest.decode(request.encode(version), version)
    assert read.require_stable == (version >= 7)
    if version >= 8:
        (group,) = read.groups
        assert group.group_id == "g"
        assert group.topics is not None
        requested = {
            topic.topic_id if version >= 10 else topic.name: topic.partition_indexes
            for topic in group.topics
        }
    else:
        assert read.group_id == "g"
        assert read.topics is not None
        requested = {topic.name: topic.partition_indexes for topic in read.topics}
    a, b = (A, B) if version >= 10 else ("a", "b")
    assert requested == {a: [0, 2], b: [1]}


@pytest.mark.parametrize("version", range(8, 11))
def test_member_with_an_epoch_sends_its_id_and_epoch(version: int) -> None:
    """KIP-848 adds the member id and epoch in v9; v8 has neither field."""
    requests = committed_requests("g", [("a", 0)], IDS.__getitem__, Identity("m", 7, None))
    request = next(iter(requests))
    assert chosen(request, version) == version
    (group,) = OffsetFetchRequest.decode(request.encode(version), version).groups
    assert (group.member_id, group.member_epoch) == (("m", 7) if version > 8 else (None, -1))


TPS = [("a", 0), ("a", 2)]


def answer(version: int, **errors: int) -> OffsetFetchResponse:
    """Returns an OffsetFetch response at `version`.

    `of_group` and `of_partition` are the error codes of the group and of partition a-0; default 0.
    """
    first: dict[str, Any] = {
        "partition_index": 0,
        "committed_offset": 5,
        "committed_leader_epoch": 3,
    }
    second: dict[str, Any] = {
        "partition_index": 2,
        "committed_offset": -1,
        "committed_leader_epoch": -1,
    }
    code, of_group = errors.get("of_partition", 0), errors.get("of_group", 0)
    if version >= 8:
        topic = OffsetFetchResponseTopics(
            name="" if version >= 10 else "a",
            topic_id=A if version >= 10 else ZERO_UUID,
            partitions=[
                OffsetFetchResponsePartitions(**first, metadata=None, error_code=code),
                OffsetFetchResponsePartitions(**second),
            ],
        )
        groups = [OffsetFetchResponseGroup(group_id="g", topics=[topic], error_code=of_group)]
        response = OffsetFetchResponse(groups=groups)
    else:
        response = OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    name="a",
                    partitions=[
                        OffsetFetchResponsePartition(**first, metadata=None, error_code=code),
                        OffsetFetchResponsePartition(**second),
                    ],
                )
            ],
            error_code=of_group,
        )
    return OffsetFetchResponse.decode(response.encode(version), version)


@pytest.mark.parametrize("version", OffsetFetchResponse.VALID_VERSIONS)
def test_committed_offsets_are_read_at_each_version(version: int) -> None:
    found = committed_in(answer(version), "g", TPS, IDS.__getitem__)
    assert found == {("a", 0): (5, 3 if version >= 5 else -1, ""), ("a", 2): None}
    code = code_of("UNSTABLE_OFFSET_COMMIT")
    with pytest.raises(BrokerResponseError, match=r"UNSTABLE_OFFSET_COMMIT.*a\[0\]"):
        committed_in(answer(version, of_partition=code), "g", TPS, IDS.__getitem__)
    if version >= 2:
        code = code_of("GROUP_AUTHORIZATION_FAILED")
        with pytest.raises(BrokerResponseError, match=r"GROUP_AUTHORIZATION_FAILED.*'g'"):
            committed_in(answer(version, of_group=code), "g", TPS, IDS.__getitem__)
    with pytest.raises(ProtocolError, match=r"lacks b\[1\]"):
        committed_in(answer(version), "g", [*TPS, ("b", 1)], IDS.__getitem__)
