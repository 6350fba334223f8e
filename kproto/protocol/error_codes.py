"""Looks up error codes of responses, and converts them to exceptions.

An unknown code becomes an exception with the name UNKNOWN_CODE_<n>.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..wire.errors import BrokerResponseError
from .broker_errors import BROKER_ERRORS
from .error_table import ERROR_TABLE

__all__ = ["ERRORS", "ErrorCode", "code_of", "error_code", "error_of_code", "raise_for_code"]


class ErrorCode(NamedTuple):
    """Describes an error code of Kafka; `retriable` is True if a retry may succeed."""

    code: int
    name: str
    retriable: bool


#: Every known error code.
ERRORS: Final[dict[int, ErrorCode]] = {entry[0]: ErrorCode(*entry) for entry in ERROR_TABLE}

_CODES: Final[dict[str, int]] = {entry.name: entry.code for entry in ERRORS.values()}


def error_code(code: int) -> ErrorCode:
    """Returns the entry of `code`; an unknown code is UNKNOWN_CODE_<n> and not retriable."""
    return ERRORS.get(code) or ErrorCode(code, f"UNKNOWN_CODE_{code}", retriable=False)


def code_of(name: str) -> int:
    """Returns the code of an error by its name, such as NOT_LEADER_OR_FOLLOWER.

    Raises KeyError for an unknown name.
    """
    return _CODES[name]


def error_of_code(code: int, detail: str) -> BrokerResponseError:
    """Returns an exception for `code`: of the class for this code, or else a BrokerResponseError.

    `detail` names the failed request and its broker.
    """
    known = error_code(code)
    error_class = BROKER_ERRORS.get(known.name, BrokerResponseError)
    return error_class(known.code, known.name, detail, retriable=known.retriable)


def raise_for_code(code: int, detail: str) -> None:
    """Raises BrokerResponseError unless `code` is 0; `detail` names the request and the broker."""
    if code:
        raise error_of_code(code, detail)
