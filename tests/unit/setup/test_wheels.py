"""Tests that the pure wheel has no compiled file, and that the platform wheel has all of them."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from tests.support.availability import not_available
from tools.setup import mypyc_build, wheels

pytestmark = pytest.mark.slow


def test_the_default_wheel_is_pure(tmp_path: Path) -> None:
    wheel = wheels.build_wheel(tmp_path, is_compiled=False)
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheels.compiled_files(wheel) == []


@pytest.mark.exhaustive
def test_the_platform_wheel_runs_compiled_and_pure(tmp_path: Path) -> None:
    missing = mypyc_build.what_is_missing()
    if missing:
        not_available("the platform wheel", "; ".join(missing))
    wheel = wheels.build_wheel(tmp_path)
    assert "none-any" not in wheel.name
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    modules = mypyc_build.listed_modules(wheels.ROOT)
    expected = {name.removesuffix(".py") + suffix for name in modules}
    assert set(wheels.compiled_files(wheel)) == {*expected, f"kproto__mypyc{suffix}"}
    python = wheels.install(wheel, tmp_path / "venv")
    wheels.check_selection(python, tmp_path)
    assert " passed" in wheels.run_tests(python, tmp_path, with_callers=False)
