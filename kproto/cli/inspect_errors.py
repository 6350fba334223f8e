"""Prints error codes for `kproto inspect`: one code in full, or a list of all codes."""

from __future__ import annotations

from typing import Final

from ..protocol.error_meanings import ErrorMeaning, error_meanings, find_error
from .tables import print_json, print_table, print_wrapped

__all__ = ["print_error", "print_errors", "print_hint"]

#: The oldest release of which the codes are known.
_OLDEST: Final = "0.8.2"


def print_error(error: ErrorMeaning, *, as_json: bool) -> None:
    """Prints the explanation of an error code."""
    if as_json:
        print_json(error.to_json())
        return
    print(f"{error.name} (error code {error.code}), {_retriable(error)}")
    print_wrapped(error.meaning)
    formerly = f", at first as {' and '.join(error.formerly)}" if error.formerly else ""
    earlier = " or earlier" if error.since == _OLDEST else ""
    print(f"in Kafka since {error.since}{earlier}{formerly}")
    print_wrapped(f"client: {error.client}")
    if error.responses:
        print_wrapped(f"responses: {', '.join(map(str, error.responses))}")


def print_errors(*, as_json: bool) -> None:
    """Prints all error codes, by code."""
    if as_json:
        print_json([each.to_json() for each in error_meanings().values()])
        return
    print_table(
        ("CODE", "NAME", "RETRIABLE", "MEANING"),
        [
            (str(each.code), each.name, "yes" if each.retriable else "no", each.meaning)
            for each in error_meanings().values()
        ],
    )


def print_hint(name: str) -> None:
    """Prints the error code that has the number `name`, if `name` is a number of an error code."""
    error = find_error(name) if name.isdigit() else None
    if error is not None:
        print(f"\nerror code {error.code} is {error.name}: kproto inspect error {error.code}")


def _retriable(error: ErrorMeaning) -> str:
    return "retriable" if error.retriable else "not retriable"
