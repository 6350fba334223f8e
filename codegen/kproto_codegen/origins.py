"""Defines `SourceFileNames`, the names of the files from which definitions were read.

`emit` writes them into the heads of generated files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["NO_ORIGINS", "SourceFileNames"]


@dataclass(frozen=True, slots=True)
class SourceFileNames:
    """Names of files such as `schemas/4.4.0/clients/FetchRequest.json`, the newest release first.

    Each name begins with the last part of the path that the user named. `folders` are the folders
    of the releases, `messages` has the files of each message by message name, and `error_codes` are
    the files of the error codes.
    """

    folders: tuple[str, ...] = ()
    messages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error_codes: tuple[str, ...] = ()


NO_ORIGINS: Final = SourceFileNames()
