"""Returns the first release of each version of a stored message, such as a coordinator record.

Reads `stored_releases.toml` in this package. `release_table` has the releases of requests and
responses.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache

from .changes import find_message
from .data_files import read_data

__all__ = ["stored_releases", "stored_since"]


@cache
def stored_releases() -> Mapping[str, Mapping[int, str]]:
    """Returns the first release line (`3.4`) by version, for each stored message by its name.

    Reads the file at the first call.
    """
    tables = tomllib.loads(read_data("stored_releases.toml"))
    return {
        name: {int(version): release for version, release in rows.items()}
        for name, rows in tables.items()
    }


def stored_since(message: str, version: int) -> str | None:
    """Returns the first release line that has a version of a stored message, such as `3.4`.

    Returns None for an unknown version, and for a request, a response or a header. Raises
    UnknownNameError for an unknown message.
    """
    return stored_releases().get(find_message(message).name, {}).get(version)
