"""Tests that mypyc compiles the listed modules unchanged, and that their tests then pass."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import kproto
from kproto.wire import c_functions
from tests.support.availability import not_available
from tools.setup import compiled, mypyc_build

ROOT = compiled.ROOT


def package_or_skip() -> Path:
    missing = mypyc_build.what_is_missing()
    if missing:
        not_available("the compiled modules", "; ".join(missing))
    return compiled.compiled_package()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_compiled_modules_pass_their_tests() -> None:
    package = package_or_skip()
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    listed = {name.removesuffix(".py") for name in mypyc_build.listed_modules(ROOT)}
    found = (package / "kproto").rglob(f"*{suffix}")
    assert {str(path.relative_to(package)).removesuffix(suffix) for path in found} == listed
    assert " passed" in compiled.run_compiled_tests(package)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(("pure", "wanted"), [("", "True"), ("0", "True"), ("1", "False")])
def test_kproto_pure_selects_the_sources(pure: str, wanted: str) -> None:
    package = package_or_skip()
    program = (
        "import kproto; from kproto.records import varints\n"
        "print(kproto.__compiled__, not varints.__file__.endswith('.py'))"
    )
    environment = {**os.environ, "PYTHONPATH": str(package), "KPROTO_PURE": pure}
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.split() == [wanted, wanted]


def test_a_checkout_runs_the_sources() -> None:
    path = kproto.__file__
    assert kproto.__compiled__ is not path.startswith(str(ROOT))


def test_every_record_module_and_existing_files_are_listed() -> None:
    listed = mypyc_build.listed_modules(ROOT)
    records = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "kproto/records").rglob("*.py")
    }
    assert records - set(listed) == {
        "kproto/records/__init__.py",
        "kproto/records/record.py",
        "kproto/records/type_variables.py",
    }
    assert all((ROOT / name).is_file() for name in listed)


def test_every_c_function_is_registered_with_mypyc() -> None:
    header = mypyc_build.C_FUNCTIONS.read_text()
    for name in set(c_functions.__all__) - {"has_slots"}:
        assert f'"{name}": ("' in mypyc_build._SETUP
        assert f"kproto_{name}(" in header or name == "as_method"


def test_a_pattern_without_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.hatch.build.targets.wheel.hooks.custom]\nmodules = ["kproto/nothing.py"]\n'
    )
    with pytest.raises(mypyc_build.CompileError, match=r"'kproto/nothing\.py'"):
        mypyc_build.listed_modules(tmp_path)


def test_a_missing_compiler_and_missing_headers_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "gcc -pthread")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(mypyc_build.CompileError, match=r"'gcc'.*apt-get.*Python\.h.*python3-dev"):
        mypyc_build.compile_package(ROOT, tmp_path)
