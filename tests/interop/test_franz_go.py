"""Runs franz-go's own tests on the embedded broker: producing, reading, groups, transactions.

franz-go's tests of transactions, groups and share groups pass all records through chains of topics,
while members join and leave. The members use several assignors and both group protocols.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from kproto.broker import BrokerSettings, Listener
from tests.support.embedded import threaded_broker
from tests.support.environment import ROOT
from tests.support.go_programs import built_tests

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.exhaustive]

FOLDER: Final = ROOT / "tools" / "franz_go"
PACKAGE: Final = "github.com/twmb/franz-go/pkg/kgo"
TIMEOUT_S: Final = 900

#: This test needs no broker, but franz-go's source.
LEFT_OUT: Final = "TestOptValuesCoversEveryOption"
#: Tests that skip themselves: this test needs a broker without Produce v2.
SKIPPED: Final = ["TestIssueProduceBrokerTooOldFailsRecords"]
#: Some of the tests that must pass: they would skip themselves if the broker lacked their APIs.
NEEDED: Final = {
    "TestClient_Produce",
    "TestGroupETL/cooperative-sticky",
    "TestGroupETL/sticky/848/static",
    "TestOAuthAuth",
    "TestSCRAMAuth",
    "TestShareGroupAckOnClose",
    "TestShareGroupETL",
    "TestShareGroupOffsetsAdmin",
    "TestTxnEtl/cooperative-sticky/static",
    "TestTxnEtl/range/848",
}


@pytest.mark.parametrize("records", [20_000, pytest.param(100_000, marks=pytest.mark.thorough)])
def test_tests_of_franz_go_pass(tmp_path: Path, records: int) -> None:
    program = built_tests("franz-go's tests", FOLDER, PACKAGE, tmp_path)
    listeners = (
        Listener(),
        Listener("SCRAM", mechanisms=("SCRAM-SHA-256",)),
        Listener("OAUTH", mechanisms=("OAUTHBEARER",)),
    )
    settings = BrokerSettings(listeners=listeners, users={"admin": "admin-secret"})
    with threaded_broker(settings) as broker:
        environment = {
            "KGO_SEEDS": broker.bootstrap,
            "KGO_TEST_RF": "1",
            "KGO_TEST_RECORDS": str(records),
            "KGO_LOG_LEVEL": "none",
            "KGO_TEST_SCRAM": "admin:admin-secret",
            "KGO_TEST_SCRAM_SEEDS": broker.call(lambda it: it.bootstrap_of("SCRAM")),
            "KGO_TEST_OAUTH_SEEDS": broker.call(lambda it: it.bootstrap_of("OAUTH")),
        }
        done = subprocess.run(
            [program, "-test.v", f"-test.skip={LEFT_OUT}", f"-test.timeout={TIMEOUT_S}s"],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S + 60,
            check=False,
        )
    output = done.stdout + done.stderr
    results = re.findall(r"^ *--- (PASS|FAIL|SKIP): (\S+)", done.stdout, re.MULTILINE)
    assert [name for result, name in results if result == "FAIL"] == [], output[-20_000:]
    assert done.returncode == 0, output[-20_000:]
    assert [name for result, name in results if result == "SKIP"] == SKIPPED
    assert {name for result, name in results if result == "PASS"} >= NEEDED
