"""Runs the tests of the example services, each with the service's own packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.availability import not_available
from tools.setup.environments import InstallError
from tools.setup.example_services import SERVICES, run_example_tests

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.exhaustive]


@pytest.mark.parametrize("service", SERVICES, ids=lambda path: path.name)
def test_tests_of_a_service_pass(service: Path) -> None:
    try:
        done = run_example_tests(service)
    except InstallError as error:
        not_available(f"the example {service.name}", error)
    assert done.returncode == 0, done.stdout + done.stderr
    written = service.glob("test_*.py")
    tests = sum(len(re.findall(r"^def test_", it.read_text(), re.MULTILINE)) for it in written)
    assert f"{tests} passed" in done.stdout
