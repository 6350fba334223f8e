"""Splits requests for several brokers, and merges their responses.

An element is a part of a request that a broker answers as a whole, such as a partition or a group
id. `SPLIT_RULES` has, for each request that can be split, the paths of the elements in the request
and in the response. `routing` determines the brokers that answer an element. The elements of one
broker form a piece of the request, which `request_router` sends. Plain functions on plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from ...messages.base import Message, Request, Response
from ...wire.errors import ConfigurationError
from ...wire.uuid import ZERO_UUID

__all__ = [
    "SCALARS",
    "SPLIT_RULES",
    "Element",
    "KeyedListField",
    "SplitRule",
    "merged",
    "request_elements",
    "response_elements",
    "split",
]

Q = TypeVar("Q", bound=Request[Any])
R = TypeVar("R", bound=Response)

#: An element, preceded by the structs that contain it, e.g. a topic and one of its partitions.
Element: TypeAlias = tuple[Any, ...]

#: The values of the fields that identify an element. An element may have several identities, e.g.
#: the name and the id of a topic.
_Identity: TypeAlias = tuple[Any, ...]


class KeyedListField(NamedTuple):
    """A list in a message: the name of its field, and the fields that identify a struct in it.

    `keys` has tuples of field names; each tuple identifies a struct, and one of them is enough.
    `keys` is empty for a list of plain values, which identify themselves.
    """

    field: str
    keys: tuple[tuple[str, ...], ...]

    def identities(self, element: Any) -> list[_Identity]:
        """Returns the identities of an element.

        Each identity is a tuple: an index in `keys`, then the value of each field in that entry of
        `keys`. The identity of a plain value is (0, value). Leaves out an identity if its first
        value is empty, null or a zero id, unless all identities have such a first value.
        """
        if not self.keys:
            return [(0, element)]
        found = [
            (at, *(getattr(element, name) for name in names)) for at, names in enumerate(self.keys)
        ]
        return [each for each in found if _is_set(each[1])] or found


def _is_set(value: Any) -> bool:
    return value != ZERO_UUID if isinstance(value, bytes) else value not in ("", None)


@cache
def _levels(path: str) -> tuple[KeyedListField, ...]:
    levels = []
    for part in path.split("."):
        field, _, keys = part.removesuffix("]").partition("[")
        alternatives = tuple(tuple(each.split("+")) for each in keys.split("|") if each)
        levels.append(KeyedListField(field, alternatives))
    return tuple(levels)


class SplitRule(NamedTuple):
    """The rule that splits requests of one class: the element paths of request and response.

    Requests for which `is_unsplittable` returns True cannot be split, because only one broker can
    answer them; `unsplittable_reason` is the reason in the error.
    """

    request_path: str
    response_path: str
    unsplittable_reason: str = ""
    is_unsplittable: Callable[[Any], bool] = lambda request: False

    @property
    def request_levels(self) -> tuple[KeyedListField, ...]:
        """The lists that lead to an element of the request, outermost first."""
        return _levels(self.request_path)

    @property
    def response_levels(self) -> tuple[KeyedListField, ...]:
        """The lists that lead to an element of the response, outermost first."""
        return _levels(self.response_path)


def _is_of_session(request: Any) -> bool:
    return bool(request.session_id) or request.session_epoch != -1


def _names_no_topic(request: Any) -> bool:
    return not request.topics


_SHARE_SESSION: Final = "a share session, and has no topics"
_NAMED_GROUPS: Final = "groups[group_id]"
_RESOURCES: Final = "resources[resource_type+resource_name]"

#: All requests that can be split. A path has the names of lists, from the outermost to the list of
#: the elements. Brackets after a name have the fields that identify an entry of the list: `a|b` if
#: `a` or `b` identifies it, `a+b` if both together do.
SPLIT_RULES: Final[dict[str, SplitRule]] = {
    # Answered by the leaders of partitions.
    "ProduceRequest": SplitRule(
        "topic_data[name|topic_id].partition_data[index]",
        "responses[name|topic_id].partition_responses[index]",
    ),
    "FetchRequest": SplitRule(
        "topics[topic|topic_id].partitions[partition]",
        "responses[topic|topic_id].partitions[partition_index]",
        unsplittable_reason="a fetch session",
        is_unsplittable=_is_of_session,
    ),
    "ListOffsetsRequest": SplitRule(
        "topics[name].partitions[partition_index]",
        "topics[name].partitions[partition_index]",
    ),
    "DeleteRecordsRequest": SplitRule(
        "topics[name].partitions[partition_index]",
        "topics[name].partitions[partition_index]",
    ),
    "OffsetForLeaderEpochRequest": SplitRule(
        "topics[topic].partitions[partition]",
        "topics[topic].partitions[partition]",
    ),
    "DescribeProducersRequest": SplitRule(
        "topics[name].partition_indexes[]",
        "topics[name].partitions[partition_index]",
    ),
    "WriteTxnMarkersRequest": SplitRule(
        "markers[producer_id].topics[name].partition_indexes[]",
        "markers[producer_id].topics[name].partitions[partition_index]",
    ),
    "ShareFetchRequest": SplitRule(
        "topics[topic_id].partitions[partition_index]",
        "responses[topic_id].partitions[partition_index]",
        unsplittable_reason=_SHARE_SESSION,
        is_unsplittable=_names_no_topic,
    ),
    "ShareAcknowledgeRequest": SplitRule(
        "topics[topic_id].partitions[partition_index]",
        "responses[topic_id].partitions[partition_index]",
        unsplittable_reason=_SHARE_SESSION,
        is_unsplittable=_names_no_topic,
    ),
    # Answered by every broker with a replica.
    "AlterReplicaLogDirsRequest": SplitRule(
        "dirs[path].topics[name].partitions[]",
        "results[topic_name].partitions[partition_index]",
    ),
    # Answered by coordinators.
    "DescribeGroupsRequest": SplitRule("groups[]", _NAMED_GROUPS),
    "DeleteGroupsRequest": SplitRule("groups_names[]", "results[group_id]"),
    "OffsetFetchRequest": SplitRule(_NAMED_GROUPS, _NAMED_GROUPS),
    "ConsumerGroupDescribeRequest": SplitRule("group_ids[]", _NAMED_GROUPS),
    "ShareGroupDescribeRequest": SplitRule("group_ids[]", _NAMED_GROUPS),
    "StreamsGroupDescribeRequest": SplitRule("group_ids[]", _NAMED_GROUPS),
    "DescribeShareGroupOffsetsRequest": SplitRule(_NAMED_GROUPS, _NAMED_GROUPS),
    "DescribeTransactionsRequest": SplitRule(
        "transactional_ids[]", "transaction_states[transactional_id]"
    ),
    "AddPartitionsToTxnRequest": SplitRule(
        "transactions[transactional_id]", "results_by_transaction[transactional_id]"
    ),
    # Answered by the broker that the config resource names; by any broker for other resources.
    "DescribeConfigsRequest": SplitRule(_RESOURCES, "results[resource_type+resource_name]"),
    "AlterConfigsRequest": SplitRule(_RESOURCES, "responses[resource_type+resource_name]"),
    "IncrementalAlterConfigsRequest": SplitRule(
        _RESOURCES, "responses[resource_type+resource_name]"
    ),
}


def _first_set(values: Sequence[Any]) -> Any:
    return next((value for value in values if value), values[0])


def _every_node(lists: Sequence[Any]) -> list[Any]:
    """Returns each node once, with its last address."""
    return list({each.node_id: each for nodes in lists for each in nodes}.values())


#: The fields outside the elements that have a merge function: by name a description of the merged
#: value, and the function. All other fields outside the elements are lists, which are concatenated.
SCALARS: Final[dict[str, tuple[str, Callable[[Sequence[Any]], Any]]]] = {
    "throttle_time_ms": ("the longest", max),
    "error_code": ("the first that is not 0", _first_set),
    "error_message": ("the first", _first_set),
    "session_id": ("the first", _first_set),
    "acquisition_lock_timeout_ms": ("the first", _first_set),
    "node_endpoints": ("each node once", _every_node),
}


def request_elements(request: Message, row: SplitRule) -> list[Element]:
    """Returns the elements of a request in their order, each with the structs around it."""
    return list(_walk(request, row.request_levels))


def response_elements(response: Message, row: SplitRule) -> list[Element]:
    """Returns the elements of a response in their order, each with the structs around it."""
    return list(_walk(response, row.response_levels))


def _walk(struct: Any, levels: Sequence[KeyedListField]) -> Iterator[Element]:
    first, *others = levels
    for element in getattr(struct, first.field) or ():
        if others:
            for inner in _walk(element, others):
                yield element, *inner
        else:
            yield (element,)


def split(request: Q, row: SplitRule, owners: Sequence[Sequence[int]]) -> dict[int, Q]:
    """Splits a request; returns, by node id, the request for each broker.

    `owners` has, for each element of the request, the node ids of the brokers that answer for it.
    The elements of each new request keep their order. If the same broker answers for all elements,
    returns `request` itself; otherwise returns new objects that share their elements with
    `request`. Structs without elements, such as a topic without partitions, are in the first new
    request only. Raises ConfigurationError if the request cannot be split.
    """
    nodes = list(dict.fromkeys(node for its in owners for node in its))
    if len(nodes) == 1:
        return {nodes[0]: request}
    if row.is_unsplittable(request):
        raise ConfigurationError(
            f"{type(request).__name__} is for {row.unsplittable_reason}; only the broker of that "
            "session can answer it: pass its node id as broker="
        )
    levels = row.request_levels
    return {
        node: _part(request, levels, iter([node in its for its in owners]), node == nodes[0])
        for node in nodes
    }


def _part(
    struct: Any, levels: Sequence[KeyedListField], wanted: Iterator[bool], keep_empty: bool
) -> Any:
    """Returns a copy of `struct` that has only the wanted elements.

    `levels` are the nested lists of `struct`, the outermost first; the elements are in the lists of
    the last level. `wanted` has a flag for each element. A struct whose inner list has no wanted
    element is left out. With `keep_empty`, such a struct is kept if its inner list is also empty in
    `struct`.
    """
    first, *others = levels
    elements = getattr(struct, first.field)
    found = []
    for element in elements or ():
        if not others:
            if next(wanted):
                found.append(element)
            continue
        part = _part(element, others, wanted, keep_empty)
        below = others[0].field
        if getattr(part, below) or (keep_empty and not getattr(element, below)):
            found.append(part)
    part = copy(struct)
    setattr(part, first.field, found if elements is None else type(elements)(found))
    return part


def merged(request: Message, row: SplitRule | None, responses: Sequence[R]) -> R:
    """Merges the responses to the parts of a split request into the first response, and returns it.

    The elements of lists are in the order of the request; elements that were not requested come
    last. A field in `SCALARS` is merged by the function that `SCALARS` has for it. All other fields
    are lists, which are joined; duplicates are removed from a joined list of strings.
    """
    first = responses[0]
    if len(responses) == 1:
        return first
    own = None if row is None else row.response_levels[0].field
    for name in first._names():
        values = [getattr(response, name) for response in responses]
        if name == own:
            continue
        if name in SCALARS:
            setattr(first, name, SCALARS[name][1](values))
        else:
            setattr(first, name, _joined(values))
    if row is not None:
        _merge(request, row, responses)
    return first


def _joined(lists: Sequence[Any]) -> Any:
    every = [element for each in lists for element in each or ()]
    if all(isinstance(element, str) for element in every):
        every = list(dict.fromkeys(every))
    there = next((each for each in lists if each is not None), None)
    return None if there is None else type(there)(every)


def _merge(request: Message, row: SplitRule, responses: Sequence[Any]) -> None:
    """Adds the elements of the other responses to the first response, by the paths of `row`."""
    levels, answered = row.request_levels, row.response_levels
    outermost: list[Any] = [request]
    for level in levels[: len(levels) - len(answered)]:  # levels that the response lacks
        outermost = [each for outer in outermost for each in getattr(outer, level.field) or ()]
    _merge_level(outermost, levels[len(levels) - len(answered) :], responses, answered)


def _merge_level(
    requested: Iterable[Any],
    requested_levels: Sequence[KeyedListField],
    answers: Sequence[Any],
    answer_levels: Sequence[KeyedListField],
) -> None:
    """Merges the lists in `answers`, one list per struct, into the list of the first struct.

    The merged list is in the order of the request.
    """
    (own, *own_below), (level, *below) = requested_levels, answer_levels
    order: dict[_Identity, int] = {}
    groups: dict[int, list[Any]] = {}  # requested elements by position
    for outer in requested:
        for element in getattr(outer, own.field) or ():
            at = _position(order, own.identities(element))
            groups.setdefault(at, []).append(element)
    found: dict[int, list[Any]] = {}
    for answer in answers:
        for element in getattr(answer, level.field) or ():
            at = _position(order, level.identities(element))
            found.setdefault(at, []).append(element)
    every: list[Any] = []
    for at in sorted(found):
        if below:
            _merge_level(groups.get(at, ()), own_below, found[at], below)
            every.append(found[at][0])
        else:
            every += found[at]
    present = getattr(answers[0], level.field)
    setattr(answers[0], level.field, every if present is None else type(present)(every))


def _position(order: dict[_Identity, int], identities: Sequence[_Identity]) -> int:
    """Returns the position of the element with one of `identities`, or the next free position.

    Adds to `order` the `identities` that it lacks, with this position.
    """
    at = next((order[each] for each in identities if each in order), len(order))
    for each in identities:
        order.setdefault(each, at)
    return at
