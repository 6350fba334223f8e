"""Tests docs/how-to/schema-registries.md, and `SchemaIdCodec` against other packages.

The serializers of confluent-kafka and python-schema-registry-client run in an environment of their
own, and ask a registry that runs in the test.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.availability import not_available
from tests.support.environment import ROOT
from tests.support.pages import blocks, page_text
from tests.support.schema_registry import schema_registry
from tools.setup.peers import PeersError, schema_registries_python

pytestmark = [pytest.mark.peers, pytest.mark.exhaustive]

PAGE = page_text("docs/how-to/schema-registries.md")
PROGRAMS = blocks(PAGE, "python")
PRINTED = [
    "a {'number': 1, 'item': 'tea'}\n",
    "{'text': 'two cups'} ['__value_schema_id']\n",
    "{'number': 1, 'item': 'tea'}\n",
    "b'\\x00\\x00\\x00\\x00\\x07{\"number\":1}'\n{'number': 1}\n",
]
SCRIPT = Path(__file__).parent / "peer_scripts" / "schema_ids.py"
TIMEOUT_S = 60


@pytest.fixture(scope="session")
def python() -> Path:
    try:
        return schema_registries_python()
    except PeersError as error:
        not_available("clients of schema registries", error)


def run(*command: str | Path) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_page_has_a_program_for_each_package() -> None:
    assert len(PROGRAMS) == len(PRINTED)


@pytest.mark.parametrize("at", range(len(PRINTED)))
def test_program_of_the_page_prints_its_records(python: Path, at: int) -> None:
    with schema_registry() as url:
        program = PROGRAMS[at].replace("http://localhost:8081", url)
        assert run(python, "-c", program) == PRINTED[at]


@pytest.mark.parametrize(
    "package", ["confluent_kafka", "confluent_kafka_header", "schema_registry"]
)
def test_schema_id_codec_and_other_serializers_read_each_other(python: Path, package: str) -> None:
    with schema_registry() as url:
        assert run(python, SCRIPT, package, url) == "equal\n"
