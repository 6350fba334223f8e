"""Tests `kproto produce` and `kproto consume` on an embedded broker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kproto import sync as kproto_sync
from kproto.broker import BrokerSettings
from tests.support.cli_process import complaints, started
from tests.support.cli_runs import Run, runner
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.environment import ROOT

ALL = ("--from-beginning", "--until-end")


def test_lines_come_back(kproto: Run, topic: str) -> None:
    assert kproto("produce", topic, stdin=b"one\n\ntwo").code == 0
    found = kproto("consume", topic, *ALL)
    assert (found.code, found.err) == (0, [])
    assert sorted(found.out.split(b"\n")) == [b"", b"", b"one", b"two"]


def test_keys_choose_partitions_as_the_client_does(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "--key-separator", ":", stdin=b"a:1\nb:2\na:3\nplain")
    found = kproto("consume", topic, *ALL, "-f", r"%k=%s@%p\n").lines()
    parts = dict(line.split("@") for line in found)
    assert parts["a=1"] == parts["a=3"]
    assert set(parts) == {"a=1", "b=2", "a=3", "=plain"}


def test_json_lines_of_one_topic_fill_another(
    kproto: Run, served: ThreadedBroker, topic: str
) -> None:
    served.call(lambda broker: broker.create_topic(f"{topic}-copy", 3))
    lines = [
        {"key": "a", "value": "ü", "headers": [["h", "1"], ["h", None]], "timestamp": 5},
        {"key_base64": "/w==", "value_base64": "AAH/", "partition": 2},
        {"key": "gone", "value": None},
        {"value": ""},
    ]
    text = "\n".join(map(json.dumps, lines)).encode()
    assert kproto("produce", topic, "--json", stdin=text).code == 0
    found = kproto("consume", topic, *ALL, "--json")
    assert kproto("produce", f"{topic}-copy", "--json", stdin=found.out).code == 0
    copied = kproto("consume", f"{topic}-copy", *ALL, "--json")
    assert sorted(copied.out.replace(b"-copy", b"").splitlines()) == sorted(found.out.splitlines())
    assert len(found.lines()) == len(lines)


def test_topic_of_each_line_is_used_without_a_topic(kproto: Run, topic: str) -> None:
    line = json.dumps({"topic": topic, "value": "a"}).encode()
    assert kproto("produce", "--json", stdin=line).code == 0
    assert kproto("consume", topic, *ALL).out == b"a\n"


def test_options_apply_to_each_record(kproto: Run, topic: str) -> None:
    options = ["-k", "key", "-H", "a=1", "-H", "b", "-p", "1", "--timestamp", "1700000000123"]
    assert kproto("produce", topic, *options, "-D", ";", stdin=b"x;y").code == 0
    found = kproto("consume", topic, *ALL, "-f", "%k %s %h %p %T\n")
    assert found.lines() == [f"key {value} a=1,b=NULL 1 1700000000123" for value in "xy"]


def test_empty_values_become_tombstones_by_option(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-K", ":", "--empty-as-null", stdin=b"a:\n:b")
    found = kproto("consume", topic, *ALL, "--null", "NULL", "-K", "=")
    assert sorted(found.lines()) == ["NULL=b", "a=NULL"]


def test_file_is_one_record_by_option(kproto: Run, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo\n")
    kproto("produce", topic, "--whole", "--file", str(tmp_path / "a"), stdin=b"\x00\n")
    found = kproto("consume", topic, *ALL, "-f", r"%S\n")
    assert sorted(found.lines()) == ["2", "8"]


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_events_come_back(kproto: Run, topic: str, mode: str) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": {"a": 1}}
    kproto("produce", topic, "--cloudevents", mode, stdin=json.dumps(event).encode())
    found = kproto("consume", topic, *ALL, "--cloudevents")
    assert json.loads(found.out) | {"datacontenttype": 0} == event | {"datacontenttype": 0}


@pytest.mark.parametrize("header", ["ce_id=9", "ce_more=1", "content-type=text/plain"])
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_header_that_changes_an_event_is_refused(
    kproto: Run, topic: str, header: str, mode: str
) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": {"a": 1}}
    text = json.dumps(event).encode()
    found = kproto("produce", topic, "--cloudevents", mode, "-H", header, stdin=text)
    assert found.code == 1
    assert "line 1 is no valid CloudEvent" in found.err[-1]
    assert kproto("produce", topic, "--cloudevents", mode, "-H", "a=1", stdin=text).code == 0
    assert kproto("consume", topic, *ALL, "-f", "%h").out.count(b"a=1") == 1


def test_line_of_an_invalid_event_is_named_among_later_lines(kproto: Run, topic: str) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    lines = [json.dumps(event | {"id": str(number)}) for number in range(9)]
    lines[2] = "{}"
    found = kproto("produce", topic, "--cloudevents", "binary", stdin="\n".join(lines).encode())
    assert found.err[0] == "kproto: the input was read up to line 3, and not further"
    assert len(kproto("consume", topic, *ALL, "--cloudevents").lines()) == 2


def test_record_that_is_no_event_is_reported(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"plain")
    found = kproto("consume", topic, *ALL, "--cloudevents")
    assert (found.code, found.out) == (1, b"")
    assert found.err == [f"kproto: {topic}, partition 0, offset 0 is no CloudEvent"]


def test_lines_before_an_invalid_line_are_sent(kproto: Run, topic: str) -> None:
    text = b'{"value": "a"}\n{"value": "b"}\n{"valeu": "c"}\n{"value": "d"}'
    found = kproto("produce", topic, "--json", stdin=text)
    assert found.code == 1
    assert found.err == [
        "kproto: the input was read up to line 3, and not further",
        "kproto: error: line 3 has the unknown name 'valeu'; known: value",
    ]
    assert sorted(kproto("consume", topic, *ALL).lines()) == ["a", "b"]


def test_undelivered_records_are_stored(kproto: Run, topic: str, tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    line = json.dumps({"value": "x", "partition": 7}).encode()
    options = ["--json", "--undelivered", str(lost)]
    found = kproto("produce", topic, *options, stdin=line + b'\n{"value": "y", "partition": 0}')
    assert found.code == 1
    assert found.err[0] == f"kproto: 1 record was not acknowledged in all: written to {lost}"
    assert "partition" in found.err[-1]
    again = kproto("produce", topic, "--json", "--repartition", stdin=lost.read_bytes())
    assert again.code == 0
    assert "x" in kproto("consume", topic, *ALL).lines()


def test_transaction_is_aborted_by_an_invalid_line(kproto: Run, topic: str) -> None:
    options = ["--json", "--transactional-id", "tx"]
    assert kproto("produce", topic, *options, stdin=b'{"value": "a"}\n{').code == 1
    assert kproto("produce", topic, *options, stdin=b'{"value": "b"}').code == 0
    committed = kproto("consume", topic, *ALL, "--isolation", "read_committed")
    assert committed.lines() == ["b"]


def test_transactions_end_after_a_number_of_records(kproto: Run, topic: str) -> None:
    options = ["--transactional-id", "tx2", "--transaction-records", "2", "-p", "0"]
    assert kproto("produce", topic, *options, stdin=b"1\n2\n3\n4\n5").code == 0
    found = kproto("consume", topic, *ALL, "-f", "%o ")
    assert found.out == b"0 1 3 4 6 "  # a marker follows each transaction


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (["--last", "2"], "345"),
        (["--last", "99"], "12345"),
        (["--offset", "1"], "2345"),
        (["--offset", "1", "-n", "2"], "23"),
        (["--from", "1970-01-01T00:00:03Z"], "345"),
        (["--from-beginning", "--until", "1970-01-01T00:00:03Z"], "12"),
        (["--from-beginning", "--until", "2020-01-01"], "12345"),
        (["--from-beginning", "--grep", "[24]"], "24"),
        (["--from-beginning", "--key", "k3", "--key", "k5"], "35"),
        (["--from-beginning", "--grep", ".", "-n", "3"], "123"),
        (["--from-beginning", "-n", "0"], ""),
    ],
    ids=" ".join,
)
def test_range_and_filters(kproto: Run, topic: str, options: list[str], values: str) -> None:
    lines = [
        {"key": f"k{n}", "value": str(n), "timestamp": n * 1000, "partition": 0}
        for n in range(1, 6)
    ]
    kproto("produce", topic, "--json", stdin="\n".join(map(json.dumps, lines)).encode())
    found = kproto("consume", topic, "-p", "0", *options, "--until-end", "-f", "%s")
    if options == ["--last", "2"]:
        values = "45"
    assert found.out == values.encode()


def test_records_before_a_time_are_printed_in_any_order(kproto: Run, topic: str) -> None:
    times = [0, 5, 3, 8, 1, 9]
    lines = [{"value": str(each), "timestamp": each * 1000, "partition": 0} for each in times]
    kproto("produce", topic, "--json", stdin="\n".join(map(json.dumps, lines)).encode())
    found = kproto("consume", topic, "--from-beginning", "--until", "1970-01-01T00:00:04Z")
    assert found.lines() == ["0", "3", "1"]


@pytest.mark.parametrize("text", ["1767225604000000", "99999999999999999", "1767225604"])
def test_start_in_another_unit_is_refused(kproto: Run, topic: str, text: str) -> None:
    found = kproto("consume", topic, f"--from={text}", "--until-end")
    assert (found.code, found.out, len(found.err)) == (2, b"", 1)


def test_member_commits_nothing_without_auto_commit(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"1\n2")
    words = ["consume", topic, "-g", f"{topic}-peek", "--from-beginning", "--until-end"]
    for _ in range(2):  # as Kafka's console consumer, which then reads the same again
        found = kproto(*words, "-X", "enable.auto.commit=false")
        assert (found.code, found.lines()) == (0, ["1", "2"])
    lag = kproto("groups", "lag", f"{topic}-peek")
    assert "2" not in lag.out.decode().split()
    assert kproto(*words, "-X", "enable.auto.commit=true").lines() == ["1", "2"]
    assert kproto(*words, "-X", "enable.auto.commit=true").lines() == []


def test_json_without_a_value_is_no_tombstone(kproto: Run, topic: str) -> None:
    found = kproto("produce", topic, "--json", stdin=b'{"key": "k1"}')
    assert (found.code, "line 1 has no value" in found.err[-1]) == (1, True)
    assert kproto("consume", topic, *ALL).lines() == []


def test_byte_order_mark_and_blank_json_lines_are_skipped(kproto: Run, topic: str) -> None:
    text = b'\xef\xbb\xbf{"value": "a"}\r\n\r\n  \n{"value": "b"}\n\n'
    assert kproto("produce", topic, "-p", "0", "--json", stdin=text) == (0, b"", [])
    assert kproto("consume", topic, *ALL).lines() == ["a", "b"]


def test_missing_file_is_an_error_before_records_are_sent(
    kproto: Run, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"a")
    files = ["--file", str(tmp_path / "a")]
    for other in (tmp_path / "missing", tmp_path):
        found = kproto("produce", topic, *files, "--file", str(other))
        assert (found.code, len(found.err)) == (1, 1)
        assert f"{other} cannot be read" in found.err[0]
    assert kproto("consume", topic, *ALL).lines() == []


def test_group_continues_after_the_printed_records(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"1\n2\n3\n4")
    group = ["--group", f"{topic}-readers", "--from-beginning"]
    assert kproto("consume", topic, *group, "-n", "2").lines() == ["1", "2"]
    assert kproto("consume", topic, *group, "--until-end").lines() == ["3", "4"]
    assert kproto("consume", topic, *group, "--timeout", "1s").lines() == []


def test_partitions_of_other_members_are_named_at_the_end(
    capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    settings = BrokerSettings(
        group_consumer_min_heartbeat_interval_ms=50, group_consumer_heartbeat_interval_ms=50
    )
    words = ["consume", "t", "-g", "g", "--from-beginning", "--until-end"]
    is_over = threading.Event()

    def poll_until_over() -> None:
        while not is_over.is_set():
            member.poll(20)

    with threaded_broker(settings) as broker:
        broker.call(lambda it: it.create_topic("t", 3))
        kproto = runner(broker.bootstrap, capsysbinary, tmp_path)
        for number in "012":
            kproto("produce", "t", "-p", number, stdin=b"a")
        with (
            kproto_sync.Client(broker.bootstrap) as client,
            client.consumer("t", group="g", start="earliest", auto_commit=False) as member,
        ):
            polling = threading.Thread(target=poll_until_over)
            polling.start()
            try:
                found = kproto(*words)
            finally:
                is_over.set()
                polling.join()
        assert (found.code, len(found.err)) == (0, 1)
        left = 3 - len(found.lines())
        assert left in (1, 2)
        assert "not read, because other members of the group g have them" in found.err[0]
        assert len(re.findall("t:[012]", found.err[0])) == left
        assert kproto(*words) == (0, b"a\n" * left, [])


def test_missing_topic_and_partition_are_errors(kproto: Run, topic: str) -> None:
    for command in (["produce", "nope"], ["consume", "nope"], ["consume", "nope", "-g", "g"]):
        found = kproto(*command, stdin=b"x" if command[0] == "produce" else None)
        assert found.code == 1
        assert "UNKNOWN_TOPIC_OR_PARTITION" in found.err[0]
    found = kproto("consume", topic, "-p", "9")
    assert found.err == [f"kproto: error: {topic} has no partition 9: it has 3 partitions"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["produce"], "name the topic"),
        (["produce", "t", "--rate", "0"], "--rate must be more than 0"),
        (["produce", "t", "--transaction-records", "5"], "needs --transactional-id"),
        (["produce", "t", "--json", "-K", ":"], "--key-separator is for plain lines"),
        (["produce", "t", "-k", "a", "-K", ":"], "exclude each other"),
        (["produce", "t", "--timestamp", "soon"], "--timestamp: 'soon' is no time"),
        (["consume", "t", "-n", "-1"], "--count must not be negative"),
        (["consume", "t", "-g", "g", "-p", "1"], "--partition is for consumers without --group"),
        (["consume", "t", "-f", "%q"], "has no meaning"),
        (["consume", "t", "--grep", "("], "--grep is no regular expression"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_that_contradict_are_refused(kproto: Run, command: list[str], words: str) -> None:
    found = kproto(*command)
    assert (found.code, found.out) == (2, b"")
    assert words in found.err[0]


def test_future_end_is_refused(kproto: Run, topic: str) -> None:
    found = kproto("consume", topic, "--until", "2100-01-01")
    assert "--until is in the future" in found.err[0]


def test_rate_is_kept(kproto: Run, topic: str) -> None:
    begun = time.monotonic()
    kproto("produce", topic, "--rate", "50", stdin=b"x\n" * 25)
    assert time.monotonic() - begun >= 0.35
    assert len(kproto("consume", topic, *ALL).lines()) == 25


def test_progress_and_sum_go_to_stderr(kproto: Run, topic: str) -> None:
    found = kproto("produce", topic, "--progress", stdin=b"x\ny\n")
    assert found.err[-1].startswith("2 records, 2 B in ")
    found = kproto("consume", topic, *ALL, "--progress")
    assert found.err[-1].startswith("2 records, ")


def command_line(served: ThreadedBroker, *words: str) -> list[str]:
    return [sys.executable, "-m", "kproto", *words, "--bootstrap", served.bootstrap]


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_pipe_of_many_lines_comes_back(served: ThreadedBroker, topic: str, unbuffered: str) -> None:
    data = b"".join(b"line %d \xff\x00\n" % number for number in range(30_000))
    produced = subprocess.run(
        command_line(served, "produce", topic, "-p", "0", "-z", "gzip"), input=data, cwd=ROOT
    )
    assert produced.returncode == 0
    consumed = subprocess.run(
        command_line(served, "consume", topic, *ALL),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert consumed.stdout == data


@pytest.mark.slow
def test_closed_pipe_ends_quietly(served: ThreadedBroker, topic: str) -> None:
    subprocess.run(
        command_line(served, "produce", topic), input=b"x\n" * 1000, cwd=ROOT, check=True
    )
    command = command_line(served, "consume", topic, *ALL)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert complaints(process.stderr.read().decode()) == []
        assert process.wait() == 0


@pytest.mark.slow
def test_interrupt_commits_what_was_printed(
    served: ThreadedBroker, kproto: Run, topic: str
) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"1\n2\n3\n")
    arguments = ["consume", topic, "-g", f"{topic}-i", "--from-beginning", "-b", served.bootstrap]
    with started(*arguments) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == ["1\n", "2\n", "3\n"]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, complaints(err)) == (130, [])
    found = kproto("consume", topic, "-g", f"{topic}-i", "--from-beginning", "--timeout", "1s")
    assert found.lines() == []


@pytest.mark.slow
def test_interrupt_while_standard_input_is_silent(
    served: ThreadedBroker, kproto: Run, topic: str
) -> None:
    with subprocess.Popen(
        command_line(served, "produce", topic),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"sent\n")
        process.stdin.flush()
        while kproto("consume", topic, *ALL).out != b"sent\n":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None
        said = ["kproto: the input was read up to line 1, and not further"]
        assert complaints(process.stderr.read().decode()) == said


def test_member_continues_in_partitions_without_printed_records(kproto: Run, topic: str) -> None:
    """Without a start option, a group continues at the positions of its first run."""
    for partition in range(3):
        lines = b"".join(b"%d-%d\n" % (partition, number) for number in range(3))
        kproto("produce", topic, "-p", str(partition), stdin=lines)
    group = ["--group", f"{topic}-all"]
    first = kproto("consume", topic, *group, "--from-beginning", "-n", "1").lines()
    rest = kproto("consume", topic, *group, "--until-end").lines()
    wanted = [f"{partition}-{number}" for partition in range(3) for number in range(3)]
    assert sorted(first + rest) == wanted


def test_properties_set_the_start_and_the_isolation(kproto: Run, topic: str) -> None:
    kproto("produce", topic, "--json", "--transactional-id", "tx3", stdin=b'{"value": "a"}\n{')
    kproto("produce", topic, stdin=b"b")
    group = ["-X", f"group.id={topic}-props", "-X", "auto.offset.reset=earliest", "--until-end"]
    found = kproto("consume", topic, *group, "-X", "isolation.level=read_committed")
    assert found.lines() == ["b"]
    assert kproto("consume", topic, *group).lines() == []  # the group has committed


def test_undelivered_file_is_checked_at_the_start(kproto: Run, topic: str) -> None:
    found = kproto("produce", topic, "--undelivered", "/no/such/file", stdin=b"x")
    assert "--undelivered /no/such/file cannot be written" in found.err[0]
    assert kproto("consume", topic, *ALL).lines() == []


@pytest.mark.slow
def test_termination_commits_what_was_printed(
    served: ThreadedBroker, kproto: Run, topic: str
) -> None:
    kproto("produce", topic, "-p", "0", stdin=b"1\n2\n")
    arguments = ["consume", topic, "-g", f"{topic}-t", "--from-beginning", "-b", served.bootstrap]
    with started(*arguments) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["1\n", "2\n"]
        process.terminate()
        _, err = process.communicate(timeout=60)
        assert (process.returncode, complaints(err)) == (143, [])
    found = kproto("consume", topic, "-g", f"{topic}-t", "--timeout", "1s", "--from-beginning")
    assert found.lines() == []


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_records_that_could_not_be_written_are_not_committed(
    served: ThreadedBroker, kproto: Run, topic: str, unbuffered: str
) -> None:
    """A pipe holds 64 KB; the reader closes it, so that the rest is not written."""
    data = b"".join(b"%06d %s\n" % (number, b"x" * 90) for number in range(5_000))
    kproto("produce", topic, "-p", "0", stdin=data)
    command = command_line(served, "consume", topic, "-g", f"{topic}-c", "--from-beginning", "-e")
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment) as process:
        assert process.stdout is not None
        first = process.stdout.read(100)
        process.stdout.close()
        assert process.wait(60) == 0
    assert first == data[:100]
    found = kproto("consume", topic, "-g", f"{topic}-c", "--until-end")
    assert found.out == data
