"""Fetches and runs kafka-python's integration tests."""

from __future__ import annotations

import os
import subprocess
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tools.setup.environments import python_with
from tools.setup.once import finished_at_once, locked
from tools.setup.programs import run_program

__all__ = ["BROKER_CONFIG", "FILES", "RELEASE", "Outcome", "Result", "SuiteError", "run_suite"]

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cache" / "client-suites"
REQUIREMENTS: Final = Path(__file__).with_name("requirements.txt")
RELEASE: Final = "3.0.12"

#: The files whose tests use the broker. The tests of SASL and TLS start brokers of their own, whose
#: files the source distribution lacks.
FILES: Final = (
    "test/integration/test_admin_integration.py",
    "test/integration/test_consumer_integration.py",
    "test/integration/test_producer_integration.py",
)

#: The release for which the tests select their expectations: the newest that kafka-python knows.
_KAFKA_VERSION: Final = "4.3"

#: The configs of a real broker that equal the settings in the adapter.
BROKER_CONFIG: Final[Mapping[str, str]] = {
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    "group.min.session.timeout.ms": "100",
}

_FETCH_TIMEOUT_S: Final = 300.0
_RUN_TIMEOUT_S: Final = 1800.0

Outcome = Literal["passed", "failed", "skipped"]


class SuiteError(RuntimeError):
    """The tests did not run; the message has the output."""


@dataclass(frozen=True)
class Result:
    """The outcome of a test, and the first line of its failure or the reason of its skip."""

    outcome: Outcome
    reason: str = ""


def run_suite(bootstrap: str = "") -> dict[str, Result]:
    """Runs the tests on the real broker at `bootstrap`, or on an embedded broker if it is empty.

    Returns the results by the name of the test. Raises InstallError, ProgramError or SuiteError.
    """
    python = python_with(
        CACHE / "environment",
        install=["-r", str(REQUIREMENTS)],
        wanted=REQUIREMENTS.read_text(encoding="utf-8"),
    )
    source = _source(python)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        paths = [str(source), str(ROOT), str(Path(__file__).parent)]
        done = subprocess.run(
            [
                *(str(python), "-m", "pytest", "-q", "-p", "kproto.pytest_plugin"),
                *("-p", "kafka_python_adapter", "-o", "log_level=ERROR", "-p", "no:cacheprovider"),
                *("--timeout", "120", f"--junitxml={report}", *FILES),
            ],
            cwd=source,
            env={
                **os.environ,
                "KAFKA_VERSION": _KAFKA_VERSION,
                "KPROTO_BOOTSTRAP": bootstrap,
                "PYTHONPATH": os.pathsep.join(paths),
            },
            capture_output=True,
            text=True,
            timeout=_RUN_TIMEOUT_S,
            check=False,
        )
        if not report.is_file():
            raise SuiteError(f"kafka-python's tests did not run:\n{done.stdout}{done.stderr}")
        return _read(report)


def _source(python: Path) -> Path:
    """Returns the folder with the tests, without the package that the environment has."""
    folder = CACHE / f"kafka-python-{RELEASE}"
    with locked(CACHE / "source.lock"):
        if folder.is_dir():
            return folder
        with tempfile.TemporaryDirectory() as downloads, finished_at_once(folder) as unfinished:
            run_program(
                [
                    *(str(python), "-m", "pip", "download", "--quiet", "--no-deps"),
                    *("--no-binary", ":all:", "--dest", downloads, f"kafka-python=={RELEASE}"),
                ],
                timeout_s=_FETCH_TIMEOUT_S,
            )
            (archive,) = Path(downloads).glob("*.tar.gz")
            with tarfile.open(archive) as found:
                found.extractall(downloads, filter="data")
            (extracted,) = (it for it in Path(downloads).iterdir() if it.is_dir())
            unfinished.mkdir()
            (extracted / "test").rename(unfinished / "test")
            (extracted / "pyproject.toml").rename(unfinished / "pyproject.toml")
            # Without it, Python's own package `test` would be imported.
            (unfinished / "test" / "__init__.py").touch()
    return folder


def _read(report: Path) -> dict[str, Result]:
    results: dict[str, Result] = {}
    for case in ET.parse(report).iter("testcase"):
        module = case.get("classname", "").rpartition(".")[2]
        result = Result("passed")
        for each in case:
            reason = (each.get("message") or "").partition("\n")[0]
            if each.tag in ("failure", "error"):
                result = Result("failed", reason)
            elif each.tag == "skipped":
                result = Result("skipped", reason)
        results[f"{module}::{case.get('name')}"] = result
    return results
