"""Holds the log levels of a node, which admin clients describe and alter (KIP-412).

The loggers are those that Kafka's default configuration names, and `kproto.broker`. The level of
`kproto.broker` is the level of this Python logger, which all nodes of the process share. The levels
of the other loggers are stored, but have no effect.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from .api_error import api_error
from .config_changes import AlterOp, ConfigChange

__all__ = ["LoggerLevels"]

_ROOT: Final = "root"
_PYTHON_LOGGER: Final = "kproto.broker"

#: The loggers of Kafka's default configuration, with their levels.
_DEFAULTS: Final = {
    _ROOT: "INFO",
    "kafka": "INFO",
    "kafka.authorizer.logger": "INFO",
    "kafka.network.RequestChannel$": "WARN",
    "kafka.request.logger": "WARN",
    "org.apache.kafka": "INFO",
    "org.apache.kafka.controller": "INFO",
    "org.apache.kafka.storage.internals.log.LogCleaner": "INFO",
    "state.change.logger": "INFO",
}

#: Kafka's log levels, and the level of Python for each.
_LEVELS: Final = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": logging.DEBUG,
    "WARN": logging.WARNING,
}
_NAMES: Final = {
    logging.DEBUG: "DEBUG",
    logging.INFO: "INFO",
    logging.WARNING: "WARN",
    logging.ERROR: "ERROR",
    logging.CRITICAL: "FATAL",
}


class LoggerLevels:
    """Holds the levels of the loggers of one node."""

    def __init__(self) -> None:
        self._levels = dict(_DEFAULTS)

    def levels(self) -> dict[str, str]:
        """Returns the level of each logger by the logger's name."""
        level = logging.getLogger(_PYTHON_LOGGER).getEffectiveLevel()
        own = next((name for bound, name in _NAMES.items() if level <= bound), "FATAL")
        return {**self._levels, _PYTHON_LOGGER: own}

    def alter(self, changes: Iterable[ConfigChange], *, validate_only: bool) -> None:
        """Sets levels of loggers; DELETE sets the level of the root logger.

        Raises INVALID_CONFIG for an unknown logger or level. Raises INVALID_REQUEST for APPEND and
        SUBTRACT, for a missing level, and for DELETE of the root logger. Then no level is changed.
        """
        levels, changed = self.levels(), {}
        for name, operation, level in changes:
            if operation in (AlterOp.APPEND, AlterOp.SUBTRACT):
                word = "APPEND" if operation == AlterOp.APPEND else "SUBTRACT"
                raise api_error(
                    "INVALID_REQUEST",
                    f"{word} operation is not allowed for the BROKER_LOGGER resource",
                )
            if operation == AlterOp.SET and level is None:
                raise api_error("INVALID_REQUEST", f"Null value not supported for : {name}")
            if name not in levels:
                raise api_error("INVALID_CONFIG", f"Logger {name} does not exist!")
            if operation == AlterOp.DELETE:
                if name == _ROOT:
                    raise api_error(
                        "INVALID_REQUEST",
                        "Removing the log level of the root logger is not allowed",
                    )
                changed[name] = levels[_ROOT]
            elif level not in _LEVELS:
                raise api_error(
                    "INVALID_CONFIG",
                    f"Cannot set the log level of {name} to {level} as it is not a supported log "
                    f"level. Valid log levels are {', '.join(_LEVELS)}",
                )
            else:
                changed[name] = level
        if validate_only:
            return
        python_level = changed.pop(_PYTHON_LOGGER, None)
        if python_level is not None:
            logging.getLogger(_PYTHON_LOGGER).setLevel(_LEVELS[python_level])
        self._levels |= changed
