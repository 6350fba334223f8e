"""Tests that the adapters of `kproto fuzz` answer every case and follow the line protocol.

Also tests that kproto differs from Kafka's classes only as documented.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from kproto.fuzz.case import Case, MessageVersion, Operation, Outcome, all_message_versions
from kproto.fuzz.implementation import Implementation
from kproto.fuzz.judging import Fault
from kproto.fuzz.kproto_codec import KprotoCodec
from kproto.fuzz.run import CasePlan, Result, run
from kproto.fuzz.settings import FuzzSettings
from tests.support.availability import not_available
from tests.support.environment import ROOT
from tests.support.go_programs import built
from tests.support.selection import rest_slow

ADAPTERS = ROOT / "tools" / "fuzz_adapters"
#: Long timeouts, so that a slow machine does not count as a fault of an adapter.
PATIENT = FuzzSettings().of_a_judge()
#: Faults in the line protocol. A correct adapter has none of them, whichever codec it tests.
LINE_FAULTS = {Fault.GARBAGE, Fault.ORDER, Fault.CRASHED, Fault.LATE}


def fuzzed(command: str, kinds: tuple[str, ...] = ("boundary", "value", "length")) -> Result:
    plan = CasePlan(all_message_versions(), cases=1500, kinds=kinds, shrink=False)
    with Implementation(command, PATIENT) as implementation:
        return run(implementation, KprotoCodec(), plan, by_kproto=True)


@pytest.mark.peers
@pytest.mark.parametrize("peer", rest_slow(["kio", "aiokafka", "kafka-python"], 0, 0))
def test_python_adapter_follows_the_line_protocol(peer: str, peers_python: Path) -> None:
    result = fuzzed(shlex.join([str(peers_python), str(ADAPTERS / "peer.py"), peer]))
    # aiokafka has fewer messages than the other libraries.
    assert result.outcomes["agreed"] > (60 if peer == "aiokafka" else 300)
    assert not LINE_FAULTS & {finding.verdict.fault for finding in result.findings}


#: Differences of aiokafka that docs/evidence/findings.md lists: refused, or written otherwise.
AIOKAFKA_DIFFERENCES = {
    "a tag of 0 is refused": ("AlterPartitionReassignmentsRequest", 0, "0000000001010000", None),
    "the size of a tag is missing": ("ResponseHeader", 1, "00000000012700", "000000000127"),
    "DescribeAcls v2 is not flexible": ("DescribeAclsRequest", 2, "0000000001000000", None),
    # A topic without a name, with a partition whose values are zero.
    "currentLeaderEpoch is an int64": (
        "ListOffsetsRequest",
        4,
        "00" * 8 + "01" + "00" * 5 + "01" + "00" * 16,
        None,
    ),
}


@pytest.mark.peers
def test_aiokafka_differs_as_documented(peers_python: Path) -> None:
    command = shlex.join([str(peers_python), str(ADAPTERS / "peer.py"), "aiokafka"])
    cases = [
        Case(Operation.REWRITE, MessageVersion(name, version), bytes.fromhex(data), "given")
        for name, version, data, _ in AIOKAFKA_DIFFERENCES.values()
    ]
    header = Case(Operation.REWRITE, MessageVersion("RequestHeader", 1), b"", "given")
    with Implementation(command, PATIENT) as implementation:
        *answers, of_header = implementation.respond([*cases, header])
    for (what, (*_, written)), answer in zip(AIOKAFKA_DIFFERENCES.items(), answers, strict=True):
        expected = Outcome.REFUSED if written is None else Outcome.DONE
        assert answer.outcome is expected, what
        assert written is None or answer.value.hex() == written, what
    assert of_header.outcome is Outcome.WRITE_ONLY


@pytest.mark.peers
def test_kmsg_adapter_follows_the_line_protocol(tmp_path: Path) -> None:
    binary = built("Go's kmsg", ADAPTERS / "kmsg", tmp_path)
    result = fuzzed(str(binary), ("boundary", "value"))
    assert result.outcomes["agreed"] > 300
    assert not LINE_FAULTS & {finding.verdict.fault for finding in result.findings}


@pytest.mark.exhaustive
@pytest.mark.reference
def test_kproto_differs_from_kafka_only_as_documented() -> None:
    from tools.reference.classes import ReferenceUnavailableError, class_path

    try:
        class_path("4.4.0")
    except ReferenceUnavailableError as error:
        not_available("Kafka's own classes", error)
    java = shlex.join([sys.executable, "-m", "tools.reference", "answer"])
    plan = CasePlan(all_message_versions(), seed=11, cases=4000, shrink=False)
    with Implementation(java, PATIENT, folder=ROOT) as judge:
        result = run(KprotoCodec(), judge, plan, by_kproto=False)
    assert result.cases == 4000
    assert result.harmful == []
