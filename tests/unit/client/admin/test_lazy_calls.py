"""Tests that `Admin` has the calls of all areas, and imports an area at the first call."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from kproto.client.admin.admin import _CALLS, Admin
from kproto.client.admin.area import AdminArea


@pytest.mark.parametrize(("module", "area"), _CALLS)
def test_calls_of_an_area_are_those_of_its_class(module: str, area: str) -> None:
    cls = getattr(import_module(f"kproto.client.admin.{module}"), area)
    own = {name for name in vars(cls) if not name.startswith("_")}
    assert own == set(_CALLS[module, area])
    for name in own:
        assert getattr(Admin, name) is vars(cls)[name]
        assert inspect.getdoc(getattr(Admin, name))


def test_every_area_has_calls() -> None:
    areas = {each.__name__ for each in _areas(AdminArea)} - {"Admin", "_Areas"}
    assert areas == {area for _, area in _CALLS}


def _areas(cls: type[AdminArea]) -> set[type[AdminArea]]:
    for module, _ in _CALLS:
        import_module(f"kproto.client.admin.{module}")
    found = set(cls.__subclasses__())
    return found.union(*map(_areas, found))


def test_call_is_bound_to_the_requester_of_its_admin() -> None:
    requester = object()
    call: Any = Admin(requester).list_offsets  # type: ignore[arg-type]
    assert call.__self__._requester is requester


def test_admin_imports_no_area_before_a_call() -> None:
    program = (
        "import sys; from kproto.client.admin import Admin; before = set(sys.modules);"
        "Admin.list_topics; print(*sorted(set(sys.modules) - before));"
        "print(*sorted(it for it in before if it.endswith('_admin')))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded, before = run.stdout.splitlines()
    assert "kproto.client.admin.topic_admin" in loaded
    assert "security_admin" not in loaded
    assert before == ""
