"""Which files definitions were read from, as plain data that goes along with them.

Told by `releases`, joined by `union`, and said by `emit` in the heads of what it writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["NO_ORIGINS", "Origins"]


@dataclass(frozen=True, slots=True)
class Origins:
    """Names of files, the newest release first: `schemas/4.4.0/clients/FetchRequest.json`.

    They begin with the folder that the user named, whatever lies above it. `folders` hold all,
    `messages` has the files of each message by its name, `error_codes` those of the error codes.
    """

    folders: tuple[str, ...] = ()
    messages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error_codes: tuple[str, ...] = ()


NO_ORIGINS: Final = Origins()
