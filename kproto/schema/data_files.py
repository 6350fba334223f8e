"""Reads the data files of this package, from a directory or from inside a wheel."""

from __future__ import annotations

__all__ = ["read_data"]


def read_data(name: str) -> str:
    """Returns the text of the UTF-8 file `name` in `kproto/schema`."""
    from importlib import resources  # here, because it loads zipfile, which a client does not need

    package = __name__.rpartition(".")[0]
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
