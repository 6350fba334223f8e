"""Reads the data files of this package, from a directory or from inside a wheel."""

from __future__ import annotations

from importlib import resources

__all__ = ["read_data"]


def read_data(name: str) -> str:
    """Returns the text of the UTF-8 file `name` in `kproto/schema`."""
    package = __name__.rpartition(".")[0]
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
