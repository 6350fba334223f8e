"""Creates error responses.

Most responses have one top-level error code. Others have an error code for each element of the
request (topic, partition, group, resource). The table `_ERROR_CODE_PATHS` has the paths of these
error codes. This module cannot create error responses of APIs that have no top-level error code and
are not in the table, such as AlterClientQuotas and AlterUserScramCredentials.

Fetch, Metadata and OffsetFetch may return more elements than the request names. For Fetch, the
handler sets the error codes; for Metadata and OffsetFetch, `mark_refused` sets the error codes in
the handler's response.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ...messages.base import Request, Response, Struct
from ...messages.fetch_request import FetchRequest
from ...messages.metadata_request import MetadataRequest
from ...messages.metadata_response import MetadataResponse
from ...messages.offset_fetch_request import OffsetFetchRequest
from ...messages.offset_fetch_response import OffsetFetchResponse
from ...protocol.connection import ReceivedRequest
from ...protocol.error_codes import error_code
from ...protocol.message_classes import response_of
from ...wire.errors import ConfigurationError
from .outcomes import Refuse

__all__ = [
    "NO_TOPICS",
    "TopicLookup",
    "applies_to",
    "is_refused_by_handler",
    "is_top_level_error",
    "mark_refused",
    "merge_refused",
    "split_refused",
]


class TopicLookup(NamedTuple):
    """Finds topic names by topic id, and the partitions of a fetch session by session id.

    `name_of` returns the topic name for a topic id; "" for an unknown id. `session_partitions`
    returns the topic name and the index of each partition of a session.
    """

    name_of: Callable[[bytes], str]
    session_partitions: Callable[[int], Iterable[tuple[str, int]]]


NO_TOPICS: Final = TopicLookup(lambda topic_id: "", lambda session_id: ())


class _ListFieldMapping(NamedTuple):
    """Maps a list field of the request to the list field of the response.

    `struct` is the class name of the response's elements. If the request's elements are plain
    values, such as names, `field` is the field of `struct` that gets the value.
    """

    request_field: str
    response_field: str
    struct: str
    field: str = ""


class _ErrorCodePath(NamedTuple):
    """Describes where a response has its error codes, for the versions `versions` of an API.

    `per_element` is True if the response also has a top-level error code. In this case, a refusal
    of the whole request sets the top-level error code, and a refusal of elements sets the error
    codes of the refused elements. `has_message` is True if an error message may be set.
    """

    steps: tuple[_ListFieldMapping, ...]
    versions: range = range(2**15)
    per_element: bool = False
    has_message: bool = True


def _path(
    *steps: str, versions: range = range(2**15), per_element: bool = False, has_message: bool = True
) -> _ErrorCodePath:
    """Returns a path from steps of the format `request_field > response_field Struct [field]`."""
    read = []
    for step in steps:
        request_field, _, response_field = step.partition(" > ")
        read.append(_ListFieldMapping(request_field, *response_field.split()))
    return _ErrorCodePath(tuple(read), versions, per_element, has_message)


_RESOURCES: Final = "resources > responses AlterConfigsResourceResponse"

#: The error code paths by API key. Other APIs and versions have a top-level error code, or are not
#: supported.
_ERROR_CODE_PATHS: Final[Mapping[int, tuple[_ErrorCodePath, ...]]] = {
    0: (  # Produce
        _path(
            "topic_data > responses TopicProduceResponse",
            "partition_data > partition_responses PartitionProduceResponse",
        ),
    ),
    2: (  # ListOffsets
        _path(
            "topics > topics ListOffsetsTopicResponse",
            "partitions > partitions ListOffsetsPartitionResponse",
        ),
    ),
    8: (  # OffsetCommit
        _path(
            "topics > topics OffsetCommitResponseTopic",
            "partitions > partitions OffsetCommitResponsePartition",
        ),
    ),
    9: (  # OffsetFetch
        _path(
            "topics > topics OffsetFetchResponseTopic",
            "partition_indexes > partitions OffsetFetchResponsePartition partition_index",
            versions=range(2),
        ),
        _path("groups > groups OffsetFetchResponseGroup", versions=range(8, 2**15)),
    ),
    10: (  # FindCoordinator
        _path("coordinator_keys > coordinators Coordinator key", versions=range(4, 2**15)),
    ),
    15: (  # DescribeGroups
        _path("groups > groups DescribedGroup group_id", versions=range(6), has_message=False),
        _path("groups > groups DescribedGroup group_id", versions=range(6, 2**15)),
    ),
    19: (_path("topics > topics CreatableTopicResult"),),  # CreateTopics
    20: (  # DeleteTopics
        _path("topic_names > responses DeletableTopicResult name", versions=range(6)),
        _path("topics > responses DeletableTopicResult", versions=range(6, 2**15)),
    ),
    21: (  # DeleteRecords
        _path(
            "topics > topics DeleteRecordsTopicResult",
            "partitions > partitions DeleteRecordsPartitionResult",
        ),
    ),
    23: (  # OffsetForLeaderEpoch
        _path(
            "topics > topics OffsetForLeaderTopicResult", "partitions > partitions EpochEndOffset"
        ),
    ),
    24: (  # AddPartitionsToTxn
        _path(
            "v3_and_below_topics > results_by_topic_v3_and_below AddPartitionsToTxnTopicResult",
            "partitions > results_by_partition AddPartitionsToTxnPartitionResult partition_index",
            versions=range(4),
        ),
    ),
    28: (  # TxnOffsetCommit
        _path(
            "topics > topics TxnOffsetCommitResponseTopic",
            "partitions > partitions TxnOffsetCommitResponsePartition",
        ),
    ),
    30: (_path("creations > results AclCreationResult"),),  # CreateAcls
    31: (_path("filters > filter_results DeleteAclsFilterResult"),),  # DeleteAcls
    32: (_path("resources > results DescribeConfigsResult"),),  # DescribeConfigs
    33: (_path(_RESOURCES),),  # AlterConfigs
    37: (_path("topics > results CreatePartitionsTopicResult"),),  # CreatePartitions
    42: (_path("groups_names > results DeletableGroupResult group_id"),),  # DeleteGroups
    44: (_path(_RESOURCES),),  # IncrementalAlterConfigs
    47: (  # OffsetDelete
        _path(
            "topics > topics OffsetDeleteResponseTopic",
            "partitions > partitions OffsetDeleteResponsePartition",
            per_element=True,
        ),
    ),
    61: (  # DescribeProducers
        _path(
            "topics > topics TopicResponse",
            "partition_indexes > partitions PartitionResponse partition_index",
        ),
    ),
    65: (  # DescribeTransactions
        _path("transactional_ids > transaction_states TransactionState transactional_id"),
    ),
    69: (_path("group_ids > groups DescribedGroup group_id"),),  # ConsumerGroupDescribe
}

#: The values that stand for "no result" in fields whose value 0 would be a valid result.
_UNKNOWN: Final[Mapping[str, Any]] = {
    "base_offset": -1,
    "committed_offset": -1,
    "low_watermark": -1,
    "node_id": -1,
    "port": -1,
}

#: Requests that `applies_to` checks without a path: their responses may have more elements than the
#: request.
_REFUSED_BY_HANDLER: Final = (FetchRequest, MetadataRequest)

#: The first version of OffsetFetch that can name several groups.
_FIRST_VERSION_OF_MANY_GROUPS: Final = 8

#: Error codes that a Fetch response has at its top level, not for a partition.
_TOP_LEVEL_FETCH_ERRORS: Final = frozenset(
    {
        "FETCH_SESSION_ID_NOT_FOUND",
        "FETCH_SESSION_TOPIC_ID_ERROR",
        "INVALID_FETCH_SESSION_EPOCH",
        "THROTTLING_QUOTA_EXCEEDED",
        "UNSUPPORTED_VERSION",
    }
)


def applies_to(request: ReceivedRequest, refuse: Refuse, lookup: TopicLookup) -> bool:
    """Returns True if `refuse` refuses the request, or an element of the request.

    If a Metadata or OffsetFetch request is for all topics, returns True, because the response may
    contain a refused topic. Raises the error of `_error_code_path`.
    """
    message = request.message
    if message is None:
        return False
    if isinstance(message, _REFUSED_BY_HANDLER):
        if not refuse.partitions:
            return True
        if isinstance(message, FetchRequest):
            return any(refuse.includes(*tp) for tp in _fetched_partitions(message, lookup))
        if message.topics is None or (request.version == 0 and not message.topics):
            return True
        return any(refuse.includes(_name(topic, lookup)) for topic in message.topics)
    if isinstance(message, OffsetFetchRequest) and refuse.partitions:
        return _fetches_refused_partition(message, request.version, refuse, lookup)
    path = _error_code_path(message, request.version, per_element=bool(refuse.partitions))
    if path is None:
        return not refuse.partitions
    return any(_are_refused(path, message, refuse, lookup))


def _fetched_partitions(request: FetchRequest, lookup: TopicLookup) -> set[tuple[str, int]]:
    """Returns the partitions that a Fetch reads, including the partitions of its fetch session."""
    partitions: set[tuple[str, int]] = set()
    if request.session_epoch > 0:
        partitions.update(lookup.session_partitions(request.session_id))
    for topic in request.topics:
        name = _name(topic, lookup)
        partitions.update((name, fetched.partition) for fetched in topic.partitions)
    for forgotten in request.forgotten_topics_data:
        name = _name(forgotten, lookup)
        partitions.difference_update((name, index) for index in forgotten.partitions)
    return partitions


def _fetches_refused_partition(
    request: OffsetFetchRequest, version: int, refuse: Refuse, lookup: TopicLookup
) -> bool:
    """Returns True if an OffsetFetch contains a refused group or partition.

    Also returns True if the request is for all topics: the response may contain a refused
    partition.
    """
    groups: list[Any] = [request]
    if version >= _FIRST_VERSION_OF_MANY_GROUPS:
        groups = list(request.groups)
        if any(refuse.includes(group.group_id) for group in groups):
            return True
    return any(
        group.topics is None
        or any(
            refuse.includes(_name(topic, lookup), index)
            for topic in group.topics
            for index in topic.partition_indexes
        )
        for group in groups
    )


def is_refused_by_handler(request: Request[Any], refuse: Refuse) -> bool:
    """Returns True if the handler gets the whole request, including the elements to refuse.

    The handler of Fetch sets the error codes of the refused elements. For Metadata and OffsetFetch,
    `mark_refused` sets these error codes in the handler's response.
    """
    if isinstance(request, OffsetFetchRequest):
        return bool(refuse.partitions)
    return isinstance(request, MetadataRequest) or (
        isinstance(request, FetchRequest) and not is_top_level_error(refuse)
    )


def is_top_level_error(refuse: Refuse) -> bool:
    """Returns True if the error of `refuse` stands only at the top level of a Fetch response.

    The partitions of a Fetch response never have this error.
    """
    return error_code(refuse.code).name in _TOP_LEVEL_FETCH_ERRORS


def split_refused(
    request: Request[Any], version: int, refuse: Refuse, lookup: TopicLookup = NO_TOPICS
) -> tuple[Request[Any] | None, Response]:
    """Returns the request without its refused elements, and the response to the refused elements.

    The request is None if no element remains, or if the response has only a top-level error code.
    Raises ConfigurationError if the API is not supported (see `_error_code_path`).
    """
    answer_class = response_of(type(request))
    assert answer_class is not None, "the broker read it, so that it has a response"
    answer: Any = answer_class()
    path = None
    if not isinstance(request, FetchRequest):
        path = _error_code_path(request, version, per_element=bool(refuse.partitions))
    if path is None:
        _set_error(answer, refuse)
        return None, answer
    remaining = request.copy()
    _split(path, remaining, answer, refuse, lookup)
    return (remaining if getattr(remaining, path.steps[0].request_field) else None), answer


def merge_refused(answer: Response, refused: Response, request: Request[Any], version: int) -> None:
    """Adds the elements of `refused` to `answer`, which the handler returned for other elements."""
    path = _error_code_path(request, version, per_element=True)
    assert path is not None, "else there is no rest"
    first = path.steps[0]
    response_field = getattr(answer, first.response_field)
    for member in getattr(refused, first.response_field):
        same = [it for it in response_field if _identity(it) == _identity(member)]
        if same and len(path.steps) > 1:
            inner = path.steps[1].response_field
            getattr(same[0], inner).extend(getattr(member, inner))
        else:
            response_field.append(member)


def mark_refused(answer: Response | None, refuse: Refuse, lookup: TopicLookup = NO_TOPICS) -> None:
    """Sets the error code of refused elements in a Metadata or OffsetFetch response.

    Does nothing for other responses.
    """
    if isinstance(answer, MetadataResponse):
        _mark_topics(answer, refuse)
    elif isinstance(answer, OffsetFetchResponse):
        _mark_offsets(answer.topics, refuse, lookup)
        for group in answer.groups:
            if refuse.includes(group.group_id):
                group.error_code = refuse.code
                group.topics = []
            _mark_offsets(group.topics, refuse, lookup)


def _mark_offsets(topics: Iterable[Any], refuse: Refuse, lookup: TopicLookup) -> None:
    for topic in topics:
        name = _name(topic, lookup)
        for partition in topic.partitions:
            if refuse.includes(name, partition.partition_index):
                _set_error(partition, refuse)
                partition.committed_leader_epoch = -1
                partition.metadata = ""


def _mark_topics(answer: MetadataResponse, refuse: Refuse) -> None:
    for topic in answer.topics:
        name = topic.name or ""
        if not refuse.includes(name):
            continue
        if refuse.partitions.get(name):
            for partition in topic.partitions:
                if refuse.includes(name, partition.partition_index):
                    partition.error_code = refuse.code
                    partition.leader_id = -1
        else:
            topic.error_code = refuse.code
            topic.partitions = []


def _error_code_path(
    request: Request[Any], version: int, *, per_element: bool
) -> _ErrorCodePath | None:
    """Returns the path to the error codes in the response; None for the top-level error code.

    `per_element` is True if some elements of the request are refused, False if the whole request is
    refused. Raises ConfigurationError if `_ERROR_CODE_PATHS` has no path for the request, and the
    response has no top-level error code.
    """
    for path in _ERROR_CODE_PATHS.get(request.API_KEY, ()):
        if version in path.versions and per_element >= path.per_element:
            return path
    answer_class = response_of(type(request))
    if answer_class is None or "error_code" not in answer_class._names():
        raise ConfigurationError(
            f"ErrorCode cannot set an error code in the response to {type(request).__name__} "
            f"v{version}; let a control function return the response"
        )
    return None


def _are_refused(
    path: _ErrorCodePath, request: Request[Any], refuse: Refuse, lookup: TopicLookup
) -> Iterator[bool]:
    for member in getattr(request, path.steps[0].request_field) or ():
        name = _name(member, lookup)
        if len(path.steps) == 1:
            yield refuse.includes(name)
        else:
            for inner in getattr(member, path.steps[1].request_field):
                yield refuse.includes(name, _index(inner))


def _split(
    path: _ErrorCodePath, remaining: Any, answer: Any, refuse: Refuse, lookup: TopicLookup
) -> None:
    """Writes an error to the error response `answer` for each element that `refuse` refuses.

    Removes the refused elements from the request `remaining`.
    """
    steps, top = path.steps, type(answer)
    first = steps[0]
    kept_members = []
    for member in getattr(remaining, first.request_field) or ():
        name = _name(member, lookup)
        if not refuse.includes(name):
            kept_members.append(member)
            continue
        response_struct = _response_element(first, member, top)
        if len(steps) == 1:
            _set_error(response_struct, refuse, path.has_message)
        else:
            inner = steps[1]
            refused = [
                it
                for it in getattr(member, inner.request_field)
                if refuse.includes(name, _index(it))
            ]
            rest = [
                it
                for it in getattr(member, inner.request_field)
                if not refuse.includes(name, _index(it))
            ]
            for it in refused:
                inner_response = _response_element(inner, it, top)
                _set_error(inner_response, refuse, path.has_message)
                getattr(response_struct, inner.response_field).append(inner_response)
            if rest:
                setattr(member, inner.request_field, rest)
                kept_members.append(member)
            if not refused:
                continue
        getattr(answer, first.response_field).append(response_struct)
    setattr(remaining, first.request_field, kept_members)


def _response_element(step: _ListFieldMapping, member: Any, top: type[Response]) -> Any:
    """Returns the response element for a request element.

    Copies the fields that have the same name in both elements, except lists and structs.
    """
    response_struct = getattr(sys.modules[top._generated().__module__], step.struct)()
    if step.field:
        setattr(response_struct, step.field, member)
    else:
        for name in response_struct._names():
            if name in member._names() and not isinstance(getattr(member, name), list | Struct):
                setattr(response_struct, name, getattr(member, name))
    return response_struct


def _set_error(struct: Any, refuse: Refuse, has_message: bool = True) -> None:
    names = struct._names()
    for name, value in _UNKNOWN.items():
        if name in names:
            setattr(struct, name, value)
    field = "error_code" if "error_code" in names else "partition_error_code"
    setattr(struct, field, refuse.code)
    if has_message and "error_message" in names:
        struct.error_message = "a fault of the test"


def _name(member: Any, lookup: TopicLookup = NO_TOPICS) -> str:
    """Returns the name of `member`, an element of a request or response; "" without a name.

    The element is a name itself, or the struct of a topic, resource or group.

    `lookup` looks up the name of a topic that has only a topic id.
    """
    if isinstance(member, str):
        return member
    for name in ("name", "topic", "resource_name", "group_id"):
        found = getattr(member, name, None)
        if found:
            return str(found)
    topic_id = getattr(member, "topic_id", None)
    return lookup.name_of(topic_id) if topic_id else ""


def _index(member: Any) -> int | None:
    if isinstance(member, int):
        return member
    for name in ("partition_index", "partition", "index"):
        found = getattr(member, name, None)
        if found is not None:
            return int(found)
    return None


def _identity(member: Any) -> tuple[Any, ...]:
    return _name(member), bytes(getattr(member, "topic_id", b""))
