"""Runs pytest with the plugin on the tests that a test writes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

__all__ = ["RunTests"]

#: Runs pytest on one module with the text, and returns the result.
RunTests = Callable[..., pytest.RunResult]

#: A warning, such as of an unclosed socket, fails a test of the inner run too.
CONFIG = """
[pytest]
asyncio_default_fixture_loop_scope = function
filterwarnings =
    error
    ignore:Module already imported:pytest.PytestAssertRewriteWarning
addopts = --strict-markers -p kproto.pytest_plugin -p no:cacheprovider
"""


@pytest.fixture
def run_tests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> RunTests:
    """Returns a function that runs pytest in this process, or with `in_process=False` in another.

    The environment selects the embedded broker.
    """
    for name in ("KPROTO_BOOTSTRAP", "KPROTO_PROPERTIES"):
        monkeypatch.delenv(name, raising=False)
    pytester.makefile(".ini", pytest=CONFIG)

    def run(text: str, *arguments: str, in_process: bool = True) -> pytest.RunResult:
        pytester.makepyfile(test_it=text)
        if in_process:
            return pytester.runpytest_inprocess(*arguments)
        return pytester.runpytest_subprocess(*arguments)

    return run
