"""Tests faults by name: what the client receives, and what the broker does."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, cast

import pytest

from kproto import ConfigurationError
from kproto.broker import (
    Broker,
    CutFrame,
    Delay,
    ErrorCode,
    LoseResponses,
    SilentConnection,
    Slow,
    Throttled,
)
from kproto.broker.faults import Refuse
from kproto.broker.faults.error_responses import _ERROR_CODE_PATHS, split_refused
from kproto.messages import API_KEYS
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.base import Request
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.metadata_response import MetadataResponse
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from kproto.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.protocol.error_codes import code_of, error_code
from kproto.protocol.message_classes import response_of
from kproto.testing.clock import ManualClock
from tests.support.batches import batch_bytes
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import ClosedByBrokerError, RawConnection

ASK = MetadataRequest(topics=[])
NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"


def produce(*indexes: int, topic: str = "t", acks: int = -1) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=batch_bytes()) for index in indexes]
    return ProduceRequest(acks=acks, topic_data=[TopicProduceData(name=topic, partition_data=data)])


def fetch(*indexes: int, session: tuple[int, int] = (0, -1)) -> FetchRequest:
    wanted = [FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in indexes]
    return FetchRequest(
        max_wait_ms=0,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(topic="t", partitions=wanted)] if wanted else [],
    )


def ends(broker: ThreadedBroker, topic: str = "t") -> list[int]:
    return broker.call(
        lambda it: [partition.log.end_offset for partition in it.topics[topic].partitions]
    )


@pytest.fixture
def topics(broker: ThreadedBroker) -> ThreadedBroker:
    """Returns a broker with topic t of two partitions, and topic u of one partition."""
    broker.call(lambda it: (it.create_topic("t", partitions=2), it.create_topic("u")))
    return broker


def test_slow_and_throttled() -> None:
    clock = ManualClock()
    with threaded_broker(clock=clock) as broker, RawConnection(broker.bootstrap) as connection:
        broker.call(lambda it: it.control(Slow(200), times=1))
        broker.call(lambda it: it.control(Throttled(500), times=1))
        connection.send(ASK, 9)
        broker.until(lambda _: clock.next_timer_ms == 200)
        broker.advance(clock, 200)
        assert connection.receive().throttle_time_ms == 500  # type: ignore[attr-defined]
        connection.send(ASK, 9)
        broker.until(lambda _: round(clock.next_timer_ms or 0) == 500)
        broker.advance(clock, 500)
        assert connection.receive().throttle_time_ms == 0  # type: ignore[attr-defined]


def _answer_once(broker: Broker, answer: MetadataResponse) -> None:
    broker.control(lambda _: answer, times=1)


def test_response_of_a_control_function_gets_the_throttle_time() -> None:
    clock = ManualClock()
    own = MetadataResponse(cluster_id="own")
    longer = MetadataResponse(cluster_id="longer", throttle_time_ms=700)
    with threaded_broker(clock=clock) as broker, RawConnection(broker.bootstrap) as connection:
        for answer, throttle_ms in ((own, 500), (longer, 700)):
            broker.call(lambda it: it.control(Throttled(500), times=1))
            broker.call(partial(_answer_once, answer=answer))
            received = connection.exchange(ASK, 9)
            found = received.cluster_id, received.throttle_time_ms
            assert found == (answer.cluster_id, throttle_ms)
            broker.until(lambda _: round(clock.next_timer_ms or 0) == 500)
            broker.advance(clock, 500)
    assert own.throttle_time_ms == 0


def test_throttled_fetch_has_no_records_and_no_session(
    topics: ThreadedBroker, connection: RawConnection
) -> None:
    connection.exchange(produce(0), 9)
    topics.call(lambda it: it.control(Throttled(1), request=FetchRequest, times=1))
    answer = connection.exchange(fetch(0, session=(0, 0)), 12)
    assert (answer.throttle_time_ms, answer.session_id, answer.responses) == (1, 0, [])
    answer = connection.exchange(fetch(0, session=(0, 0)), 12)
    assert answer.session_id > 0
    topics.call(lambda it: it.control(Throttled(1), request=FetchRequest, times=1))
    news = fetch(1, session=(answer.session_id, 1))
    throttled = connection.exchange(news, 12)
    assert (throttled.session_id, throttled.responses) == (answer.session_id, [])
    later = connection.exchange(fetch(session=(answer.session_id, 2)), 12)
    told = {it.partition_index for topic in later.responses for it in topic.partitions}
    assert told == {0, 1}, "what was not sent is told now"


@pytest.mark.parametrize(("after_bytes", "expected"), [(None, None), (0, 0), (7, 7), (10**6, -1)])
def test_a_frame_is_cut(
    after_bytes: int | None, expected: int | None, topics: ThreadedBroker
) -> None:
    with RawConnection(topics.bootstrap) as connection:
        connection.send(produce(0), 9)
        whole = 4 + len(connection.receive_frame())
    topics.call(lambda it: it.control(CutFrame(after_bytes), times=1))
    with RawConnection(topics.bootstrap) as connection:
        connection.send(produce(0), 9)
        came = connection.receive_rest()
    if expected is None:
        assert len(came) == whole // 2
    else:
        assert len(came) == (whole - 1 if expected < 0 else expected)
    assert ends(topics) == [2, 0], "the broker has done its work"


@pytest.mark.parametrize(("fault", "written"), [(LoseResponses(), 1), (SilentConnection(), 0)])
@pytest.mark.slow
def test_silenced_connection_answers_nothing(
    fault: Any, written: int, topics: ThreadedBroker
) -> None:
    topics.call(lambda it: it.control(fault, request=ProduceRequest, times=1))
    with RawConnection(topics.bootstrap) as connection:
        connection.send(produce(0), 9)
        connection.send(produce(1), 9)
        topics.until(lambda it: it.end_offset("t", 0) == written)
        connection._socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.receive()
        assert ends(topics) == [written, 0]
    topics.until(lambda it: it.connections == 0)
    with RawConnection(topics.bootstrap) as another:
        assert another.exchange(ASK, 1).controller_id == 1


def names(codes: Any) -> list[str]:
    return [error_code(code).name for code in codes]


def test_an_error_for_a_produce(topics: ThreadedBroker, connection: RawConnection) -> None:
    topics.call(lambda it: it.control(ErrorCode(NOT_LEADER), request=ProduceRequest))
    for expected in (NOT_LEADER, "NONE"):
        ((one, two),) = (
            it.partition_responses for it in connection.exchange(produce(0, 1), 9).responses
        )
        assert names((one.error_code, two.error_code)) == [expected, expected]
        assert (one.base_offset, one.index, two.index) == (0 if expected == "NONE" else -1, 0, 1)
    assert ends(topics) == [1, 1], "what is refused is not stored"


def test_an_error_for_some_partitions(topics: ThreadedBroker, connection: RawConnection) -> None:
    fault = ErrorCode(6, times=2, topics={"t": [1]})
    control = topics.call(lambda it: it.control(fault))
    both = produce(0, 1)
    both.topic_data.extend(produce(0, topic="u").topic_data)
    answer = connection.exchange(both, 9)
    told = {
        (topic.name, it.index): error_code(it.error_code).name
        for topic in answer.responses
        for it in topic.partition_responses
    }
    assert told == {("t", 0): "NONE", ("t", 1): NOT_LEADER, ("u", 0): "NONE"}
    assert len(answer.responses) == 2, "each topic once"
    assert (ends(topics), ends(topics, "u")) == ([1, 0], [1])
    connection.exchange(produce(0), 9)
    assert control.times == 1, "what is not meant does not count"
    (read,) = connection.exchange(fetch(0, 1), 12).responses
    assert names(it.error_code for it in read.partitions) == ["NONE", NOT_LEADER]
    assert [bool(it.records) for it in read.partitions] == [True, False]
    (read,) = connection.exchange(fetch(0, 1), 12).responses
    assert names(it.error_code for it in read.partitions) == ["NONE", "NONE"]


def test_topic_id_is_matched_by_topic_name(
    topics: ThreadedBroker, connection: RawConnection
) -> None:
    control = topics.call(lambda it: it.control(ErrorCode(NOT_LEADER, times=2, topics={"t": [1]})))
    of_t, of_u = topics.topic_id("t"), topics.topic_id("u")
    by_id = produce(0, 1, topic="")
    by_id.topic_data.extend(produce(0, topic="").topic_data)
    by_id.topic_data[0].topic_id, by_id.topic_data[1].topic_id = of_t, of_u
    answer = connection.exchange(by_id, 13)
    told = {
        (topic.topic_id, it.index): error_code(it.error_code).name
        for topic in answer.responses
        for it in topic.partition_responses
    }
    assert told == {(of_t, 0): "NONE", (of_t, 1): NOT_LEADER, (of_u, 0): "NONE"}
    assert (ends(topics), ends(topics, "u")) == ([1, 0], [1])
    wanted = [FetchPartition(partition=0, partition_max_bytes=9)]
    of_other = FetchRequest(topics=[FetchTopic(topic_id=of_u, partitions=wanted)])
    assert connection.exchange(of_other, 16).responses[0].partitions[0].error_code == 0
    assert control.times == 1, "what is not meant does not count"


def test_a_request_about_something_else_does_not_count(
    topics: ThreadedBroker, connection: RawConnection
) -> None:
    of_t = connection.exchange(fetch(0, session=(0, 0)), 12).session_id
    control = topics.call(lambda it: it.control(ErrorCode(NOT_LEADER, topics={"t": [1]})))
    other = MetadataRequest(topics=[MetadataRequestTopic(name="u")])
    connection.exchange(other, 9)
    connection.exchange(MetadataRequest(topics=[]), 9)
    connection.exchange(fetch(0), 12)
    connection.exchange(fetch(session=(of_t, 1)), 12)
    assert control.times == 1
    of_both = connection.exchange(fetch(0, 1, session=(0, 0)), 12)
    assert control.times == 0
    control = topics.call(lambda it: it.control(ErrorCode(NOT_LEADER, topics={"t": [1]})))
    (read,) = connection.exchange(fetch(session=(of_both.session_id, 1)), 12).responses
    assert names(it.error_code for it in read.partitions) == [NOT_LEADER]
    assert control.times == 0


def test_an_error_for_a_produce_that_is_not_answered_closes(
    topics: ThreadedBroker, connection: RawConnection
) -> None:
    topics.call(lambda it: it.control(ErrorCode(NOT_LEADER)))
    connection.send(produce(0, acks=0), 9)
    with pytest.raises(ClosedByBrokerError):
        connection.exchange(ASK, 1)
    assert ends(topics) == [0, 0]


def test_a_fetch_session_that_is_lost(topics: ThreadedBroker, connection: RawConnection) -> None:
    session_id = connection.exchange(fetch(0, 1, session=(0, 0)), 12).session_id
    topics.call(lambda it: it.control(ErrorCode("FETCH_SESSION_ID_NOT_FOUND")))
    answer = connection.exchange(fetch(session=(session_id, 1)), 12)
    assert names([answer.error_code]) == ["FETCH_SESSION_ID_NOT_FOUND"]
    assert (answer.session_id, answer.responses) == (0, [])


def test_a_fetch_session_of_which_a_partition_fails(
    topics: ThreadedBroker, connection: RawConnection
) -> None:
    session_id = connection.exchange(fetch(0, 1, session=(0, 0)), 12).session_id
    topics.call(lambda it: it.control(ErrorCode(NOT_LEADER, topics={"t": [1]})))
    heard = []
    for epoch in (1, 2, 3):
        answer = connection.exchange(fetch(session=(session_id, epoch)), 12)
        heard.append(
            [
                (it.partition_index, error_code(it.error_code).name)
                for topic in answer.responses
                for it in topic.partitions
            ]
        )
    assert heard == [[(1, NOT_LEADER)], [(1, "NONE")], []]


def test_injected_leader_error_names_leader(broker: ThreadedBroker) -> None:
    broker.call(lambda it: (it.create_topic("t"), it.control(ErrorCode(NOT_LEADER))))
    wanted = FetchPartition(partition_max_bytes=9)
    topic = FetchTopic(topic_id=broker.topic_id("t"), partitions=[wanted])
    with RawConnection(broker.bootstrap) as connection:
        answer = connection.exchange(FetchRequest(topics=[topic]), 16)
    assert answer.responses[0].partitions[0].current_leader.leader_id == 1
    assert [it.node_id for it in answer.node_endpoints] == [1]


def test_errors_of_metadata(topics: ThreadedBroker, connection: RawConnection) -> None:
    both = MetadataRequest(topics=[MetadataRequestTopic(name=it) for it in ("t", "u")])

    def ask() -> dict[str, tuple[str, list[tuple[str, int]]]]:
        answer = connection.exchange(both, 9)
        assert len(answer.brokers) == 1
        return {
            str(it.name): (
                error_code(it.error_code).name,
                [(error_code(part.error_code).name, part.leader_id) for part in it.partitions],
            )
            for it in answer.topics
        }

    missing = "LEADER_NOT_AVAILABLE"
    topics.call(lambda it: it.control(ErrorCode(missing, topics=["u"])))
    assert ask() == {"t": ("NONE", [("NONE", 1)] * 2), "u": (missing, [])}
    topics.call(lambda it: it.control(ErrorCode(missing, topics={"t": [1]})))
    fine = ("NONE", [("NONE", 1)])
    assert ask() == {"t": ("NONE", [("NONE", 1), (missing, -1)]), "u": fine}
    assert ask()["u"] == fine


CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="n", num_partitions=1)])
OFFSETS = ListOffsetsRequest(
    topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=-1)])]
)
GROUPS = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g")])
OLD_GROUP = OffsetFetchRequest(
    group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[4])]
)


@pytest.mark.parametrize(
    ("request_", "version", "path"),
    [
        (ApiVersionsRequest(), 0, "error_code"),
        (InitProducerIdRequest(), 4, "error_code"),
        (CREATE, 7, "topics.error_code"),
        (OFFSETS, 5, "topics.partitions.error_code"),
        (DeleteTopicsRequest(topic_names=["t"]), 5, "responses.error_code"),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6, "responses.error_code"),
        (FindCoordinatorRequest(key="g"), 3, "error_code"),
        (FindCoordinatorRequest(coordinator_keys=["g"]), 4, "coordinators.error_code"),
        (OLD_GROUP, 1, "topics.partitions.error_code"),
        (OLD_GROUP, 2, "error_code"),
        (GROUPS, 8, "groups.error_code"),
    ],
)
def test_error_code_is_set_where_the_api_has_it(
    request_: Request[Any], version: int, path: str
) -> None:
    rest, answer = split_refused(request_, version, Refuse(15))
    assert rest is None
    found: Any = answer
    *lists, last = path.split(".")
    for name in lists:
        (found,) = getattr(found, name)
    assert getattr(found, last) == 15
    again = type(answer).decode(answer.encode(version), version)
    assert again.encode(version) == answer.encode(version)


def test_every_row_names_existing_fields() -> None:
    import kproto.messages

    for key, paths in _ERROR_CODE_PATHS.items():
        request = getattr(kproto.messages, API_KEYS[key][0])
        response: Any = response_of(request)
        for path in paths:
            asked, answered = request._names(), response._names()
            assert path.steps[0].request_field in asked
            for step in path.steps:
                assert step.response_field in answered
                struct = getattr(sys.modules[response.__module__], step.struct)
                answered = struct._names()
                assert not step.field or step.field in answered
            assert {"error_code", "partition_error_code"} & set(answered)


def test_api_without_error_code_raises(broker: ThreadedBroker) -> None:
    from kproto.messages.alter_client_quotas_request import AlterClientQuotasRequest

    control = broker.call(lambda it: it.control(ErrorCode(NOT_LEADER)))
    with RawConnection(broker.bootstrap) as connection, pytest.raises(ClosedByBrokerError):
        connection.exchange(AlterClientQuotasRequest(), 0)
    assert "cannot set an error code in the response to AlterClientQuotasRequest v0" in str(
        control.fault
    )


@pytest.mark.parametrize("meant", [["t"], {"t": [1]}, None])
@pytest.mark.parametrize("version", [12, 13])
def test_metadata_by_id_is_matched_by_topic_name(
    version: int, meant: Any, topics: ThreadedBroker, connection: RawConnection
) -> None:
    control = topics.call(lambda it: it.control(ErrorCode(6, topics=meant), request=ProduceRequest))
    ids = topics.call(lambda it: {name: topic.topic_id for name, topic in it.topics.items()})

    def written(topic: str, *indexes: int) -> list[str]:
        asked = produce(*indexes, topic=topic)
        if version > 12:
            asked.topic_data[0].name, asked.topic_data[0].topic_id = "", ids[topic]
        ((answered,),) = (connection.exchange(asked, version).responses,)
        assert answered.topic_id == asked.topic_data[0].topic_id
        found = {it.index: it.error_code for it in answered.partition_responses}
        return names(found[index] for index in indexes)

    if meant is not None:
        assert written("u", 0) == ["NONE"]
        assert control.times == 1, "what is not meant does not count"
    assert written("t", 0, 1) == ["NONE" if meant == {"t": [1]} else NOT_LEADER, NOT_LEADER]
    assert control.times == 0
    assert written("t", 0, 1) == ["NONE", "NONE"]
    assert ends(topics) == [1 + (meant == {"t": [1]}), 1]


def test_delete_by_id_is_matched_by_topic_name(
    topics: ThreadedBroker, connection: RawConnection
) -> None:
    topics.call(lambda it: it.control(ErrorCode("POLICY_VIOLATION", topics=["t"])))
    ids = topics.call(lambda it: [it.topics[name].topic_id for name in "tu"])
    asked = DeleteTopicsRequest(
        timeout_ms=1000, topics=[DeleteTopicState(name=None, topic_id=its) for its in ids]
    )
    answer = connection.exchange(asked, 6)
    told = {it.topic_id: error_code(it.error_code).name for it in answer.responses}
    assert told == {ids[0]: "POLICY_VIOLATION", ids[1]: "NONE"}
    assert topics.call(lambda it: list(it.topics)) == ["t"]


def test_refusal_of_absent_topic_passes(topics: ThreadedBroker, connection: RawConnection) -> None:
    control = topics.call(lambda it: it.control(lambda _: Refuse(6, {"t": (1,)}), times=1))
    assert names(
        [connection.exchange(produce(0), 9).responses[0].partition_responses[0].error_code]
    ) == ["NONE"]
    assert control.times == 1
    assert names(
        [connection.exchange(produce(1), 9).responses[0].partition_responses[0].error_code]
    ) == [NOT_LEADER]
    assert control.times == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ErrorCode("NOT_LEADER"), "no error code is called 'NOT_LEADER'"),
        (lambda: ErrorCode(99_999), "the code of an ErrorCode is 99999"),
        (lambda: ErrorCode(0), "which is no error"),
        (lambda: ErrorCode("NONE"), "which is no error"),
        (lambda: ErrorCode(6, topics="t"), "topics is 't'; give a list"),
        (lambda: ErrorCode(6, topics=cast(Any, 7)), "topics is 7; give a list"),
        (lambda: ErrorCode(6, topics=[]), r"topics is \[\]; give names of topics, or leave it out"),
        (lambda: ErrorCode(6, topics=cast(Any, [b"t"])), "give names of topics"),
        (lambda: ErrorCode(6, topics=cast(Any, {"t": 0})), r"topics\['t'\] is 0; give the indexes"),
        (lambda: ErrorCode(6, topics={"t": []}), r"topics\['t'\] is \[\]; give the indexes"),
        (lambda: ErrorCode(6, topics=cast(Any, {"t": "0"})), "a partition of topics"),
        (lambda: ErrorCode(6, topics={"t": [-1]}), "a partition of topics"),
        (lambda: Slow(-1), "ms of a Delay"),
        (lambda: Throttled(0), "ms of a Throttle"),
        (lambda: CutFrame(-1), "after_bytes of a Cut"),
    ],
)
def test_invalid_fault_raises(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_times_is_set_in_fault_or_control() -> None:
    broker = Broker()
    assert broker.control(ErrorCode(6)).times == 1
    assert broker.control(ErrorCode(6, times=None)).times is None
    assert broker.control(ErrorCode(6), times=3).times == 3
    assert broker.control(Slow(1)).times is None
    assert code_of(NOT_LEADER) == 6
    assert Delay(5) == Delay(5)
