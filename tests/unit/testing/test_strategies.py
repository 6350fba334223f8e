"""Tests the strategies: they draw valid messages, include corner cases, and shrink to defaults."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any, assert_type

import hypothesis
import hypothesis.strategies as st
import pytest
from hypothesis import Phase, given, settings
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy

from kproto import messages as generated
from kproto.messages import (
    ApiVersionsResponse,
    DescribeTopicPartitionsResponse,
    FetchRequest,
    FetchResponse,
    ListClientMetricsResourcesRequest,
    ListConfigResourcesRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
    VoteRequest,
)
from kproto.messages.base import Message, Struct
from kproto.messages.metadata_request import MetadataRequestTopic
from kproto.messages.metadata_response import MetadataResponseTopic
from kproto.records import read_batches
from kproto.testing.strategies import (
    InvalidMessage,
    across_versions,
    any_message,
    encodable,
    invalid,
    message_classes,
    messages,
    record_batches,
    structs,
    versions_of,
)
from kproto.wire.errors import ConfigurationError, EncodeError
from kproto.wire.uuid import ZERO_UUID
from tests.support.examples import examples
from tests.unit.messages.catalogue import SOME_EVERYDAY

#: An argument that only a caller without a type checker can pass.
NO_STRATEGY: Any = None


#: Wrong values in messages with fields of most types; every message would take ten times longer.
WRONG_IN_SOME: SearchStrategy[InvalidMessage[Any]] = st.sampled_from(
    [FetchRequest, MetadataRequest, OffsetCommitRequest]
).flatmap(invalid)

#: Faults that take seconds to find in the messages with fields of most types.
RARE = ("an element: ", "too long", "a lone surrogate")


def class_of(name: str) -> type[Message]:
    found: type[Message] = getattr(generated, name)
    return found


def find(
    values: SearchStrategy[Any],
    wanted: Callable[[Any], object],
    *,
    simplest: bool = False,
    examples: int = 3000,
) -> Any:
    """Returns a drawn value that satisfies `wanted`: the first, or if `simplest`, the simplest."""
    phases = [Phase.generate, Phase.shrink] if simplest else [Phase.generate]
    bounded = settings(max_examples=examples, derandomize=True, database=None, phases=phases)
    return hypothesis.find(values, lambda value: bool(wanted(value)), settings=bounded)


@pytest.mark.parametrize("name", SOME_EVERYDAY)
def test_every_drawn_message_round_trips(name: str) -> None:
    cls = class_of(name)

    @given(encodable(cls))
    @settings(max_examples=3, database=None)
    def check(drawn: tuple[Message, int]) -> None:
        message, version = drawn
        data = message.encode(version)
        again = cls.decode(data, version)
        assert again == message
        assert again.encode(version) == data
        assert message.size(version) == len(data)

    check()


@pytest.mark.parametrize("name", SOME_EVERYDAY)
def test_every_message_is_refused_when_one_field_is_wrong(name: str) -> None:
    cls = class_of(name)

    @given(invalid(cls))
    @settings(max_examples=2, database=None)
    def check(drawn: InvalidMessage[Message]) -> None:
        refuse(drawn)

    check()


def refuse(drawn: InvalidMessage[Any]) -> None:
    with pytest.raises(EncodeError) as caught:
        drawn.message.encode(drawn.version)
    assert caught.value.field == drawn.path
    assert caught.value.version == drawn.version
    assert drawn.reason


@given(message_classes().flatmap(invalid))
@settings(max_examples=examples(150))
@pytest.mark.slow
def test_an_invalid_message_names_the_field_at_fault(drawn: InvalidMessage[Message]) -> None:
    refuse(drawn)


@given(message_classes(), st.data())
@settings(max_examples=examples(100))
@pytest.mark.slow
def test_a_message_for_several_versions_round_trips_in_each(
    cls: type[Message], data: st.DataObject
) -> None:
    versions = data.draw(st.lists(versions_of(cls), min_size=1, max_size=3))
    message = data.draw(across_versions(cls, versions))
    for version in versions:
        assert cls.decode(message.encode(version), version) == message


@given(any_message())
@settings(max_examples=30)
@pytest.mark.slow
def test_any_message_has_a_valid_version(drawn: tuple[Message, int]) -> None:
    message, version = drawn
    assert version in message.VALID_VERSIONS
    assert type(message).__name__ in generated.MODULES


@pytest.mark.parametrize(
    ("message", "version"),
    [(MetadataRequest, 12), (FetchRequest, 17), (ApiVersionsResponse, 4), (VoteRequest, 2)],
)
def test_the_simplest_instance_has_only_defaults(message: type[Message], version: int) -> None:
    assert find(messages(message, version), lambda drawn: True, simplest=True) == message()


def test_the_simplest_pair_has_the_lowest_version() -> None:
    lowest = OffsetCommitRequest.VALID_VERSIONS[0]
    assert find(encodable(OffsetCommitRequest), lambda drawn: True, simplest=True) == (
        OffsetCommitRequest(),
        lowest,
    )


#: Corner cases that need many draws.
LONG = [pytest.mark.slow, pytest.mark.thorough]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        pytest.param(messages(MetadataRequest, 12), lambda it: it.topics is None, id="null array"),
        pytest.param(messages(MetadataRequest, 12), lambda it: it.topics == [], id="empty array"),
        pytest.param(
            messages(MetadataRequest, 12),
            lambda it: it.topics and len(it.topics) > 1,
            id="two elements",
        ),
        pytest.param(
            messages(MetadataRequest, 12),
            lambda it: any(topic.name is None for topic in it.topics or ()),
            id="null text in an element",
        ),
        pytest.param(
            messages(MetadataRequest, 12),
            lambda it: it.unknown_tagged_fields,
            id="unknown tags of the message",
        ),
        pytest.param(
            messages(MetadataRequest, 12),
            lambda it: any(topic.unknown_tagged_fields for topic in it.topics or ()),
            id="unknown tags of an element",
        ),
        pytest.param(
            messages(MetadataRequest, 12),
            lambda it: any(
                tag.tag == 2**31 - 2 and len(tag.data) > 127 for tag in it.unknown_tagged_fields
            ),
            id="long data at the highest tag",
        ),
        pytest.param(
            messages(MetadataRequest, 12),
            lambda it: any(len(topic.name or "") == 32767 for topic in it.topics or ()),
            id="the longest text",
            marks=LONG,
        ),
        pytest.param(
            messages(MetadataRequest, 12),
            lambda it: any(topic.topic_id != ZERO_UUID for topic in it.topics or ()),
            id="a uuid",
        ),
        pytest.param(
            messages(FetchRequest, 12), lambda it: it.cluster_id == "", id="an empty nullable text"
        ),
        pytest.param(
            messages(FetchRequest, 12), lambda it: it.cluster_id is not None, id="a known tag"
        ),
        pytest.param(
            messages(FetchRequest, 12), lambda it: it.max_bytes == -(2**31), id="the least int32"
        ),
        pytest.param(
            messages(FetchRequest, 12), lambda it: it.min_bytes == 2**31 - 1, id="the largest int32"
        ),
        pytest.param(
            messages(DescribeTopicPartitionsResponse, 0),
            lambda it: it.next_cursor is not None,
            id="a nullable struct",
        ),
        pytest.param(
            messages(ListConfigResourcesRequest, 1),
            lambda it: len(it.resource_types) > 127,
            id="a count that needs a varint of two bytes",
        ),
        pytest.param(
            encodable(FetchRequest),
            lambda it: it[1] == 18 and it[0].topics,
            id="the last version",
            marks=LONG,
        ),
        pytest.param(
            messages(ProduceRequest, 9),
            lambda it: any(
                list(read_batches(partition.records))
                for topic in it.topic_data
                for partition in topic.partition_data
                if partition.records and len(partition.records) > 61 and partition.records[16] == 2
            ),
            id="a record batch",
            marks=LONG,
        ),
        *[
            pytest.param(
                WRONG_IN_SOME,
                lambda it, why=why: why in it.reason,
                id=why,
                marks=LONG if why in RARE else pytest.mark.slow,
            )
            for why in (
                "an object of another kind",
                "null",
                "of another type",
                "out of range",
                "too long",
                "a lone surrogate",
                "an element: ",
                "not the default",
                "not flexible",
                "not a tag number",
            )
        ],
        pytest.param(
            invalid(MetadataRequest, 12),
            lambda it: "not of 16 bytes" in it.reason,
            id="not of 16 bytes",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            invalid(FetchRequest, 17),
            lambda it: "known field" in it.reason,
            id="a known tag twice",
            marks=LONG,
        ),
        pytest.param(
            invalid(MetadataRequest, 12),
            lambda it: it.path.startswith("topics[0]."),
            id="a wrong value in an element",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
def test_every_corner_case_is_drawn(
    values: SearchStrategy[Any], wanted: Callable[[Any], object]
) -> None:
    try:
        found = find(values, wanted)
    except NoSuchExample:
        pytest.fail("nothing of the kind was drawn")
    assert wanted(found)


@pytest.mark.slow
def test_find_fails_for_values_that_are_never_drawn() -> None:
    with pytest.raises(NoSuchExample):
        find(messages(MetadataRequest, 0), lambda it: it.topics is None, examples=200)


@given(messages(MetadataRequest, 12, topics=st.none()))
@settings(max_examples=10)
def test_a_field_can_be_replaced(message: MetadataRequest) -> None:
    assert message.topics is None


@given(
    messages(
        MetadataRequest,
        12,
        topics=st.lists(structs(MetadataRequestTopic, 12, name=st.just("greetings")), min_size=1),
    )
)
@settings(max_examples=10)
def test_a_field_of_a_struct_can_be_replaced(message: MetadataRequest) -> None:
    assert {topic.name for topic in message.topics or ()} == {"greetings"}


@given(encodable(MetadataRequest, allow_auto_topic_creation=st.just(False)))
@settings(max_examples=30)
def test_a_replaced_field_keeps_its_default_in_versions_without_it(
    drawn: tuple[MetadataRequest, int],
) -> None:
    message, version = drawn
    assert message.allow_auto_topic_creation is (version < 4)
    message.encode(version)


@given(messages(ListClientMetricsResourcesRequest))
@settings(max_examples=10)
def test_a_former_class_name_is_accepted(message: Message) -> None:
    assert type(message).__name__ == "ListConfigResourcesRequest"


@given(st.data())
@settings(max_examples=10)
def test_a_user_subclass_is_drawn(data: st.DataObject) -> None:
    class Mine(MetadataRequest):
        """A user's subclass of a message."""

    message = data.draw(messages(Mine, 9))
    assert isinstance(message, Mine)
    assert Mine.decode(message.encode(9), 9) == message


@given(across_versions(FetchResponse, [4, 17]))
@settings(max_examples=30)
def test_a_field_missing_in_a_version_stays_at_its_default(message: FetchResponse) -> None:
    assert message.node_endpoints == []
    assert message.unknown_tagged_fields == []
    # version 13 lacks the field
    assert all(response.topic == "" for response in message.responses)


@given(record_batches())
@settings(max_examples=20)
def test_record_batches_are_complete(data: bytes) -> None:
    (batch,) = read_batches(data)
    assert len(batch.records()) in {1, 2, 3}
    assert batch.raw == data


@pytest.mark.parametrize(
    ("draw", "reason"),
    [
        (lambda: messages(MetadataRequest, 14), "has versions 0 to 13, not 14"),
        (lambda: messages(MetadataRequest, -1), "has versions 0 to 13, not -1"),
        (lambda: across_versions(MetadataRequest, []), "name at least one version"),
        (lambda: invalid(MetadataRequest, 99), "has versions 0 to 13, not 99"),
        (lambda: messages(MetadataRequest, 12, topic=st.none()), "has no field 'topic'"),
        (
            lambda: messages(MetadataRequest, 3, allow_auto_topic_creation=st.booleans()),
            "has no field 'allow_auto_topic_creation' in these versions; it has topics",
        ),
        (
            lambda: messages(MetadataRequest, 12, topics=NO_STRATEGY),
            "needs a strategy, not NoneType",
        ),
        (lambda: encodable(MetadataRequest, topics=NO_STRATEGY), r"put st.just\(\) around it"),
        (lambda: structs(MetadataRequestTopic, 77), "has versions 0 to 13, not 77"),
        (lambda: structs(Struct, 1), "Struct is no struct of a message"),
        (
            lambda: structs(MetadataResponseTopic, 0, topic_id=st.none()),
            "has no field 'topic_id' in these versions",
        ),
    ],
)
def test_an_impossible_strategy_raises_a_clear_error(draw: Callable[[], Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        draw()


def test_without_hypothesis_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import kproto.testing\n"
        "try:\n    import kproto.testing.strategies\n"
        "except ImportError as error:\n    print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.strip() == (
        "kproto.testing.strategies needs hypothesis, which comes with the extra kproto[testing], "
        "from a checkout: pip install '.[testing]'"
    )


def test_a_type_checker_infers_the_drawn_types() -> None:
    assert_type(messages(MetadataRequest, 12), SearchStrategy[MetadataRequest])
    assert_type(encodable(MetadataRequest), SearchStrategy[tuple[MetadataRequest, int]])
    assert_type(across_versions(MetadataRequest, [4]), SearchStrategy[MetadataRequest])
    assert_type(structs(MetadataRequestTopic, 12), SearchStrategy[MetadataRequestTopic])
    assert_type(invalid(MetadataRequest), SearchStrategy[InvalidMessage[MetadataRequest]])


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (int, "the class int"),
        (Message, "the class Message"),
        (MetadataRequestTopic, "the class MetadataRequestTopic"),
        (MetadataRequest(), "an object of type MetadataRequest"),
        ("MetadataRequest", "an object of type str"),
        (None, "an object of type NoneType"),
    ],
)
def test_other_objects_than_message_classes_are_refused(wrong: Any, named: str) -> None:
    functions: list[Callable[[], object]] = [
        lambda: versions_of(wrong),
        lambda: messages(wrong),
        lambda: messages(wrong, 1),
        lambda: encodable(wrong),
        lambda: across_versions(wrong, [1]),
        lambda: invalid(wrong),
        lambda: invalid(wrong, 1),
    ]
    for function in functions:
        with pytest.raises(TypeError) as caught:
            function()
        reason = f"a class of a message is wanted, such as MetadataRequest, not {named}"
        assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("wrong", "named"), [(int, "the class int"), ("a", "an object of type str")]
)
def test_other_objects_than_struct_classes_are_refused(wrong: Any, named: str) -> None:
    with pytest.raises(TypeError, match=f"a class of a struct is wanted, not {named}"):
        structs(wrong, 1)


@pytest.mark.parametrize("function", [encodable, messages, structs])
def test_any_name_may_be_that_of_a_field(function: Callable[..., object]) -> None:
    """The parameters are positional-only, so a field may have a parameter's name (`message`)."""
    *others, fields = inspect.signature(function).parameters.values()
    assert fields.kind is inspect.Parameter.VAR_KEYWORD
    assert {each.kind for each in others} == {inspect.Parameter.POSITIONAL_ONLY}
