"""Tests the file of known findings, and runs with known findings."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.cli import main
from kproto.fuzz import kproto_codec, report
from kproto.fuzz.case import Answer, Case, MessageVersion, Operation, Outcome
from kproto.fuzz.judging import Fault, Verdict
from kproto.fuzz.known_findings import KnownFinding, known_from_finding, parse_known, spans
from kproto.fuzz.kproto_codec import KprotoCodec
from kproto.fuzz.page import page
from kproto.fuzz.run import CasePlan, Result, run
from kproto.wire.errors import ConfigurationError

from .test_one_way import Scripted

OURS = shlex.join([sys.executable, "-m", "kproto.fuzz.kproto_codec"])
WRONG = shlex.join([sys.executable, str(Path(__file__).with_name("wrong_implementation.py"))])
FEW = ["--judge", "kproto", "--messages", "MetadataRequest", "--versions", "1", "--no-shrink"]

VERSIONS = tuple(MessageVersion("MetadataRequest", version) for version in (1, 9, 12))
TAGS = "unknown tagged fields"


def stricter(case: Case) -> Answer:
    """Refuses all content of version 12 that is right."""
    right = kproto_codec.answer(case)
    if case.message_version.version == 12 and right.outcome is Outcome.DONE:
        return Answer(Outcome.REFUSED, reason="version 12 is not finished")
    return right


def fuzzed(*known: KnownFinding) -> Result:
    plan = CasePlan(VERSIONS, cases=132, shrink=False)
    return run(Scripted(stricter), KprotoCodec(), plan, by_kproto=True, known=known)


def test_a_run_with_known_findings_only_is_clean() -> None:
    first = fuzzed()
    assert first.harmful
    text = report.known_lines(first, ())
    again = fuzzed(*parse_known(text))
    assert again.findings == []
    assert again.unseen == []
    assert again.outcomes["known"] == first.outcomes["differs"]
    assert sum(again.known.values()) >= sum(finding.count for finding in first.findings)
    assert "known findings" in report.text(again)
    node = json.loads(json.dumps(report.to_json(again)))
    assert {each["fault"] for each in node["known"]} == {"stricter"}
    assert "Known findings" in page(node)


def test_a_finding_of_another_version_is_new() -> None:
    known = KnownFinding(Fault.STRICTER, "MetadataRequest", frozenset({1, 9}), reason="old")
    result = fuzzed(known)
    assert result.harmful
    assert result.unseen == [known]
    assert "known, but not found in this run: " in report.text(result)


def test_a_known_finding_is_unseen_only_if_the_run_has_cases_of_it() -> None:
    result = fuzzed(
        KnownFinding(Fault.STRICTER, "FetchRequest"),
        KnownFinding(Fault.STRICTER, "MetadataRequest", frozenset({3})),
        KnownFinding(Fault.STRICTER, "MetadataRequest", frozenset({12})),
    )
    assert result.unseen == []
    assert len(result.known) == 1


def test_each_known_finding_that_matches_a_fault_is_seen() -> None:
    broad, narrow = KnownFinding(Fault.STRICTER), KnownFinding(Fault.STRICTER, "MetadataRequest")
    result = fuzzed(broad, narrow)
    assert result.known[broad] == result.known[narrow] > 0


def test_the_written_file_keeps_the_reasons_of_known_findings() -> None:
    known = KnownFinding(Fault.LOOSER, "FetchRequest", reason="fixed in the next release")
    text = report.known_lines(fuzzed(known), [known])
    entries = parse_known(text)
    assert entries[0] == known
    assert {each.fault for each in entries[1:]} == {Fault.STRICTER}
    assert {each.reason for each in entries[1:]} == {""}
    assert report.known_lines(fuzzed(*entries), entries) == text


@pytest.mark.parametrize(
    ("entry", "is_known"),
    [
        (KnownFinding(Fault.BYTES), True),
        (KnownFinding(Fault.JSON), False),
        (KnownFinding(Fault.BYTES, "MetadataRequest", frozenset({9})), True),
        (KnownFinding(Fault.BYTES, "MetadataRequest", frozenset({8})), False),
        (KnownFinding(Fault.BYTES, "FetchRequest"), False),
        (KnownFinding(Fault.BYTES, operation=Operation.REWRITE), True),
        (KnownFinding(Fault.BYTES, operation=Operation.ENCODE), False),
        (KnownFinding(Fault.BYTES, trait=TAGS), True),
        (KnownFinding(Fault.BYTES, trait="bytes after the message"), False),
        (KnownFinding(Fault.BYTES, cause="fewer bytes"), True),
        (KnownFinding(Fault.BYTES, cause="more bytes"), False),
    ],
)
def test_a_fault_matches_if_all_keys_of_the_known_finding_do(
    entry: KnownFinding, is_known: bool
) -> None:
    verdict = Verdict(Fault.BYTES, f"a bool that is neither 0 nor 1, {TAGS}", "fewer bytes")
    assert entry.matches(verdict, Operation.REWRITE, VERSIONS[1]) is is_known


def test_a_crash_becomes_known_whatever_it_printed() -> None:
    verdict = Verdict(Fault.CRASHED, "", "ended with exit code #: no e, please")
    (entry,) = known_from_finding(verdict, Operation.REWRITE, VERSIONS)
    assert entry.cause is None
    assert entry.versions == frozenset({1, 9, 12})


entries = st.builds(
    KnownFinding,
    st.sampled_from(Fault),
    st.none() | st.sampled_from(("FetchRequest", "MetadataRequest", "LeaveGroupResponse")),
    st.none() | st.frozensets(st.integers(0, 0x7FFF), max_size=5).map(lambda found: found | {5}),
    st.none() | st.sampled_from(Operation),
    st.text(),
    st.none() | st.text(),
    st.text(),
)


@given(st.lists(entries))
def test_the_lines_of_known_findings_are_read_as_written(written: list[KnownFinding]) -> None:
    text = "".join(json.dumps(each.to_json()) + "\n" for each in written)
    assert parse_known(text) == written


def test_a_former_name_of_a_message_is_read_as_its_present_name() -> None:
    (found,) = parse_known('{"fault":"json","message":"ListClientMetricsResourcesRequest"}')
    assert found.message == "ListConfigResourcesRequest"


@given(st.frozensets(st.integers(0, 40), min_size=1))
def test_spans_have_no_range_that_continues_another(versions: frozenset[int]) -> None:
    text = spans(versions)
    entry = KnownFinding.from_json({"fault": "looser", "versions": text})
    assert entry.versions == versions
    assert len(text.split(",")) == sum(each - 1 not in versions for each in versions)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2 is no JSON"),
        ("[]", "line 2: a known finding is a JSON object"),
        ("{}", "line 2: the key fault is missing"),
        ('{"fault":"worse"}', "line 2: fault is 'worse': it must be one of looser, stricter"),
        ('{"fault":"json","operation":"read"}', "operation is 'read': it must be one of decode"),
        ('{"fault":"json","version":"1"}', "key 'version' is unknown: use some of message"),
        ('{"fault":"json","versions":[1]}', r"versions is \[1\]: it must be a string"),
        ('{"fault":"json","versions":"2-1"}', "versions is '2-1': it must be like 4-11,13"),
        ('{"fault":"json","versions":"0-99999999"}', "it must be like 4-11,13"),
        ('{"fault":"json","versions":""}', "it must be like 4-11,13"),
        ('{"fault":"json","message":"Nix"}', "line 2: no message is called 'Nix'"),
        (
            '{"fault":"json","message":"FetchReqest"}',
            "line 2: no message is called 'FetchReqest'; the nearest: FetchRequest",
        ),
        (
            '{"fault":"json","message":"RequestHeader","versions":"5-9"}',
            "line 2: versions is '5-9': RequestHeader has 0-2",
        ),
    ],
)
def test_a_wrong_line_is_an_error_with_its_number(line: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        parse_known(f'{{"fault":"json"}}\n{line}\n')


@pytest.mark.slow
def test_the_command_writes_known_findings_and_accepts_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "known.jsonl"
    wrong = ["fuzz", "--command", f"{WRONG} stricter", "--cases", "200", *FEW]
    assert main([*wrong, "--write-known", str(path)]) == 1
    assert main([*wrong, "--known", str(path)]) == 0
    assert "no findings" in capsys.readouterr().out
    assert main(["fuzz", "--command", OURS, "--cases", "200", *FEW, "--known", str(path)]) == 0
    assert "known, but not found in this run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--command", OURS, "--known", "/no/such/file"], "--known: cannot read /no/such/file"),
        (["--command", OURS, "--known", "x", "--replay", "{}"], "--known cannot be used with"),
        (["--broker", "127.0.0.1:1", "--known", "x"], "--known needs --command: a known finding"),
    ],
)
def test_errors_of_the_option_are_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fuzz", *arguments]) == (1 if "cannot read" in said else 2)
    assert said in capsys.readouterr().err


def test_an_error_of_the_file_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "known.jsonl"
    path.write_text("{}\n")
    assert main(["fuzz", "--command", OURS, "--known", str(path)]) == 1
    assert f"--known: {path}: line 1: the key fault is missing" in capsys.readouterr().err
