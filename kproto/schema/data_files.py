"""Reads the data files of packages, from a directory or from inside a wheel."""

from __future__ import annotations

import os
import sys
from importlib import import_module

__all__ = ["read_data", "read_package_file"]


def read_data(name: str) -> str:
    """Returns the text of the UTF-8 file `name` in `kproto/schema`."""
    package = __name__.rpartition(".")[0]
    found = read_package_file(package, name)
    assert found is not None, name
    return found


def read_package_file(package: str, name: str) -> str | None:
    """Returns the text of the UTF-8 file `name` in a package; None if there is no such file.

    Asks the loader of the package, as `pkgutil.get_data` does: `importlib.resources` loads zipfile,
    tempfile and three compression modules, which take a client 15 ms and 1.5 MiB.
    """
    module = sys.modules.get(package) or import_module(package)
    get_data = getattr(module.__loader__, "get_data", None)
    if get_data is None or module.__file__ is None:  # no regular package in a directory or zip file
        from importlib import resources

        file = resources.files(package).joinpath(name)
        return file.read_text(encoding="utf-8") if file.is_file() else None
    try:
        folder = os.path.dirname(module.__file__)  # noqa: PTH120 - pathlib would be loaded for it
        data: bytes = get_data(os.path.join(folder, name))  # noqa: PTH118
    except OSError:
        return None
    return data.decode()
