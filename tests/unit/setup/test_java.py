"""Tests the choice of a Java; scripts take the place of Java.

Also tests the wrapper for a Java without the vector module: it drops the options for this module.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.setup import java


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'empty'}")
    monkeypatch.setattr(java, "WRAPPERS", tmp_path / "wrappers")
    monkeypatch.setattr(java, "_package_home", lambda: None)
    java.java_home.cache_clear()
    yield
    java.java_home.cache_clear()


def fake_java(home: Path, version: str, *, vector: bool = True) -> Path:
    """Creates a script that answers `-version` as this Java version does; returns `home`.

    The script prints all other arguments.
    """
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refuses = "" if vector else 'case "$*" in *jdk.incubator.vector*) exit 1;; esac\n'
    program.write_text(
        f"#!/bin/sh\n{refuses}"
        'case "$*" in *-version*)\n'
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2 ;;\n"
        """*) printf '<%s>' "$@" ;; esac\n"""
    )
    program.chmod(0o755)
    return home


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = fake_java(tmp_path / "named", "21")
    on_path = fake_java(tmp_path / "on-path", "25")
    monkeypatch.setenv("JAVA_HOME", str(named))
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java.java_home() == named


@pytest.mark.parametrize("old", ["1.8", "11", "16"])
def test_a_java_that_is_too_old_is_skipped(
    old: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", old)))
    on_path = fake_java(tmp_path / "on-path", "17")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java.java_home() == on_path


def test_a_missing_java_is_an_error_with_the_solution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing-here"))
    with pytest.raises(java.JavaNotFoundError, match="install a JDK"):
        java.java_home(install=False)


def test_a_runtime_without_the_vector_module_is_wrapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = fake_java(tmp_path / "run time", "25", vector=False)
    monkeypatch.setenv("JAVA_HOME", str(runtime))
    home = java.java_home()
    assert home.is_relative_to(java.WRAPPERS)
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "-Dx=$HOME", "Main"]
    done = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout == "<-cp><a b><><-Dx=$HOME><Main>"


def test_a_wrapper_named_in_java_home_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = fake_java(tmp_path / "runtime", "25", vector=False)
    monkeypatch.setenv("JAVA_HOME", str(runtime))
    wrapper = java.java_home()
    monkeypatch.setenv("JAVA_HOME", str(wrapper))
    java.java_home.cache_clear()
    assert java.java_home() == wrapper
