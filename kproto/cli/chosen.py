"""What several commands let one choose by name: messages, and a generated package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from ..schema.definitions import Definitions
from ..schema.message_lookup import find_messages
from ..wire.errors import ConfigurationError

__all__ = ["names_called", "package_called"]


def names_called(text: str, known: Definitions | None = None) -> frozenset[str]:
    """The messages that `--messages` names, with commas between: see `find_messages`.

    An API is its request and its response. Raises UnknownNameError for a name that there is none
    of, and ConfigurationError where there is no name at all.
    """
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    if not wanted:
        raise ConfigurationError(f"--messages is {text!r}: it must name messages or APIs")
    return frozenset(spec.name for name in wanted for spec in find_messages(name, known))


def package_called(name: str) -> ModuleType:
    """The package of that name, which may stand in the current folder.

    Raises ConfigurationError when it cannot be imported.
    """
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - whatever the package does when it is imported
        raise ConfigurationError(
            f"--package: cannot import {name!r}: {type(error).__name__}: {error}"
        ) from None
    finally:
        sys.path.pop(0)
