"""Error responses of any API: a table of where each response has its error codes.

Most responses have one top-level code. The others have one for each element of the request, which
`_PLACES` lists. Fetch, Metadata and OffsetFetch return more than their request names: there the
handler refuses the elements, or the response is marked afterwards.
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
    """Data of the broker that a request does not contain.

    `name_of` returns the name of a topic by its id, empty if there is none; `held` returns the
    topics and partitions of a fetch session by its id.
    """

    name_of: Callable[[bytes], str]
    held: Callable[[int], Iterable[tuple[str, int]]]


NO_TOPICS: Final = TopicLookup(lambda topic_id: "", lambda session_id: ())


class _Step(NamedTuple):
    """Maps a list of the request to one of the response, whose elements are of class `struct`.

    `field` gets an element of the request that is no struct.
    """

    asked: str
    answered: str
    struct: str
    field: str = ""


class _Place(NamedTuple):
    """The path to the error codes of one API in these versions.

    With `some`, a refusal of the whole request sets the top-level code, and one of elements their
    codes. `says_why` allows an error message beside the code.
    """

    steps: tuple[_Step, ...]
    versions: range = range(2**15)
    some: bool = False
    says_why: bool = True


def _place(
    *steps: str, versions: range = range(2**15), some: bool = False, says_why: bool = True
) -> _Place:
    """Parses steps of the form `asked > answered Struct field`."""
    read = []
    for step in steps:
        asked, _, answered = step.partition(" > ")
        read.append(_Step(asked, *answered.split()))
    return _Place(tuple(read), versions, some, says_why)


_RESOURCES: Final = "resources > responses AlterConfigsResourceResponse"

#: By API key; other APIs and versions have a top-level code.
_PLACES: Final[Mapping[int, tuple[_Place, ...]]] = {
    0: (  # Produce
        _place(
            "topic_data > responses TopicProduceResponse",
            "partition_data > partition_responses PartitionProduceResponse",
        ),
    ),
    2: (  # ListOffsets
        _place(
            "topics > topics ListOffsetsTopicResponse",
            "partitions > partitions ListOffsetsPartitionResponse",
        ),
    ),
    8: (  # OffsetCommit
        _place(
            "topics > topics OffsetCommitResponseTopic",
            "partitions > partitions OffsetCommitResponsePartition",
        ),
    ),
    9: (  # OffsetFetch
        _place(
            "topics > topics OffsetFetchResponseTopic",
            "partition_indexes > partitions OffsetFetchResponsePartition partition_index",
            versions=range(2),
        ),
        _place("groups > groups OffsetFetchResponseGroup", versions=range(8, 2**15)),
    ),
    10: (  # FindCoordinator
        _place("coordinator_keys > coordinators Coordinator key", versions=range(4, 2**15)),
    ),
    15: (  # DescribeGroups
        _place("groups > groups DescribedGroup group_id", versions=range(6), says_why=False),
        _place("groups > groups DescribedGroup group_id", versions=range(6, 2**15)),
    ),
    19: (_place("topics > topics CreatableTopicResult"),),  # CreateTopics
    20: (  # DeleteTopics
        _place("topic_names > responses DeletableTopicResult name", versions=range(6)),
        _place("topics > responses DeletableTopicResult", versions=range(6, 2**15)),
    ),
    21: (  # DeleteRecords
        _place(
            "topics > topics DeleteRecordsTopicResult",
            "partitions > partitions DeleteRecordsPartitionResult",
        ),
    ),
    23: (  # OffsetForLeaderEpoch
        _place(
            "topics > topics OffsetForLeaderTopicResult", "partitions > partitions EpochEndOffset"
        ),
    ),
    28: (  # TxnOffsetCommit
        _place(
            "topics > topics TxnOffsetCommitResponseTopic",
            "partitions > partitions TxnOffsetCommitResponsePartition",
        ),
    ),
    30: (_place("creations > results AclCreationResult"),),  # CreateAcls
    31: (_place("filters > filter_results DeleteAclsFilterResult"),),  # DeleteAcls
    32: (_place("resources > results DescribeConfigsResult"),),  # DescribeConfigs
    33: (_place(_RESOURCES),),  # AlterConfigs
    37: (_place("topics > results CreatePartitionsTopicResult"),),  # CreatePartitions
    42: (_place("groups_names > results DeletableGroupResult group_id"),),  # DeleteGroups
    44: (_place(_RESOURCES),),  # IncrementalAlterConfigs
    47: (  # OffsetDelete
        _place(
            "topics > topics OffsetDeleteResponseTopic",
            "partitions > partitions OffsetDeleteResponsePartition",
            some=True,
        ),
    ),
    61: (  # DescribeProducers
        _place(
            "topics > topics TopicResponse",
            "partition_indexes > partitions PartitionResponse partition_index",
        ),
    ),
    65: (  # DescribeTransactions
        _place("transactional_ids > transaction_states TransactionState transactional_id"),
    ),
    69: (_place("group_ids > groups DescribedGroup group_id"),),  # ConsumerGroupDescribe
}

#: Values of fields without a result, if 0 would be a result.
_UNKNOWN: Final[Mapping[str, Any]] = {
    "base_offset": -1,
    "committed_offset": -1,
    "low_watermark": -1,
    "node_id": -1,
    "port": -1,
}

#: Requests whose handlers refuse the elements themselves.
_HANDLED: Final = (FetchRequest, MetadataRequest)

#: Since this version one OffsetFetch can name many groups.
_FIRST_VERSION_OF_MANY_GROUPS: Final = 8

#: Error codes of a whole Fetch, not of its partitions.
_OF_ALL_FETCHED: Final = frozenset(
    {
        "FETCH_SESSION_ID_NOT_FOUND",
        "FETCH_SESSION_TOPIC_ID_ERROR",
        "INVALID_FETCH_SESSION_EPOCH",
        "THROTTLING_QUOTA_EXCEEDED",
        "UNSUPPORTED_VERSION",
    }
)


def applies_to(request: ReceivedRequest, refuse: Refuse, known: TopicLookup) -> bool:
    """Returns whether a request contains anything that is refused.

    Raises ConfigurationError if the response of the API has no error code.
    """
    message = request.message
    if message is None:
        return False
    if isinstance(message, _HANDLED):
        if not refuse.partitions:
            return True
        if isinstance(message, FetchRequest):
            return any(refuse.includes(*place) for place in _read(message, known))
        if message.topics is None or (request.version == 0 and not message.topics):
            return True
        return any(refuse.includes(_name(topic, known)) for topic in message.topics)
    if isinstance(message, OffsetFetchRequest) and refuse.partitions:
        return _fetches_any(message, request.version, refuse, known)
    place = _place_of(message, request.version, some=bool(refuse.partitions))
    if place is None:
        return not refuse.partitions
    return any(_meant(place, message, refuse, known))


def _read(request: FetchRequest, known: TopicLookup) -> set[tuple[str, int]]:
    """Returns the topics and partitions that a Fetch reads, with those of its session."""
    read: set[tuple[str, int]] = set()
    if request.session_epoch > 0:
        read.update(known.held(request.session_id))
    for topic in request.topics:
        name = _name(topic, known)
        read.update((name, wanted.partition) for wanted in topic.partitions)
    for forgotten in request.forgotten_topics_data:
        name = _name(forgotten, known)
        read.difference_update((name, index) for index in forgotten.partitions)
    return read


def _fetches_any(
    request: OffsetFetchRequest, version: int, refuse: Refuse, known: TopicLookup
) -> bool:
    """Returns whether an OffsetFetch contains a refused partition, also if it names no topics."""
    wanted: list[Any] = [request]
    if version >= _FIRST_VERSION_OF_MANY_GROUPS:
        wanted = list(request.groups)
        if any(refuse.includes(group.group_id) for group in wanted):
            return True
    return any(
        group.topics is None
        or any(
            refuse.includes(_name(topic, known), index)
            for topic in group.topics
            for index in topic.partition_indexes
        )
        for group in wanted
    )


def is_refused_by_handler(request: Request[Any], refuse: Refuse) -> bool:
    """Returns whether the handler refuses, or its response is marked afterwards."""
    if isinstance(request, OffsetFetchRequest):
        return bool(refuse.partitions)
    return isinstance(request, MetadataRequest) or (
        isinstance(request, FetchRequest) and not is_top_level_error(refuse)
    )


def is_top_level_error(refuse: Refuse) -> bool:
    """Returns whether a code is a top-level error of Fetch."""
    return error_code(refuse.code).name in _OF_ALL_FETCHED


def split_refused(
    request: Request[Any], version: int, refuse: Refuse, known: TopicLookup = NO_TOPICS
) -> tuple[Request[Any] | None, Response]:
    """Splits a request into the rest to handle and the response to the refused part.

    Returns None for an empty rest. Raises ConfigurationError.
    """
    answer_class = response_of(type(request))
    assert answer_class is not None, "the broker read it, so that it has a response"
    answer: Any = answer_class()
    place = None
    if not isinstance(request, FetchRequest):
        place = _place_of(request, version, some=bool(refuse.partitions))
    if place is None:
        _say(answer, refuse)
        return None, answer
    left = request.copy()
    _split(place, left, answer, refuse, known)
    return (left if getattr(left, place.steps[0].asked) else None), answer


def merge_refused(answer: Response, refused: Response, request: Request[Any], version: int) -> None:
    """Merges the refused part into the response to the rest."""
    place = _place_of(request, version, some=True)
    assert place is not None, "else there is no rest"
    first = place.steps[0]
    answered = getattr(answer, first.answered)
    for member in getattr(refused, first.answered):
        same = [it for it in answered if _identity(it) == _identity(member)]
        if same and len(place.steps) > 1:
            inner = place.steps[1].answered
            getattr(same[0], inner).extend(getattr(member, inner))
        else:
            answered.append(member)


def mark_refused(answer: Response | None, refuse: Refuse, known: TopicLookup = NO_TOPICS) -> None:
    """Sets the error of refused topics and partitions in Metadata and OffsetFetch responses."""
    if isinstance(answer, MetadataResponse):
        _mark_topics(answer, refuse)
    elif isinstance(answer, OffsetFetchResponse):
        _mark_offsets(answer.topics, refuse, known)
        for group in answer.groups:
            if refuse.includes(group.group_id):
                group.error_code = refuse.code
                group.topics = []
            _mark_offsets(group.topics, refuse, known)


def _mark_offsets(topics: Iterable[Any], refuse: Refuse, known: TopicLookup) -> None:
    for topic in topics:
        name = _name(topic, known)
        for partition in topic.partitions:
            if refuse.includes(name, partition.partition_index):
                _say(partition, refuse)
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


def _place_of(request: Request[Any], version: int, *, some: bool) -> _Place | None:
    """Returns the path to the codes of a whole request, or of some of its elements.

    Returns None for a top-level code. Raises ConfigurationError.
    """
    for place in _PLACES.get(request.API_KEY, ()):
        if version in place.versions and some >= place.some:
            return place
    answer_class = response_of(type(request))
    if answer_class is None or "error_code" not in answer_class._names():
        raise ConfigurationError(
            f"ErrorCode knows no place for a code in the answer to {type(request).__name__} "
            f"v{version}; let a control function return the response"
        )
    return None


def _meant(
    place: _Place, request: Request[Any], refuse: Refuse, known: TopicLookup
) -> Iterator[bool]:
    for member in getattr(request, place.steps[0].asked) or ():
        name = _name(member, known)
        if len(place.steps) == 1:
            yield refuse.includes(name)
        else:
            for inner in getattr(member, place.steps[1].asked):
                yield refuse.includes(name, _index(inner))


def _split(place: _Place, left: Any, answer: Any, refuse: Refuse, known: TopicLookup) -> None:
    """Moves the refused elements from `left` to `answer`."""
    steps, top = place.steps, type(answer)
    first = steps[0]
    kept = []
    for member in getattr(left, first.asked) or ():
        name = _name(member, known)
        if not refuse.includes(name):
            kept.append(member)
            continue
        response_struct = _named_again(first, member, top)
        if len(steps) == 1:
            _say(response_struct, refuse, place.says_why)
        else:
            inner = steps[1]
            meant = [it for it in getattr(member, inner.asked) if refuse.includes(name, _index(it))]
            rest = [
                it for it in getattr(member, inner.asked) if not refuse.includes(name, _index(it))
            ]
            for it in meant:
                deep = _named_again(inner, it, top)
                _say(deep, refuse, place.says_why)
                getattr(response_struct, inner.answered).append(deep)
            if rest:
                setattr(member, inner.asked, rest)
                kept.append(member)
            if not meant:
                continue
        getattr(answer, first.answered).append(response_struct)
    setattr(left, first.asked, kept)


def _named_again(step: _Step, member: Any, top: type[Response]) -> Any:
    """Returns the struct of the response for an element of the request."""
    response_struct = getattr(sys.modules[top._generated().__module__], step.struct)()
    if step.field:
        setattr(response_struct, step.field, member)
    else:
        for name in response_struct._names():
            if name in member._names() and not isinstance(getattr(member, name), list | Struct):
                setattr(response_struct, name, getattr(member, name))
    return response_struct


def _say(struct: Any, refuse: Refuse, says_why: bool = True) -> None:
    names = struct._names()
    for name, value in _UNKNOWN.items():
        if name in names:
            setattr(struct, name, value)
    struct.error_code = refuse.code
    if says_why and "error_message" in names:
        struct.error_message = "a fault of the test"


def _name(member: Any, known: TopicLookup = NO_TOPICS) -> str:
    """Returns the name of an element of a request: a topic, resource or group."""
    if isinstance(member, str):
        return member
    for name in ("name", "topic", "resource_name", "group_id"):
        found = getattr(member, name, None)
        if found:
            return str(found)
    topic_id = getattr(member, "topic_id", None)
    return known.name_of(topic_id) if topic_id else ""


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
