"""Tests that mypyc compiles the record modules unchanged, and that their tests then pass."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from tests.support.availability import not_available
from tools.setup import compiled


def modules_in(folder: Path, suffix: str) -> set[tuple[Path, str]]:
    """Returns the modules in a folder and its subfolders, each with its folder."""
    return {
        (path.parent.relative_to(folder), path.name.removesuffix(suffix))
        for path in folder.rglob(f"*{suffix}")
    }


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_record_modules_pass_their_tests_when_compiled() -> None:
    missing = compiled.what_is_missing()
    if missing:
        not_available("the compiled record modules", "; ".join(missing))
    package = compiled.compiled_package()
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    sources = modules_in(compiled.ROOT / compiled.MODULES, ".py")
    assert len({folder for folder, _ in sources}) == 4  # the package itself, and three subpackages
    found = modules_in(package / compiled.MODULES, suffix)
    assert found == sources
    assert " passed" in compiled.run_record_tests(package)


def test_a_missing_compiler_and_missing_headers_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "gcc -pthread")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(compiled.CompiledError, match=r"'gcc'.*apt-get.*Python\.h.*python3-dev"):
        compiled.build(tmp_path)
