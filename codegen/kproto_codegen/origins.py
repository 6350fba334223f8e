"""The files from which definitions were read, as plain data that accompanies them.

`releases` fills it, `union` merges it, and `emit` writes it into the heads of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["NO_ORIGINS", "Origins"]


@dataclass(frozen=True, slots=True)
class Origins:
    """Names of files, the newest release first: `schemas/4.4.0/clients/FetchRequest.json`.

    They begin with the folder that the user named, without its parents. `folders` contain all
    files, `messages` has the files of each message by its name, `error_codes` those of the error
    codes.
    """

    folders: tuple[str, ...] = ()
    messages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error_codes: tuple[str, ...] = ()


NO_ORIGINS: Final = Origins()
