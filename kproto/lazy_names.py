"""Imports the public names of a package at their first use (PEP 562).

A program then loads only the modules of the names that it uses: a consumer does not load the
producer. The package names each module twice: type checkers read the imports under TYPE_CHECKING,
and the running program reads the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` of a package.

    `modules` maps each public name to its module, relative to the package, such as ".settings".
    `__getattr__` raises AttributeError for any other name.
    """

    def getattribute(name: str) -> Any:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"{package} has no public name {name!r}")
        found = getattr(import_module(module, package), name)
        setattr(sys.modules[package], name, found)  # the next use finds it without this function
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return getattribute, names
