"""Tests the driver of the Java program: order, many requests at once, and error messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kproto.messages import HeartbeatRequest, ProduceRequest
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from tests.support.availability import skip_untested
from tools.reference import (
    Answer,
    JavaProgramOperation,
    KafkaJavaProgram,
    Outcome,
    ReferenceFailedError,
    ReferenceUnavailableError,
    classes,
    question,
)
from tools.setup import java

pytestmark = pytest.mark.reference


def heartbeat(generation: int) -> bytes:
    return HeartbeatRequest(group_id="g", generation_id=generation, member_id="m").encode(4)


def rewriting(data: bytes) -> bytes:
    return question(JavaProgramOperation.REWRITE, "HeartbeatRequest", 4, data)


def test_answers_come_in_the_order_of_the_questions(judges: dict[str, KafkaJavaProgram]) -> None:
    sent = [heartbeat(generation) for generation in range(1000)]
    for judge in judges.values():
        answers = list(judge.ask(map(rewriting, sent)))
        assert answers == [Answer(Outcome.DONE, data, len(data)) for data in sent]


def test_questions_and_answers_of_many_megabytes_do_not_block_each_other(
    judges: dict[str, KafkaJavaProgram],
) -> None:
    part = PartitionProduceData(index=0, records=b"r" * 1_000_000)
    data = ProduceRequest(
        topic_data=[TopicProduceData(name="t", partition_data=[part])],
    ).encode(9)
    asked = question(JavaProgramOperation.REWRITE, "ProduceRequest", 9, data)
    answers = judges["4.4.0"].ask(asked for _ in range(60))
    assert sum(answer.data == data for answer in answers) == 60


def test_a_refusal_tells_the_reason_and_is_no_failure(judges: dict[str, KafkaJavaProgram]) -> None:
    whole = heartbeat(7)
    cut, sound, longer = judges["4.4.0"].ask(map(rewriting, [whole[:5], whole, whole + b"abc"]))
    assert cut.outcome is Outcome.REFUSED
    assert b"Exception" in cut.data
    assert sound == longer == Answer(Outcome.DONE, whole, len(whole))


def test_to_stop_early_leaves_no_answer_behind(judges: dict[str, KafkaJavaProgram]) -> None:
    judge = judges["4.4.0"]

    def without_end() -> Iterator[bytes]:
        while True:
            yield rewriting(heartbeat(1))

    answers = judge.ask(without_end())
    assert next(answers).accepted
    answers.close()
    assert [answer.data for answer in judge.ask([rewriting(heartbeat(2))])] == [heartbeat(2)]


def test_an_unknown_message_is_a_failure_and_the_next_question_is_answered(
    judges: dict[str, KafkaJavaProgram],
) -> None:
    judge = judges["4.4.0"]
    with pytest.raises(ReferenceFailedError, match="class path has the message NoSuchRequest"):
        list(
            judge.ask(
                [question(JavaProgramOperation.REWRITE, "NoSuchRequest", 0, b""), rewriting(b"")]
            )
        )
    assert len(list(judge.ask([rewriting(heartbeat(2))]))) == 1


def test_a_program_that_ended_is_a_failure(releases: tuple[str, ...]) -> None:
    with KafkaJavaProgram(releases[0]) as judge:
        judge._process.kill()
        judge._process.wait()
        with pytest.raises(ReferenceFailedError, match="ended early"):
            list(judge.ask([rewriting(heartbeat(1))]))
    judge.close()


@pytest.mark.exhaustive
def test_without_a_jdk_the_program_is_compiled_by_the_compiler_of_eclipse(
    releases: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test uses a Java runtime folder that has `bin/java`, but no `javac`."""
    program = java.java_home() / "bin" / "java"
    runtime = tmp_path / "runtime"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "bin" / "java").symlink_to(program)
    monkeypatch.setattr(java, "java_home", lambda: runtime)
    monkeypatch.setattr(classes, "CACHE", tmp_path / "cache")
    try:
        path = classes.class_path("4.4.0")
    except ReferenceUnavailableError as error:
        if "fetch" not in str(error):
            raise
        skip_untested("Kafka's classes by a runtime without a compiler", error)
    compiled = Path(path.partition(":")[0])
    assert {"Reference.class", "Messages.class"} <= {file.name for file in compiled.iterdir()}
    monkeypatch.undo()
    monkeypatch.setattr("tools.reference.process.class_path", lambda release: path)
    with KafkaJavaProgram("4.4.0") as judge:
        assert [a.data for a in judge.ask([rewriting(heartbeat(3))])] == [heartbeat(3)]


def test_without_maven_and_compiler_it_says_what_to_install(
    releases: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "java_home", lambda: tmp_path)
    monkeypatch.setattr(classes, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ReferenceUnavailableError, match=r"\(mvn\) is not on the PATH.*install a JDK"
    ):
        classes.class_path("4.4.0")
