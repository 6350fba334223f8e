"""Finds the messages of `--messages` and the package of `--package`, for several commands."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from types import ModuleType

from ..protocol.message_classes import KAFKA_MESSAGES, MessageClasses, definitions_in
from ..schema.definitions import Definitions
from ..schema.message_lookup import find_messages
from ..wire.errors import ConfigurationError

__all__ = [
    "definitions_from_options",
    "import_package",
    "message_classes_from_options",
    "message_names",
]


def definitions_from_options(options: argparse.Namespace) -> Definitions | None:
    """Returns the definitions of the package of `--package`; None without this option.

    Raises ConfigurationError if the package cannot be imported, or is no package of messages.
    """
    return None if options.package is None else definitions_in(import_package(options.package))


def message_classes_from_options(options: argparse.Namespace) -> MessageClasses:
    """Returns Kafka's messages and those of the package of `--package`, which override Kafka's.

    Raises ConfigurationError if the package cannot be imported, or is no package of messages.
    """
    if options.package is None:
        return KAFKA_MESSAGES
    package = import_package(options.package)
    definitions_in(package)
    return MessageClasses(package)


def message_names(text: str, known: Definitions | None = None) -> frozenset[str]:
    """Returns the names of the messages in `text`, the value of `--messages`.

    `text` has message names, API names and api keys, separated by commas; an API selects its
    request and its response. Raises UnknownNameError for an unknown name, and ConfigurationError
    if `text` has no name.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigurationError(f"--messages is {text!r}: it must name messages or APIs")
    return frozenset(spec.name for name in parts for spec in find_messages(name, known))


def import_package(name: str) -> ModuleType:
    """Imports the package `name`, which may be in the current folder.

    Raises ConfigurationError if the import fails.
    """
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - its code may raise anything
        raise ConfigurationError(
            f"--package: cannot import {name!r}: {type(error).__name__}: {error}"
        ) from None
    finally:
        sys.path.pop(0)
