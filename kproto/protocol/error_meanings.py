"""Explains each error code: why a broker sends the code, and what a client does about it.

Reads `error_meanings.toml` in this package. Tests check that it has every code of `error_codes`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from ..schema.unknown_names import unknown_name_error
from .error_codes import ERRORS

__all__ = ["ErrorMeaning", "ErrorResponse", "error_meaning", "error_meanings", "find_error"]

#: Maximum number of digits of an error code, which is an int16.
_MAX_DIGITS: Final = 5


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An API whose response carries an error code.

    `versions` are the versions of the response that carry the code, such as `4+`; "" if no source
    names them.
    """

    api: str
    versions: str

    def __str__(self) -> str:
        return f"{self.api} {self.versions}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """Returns this API as JSON data."""
        return {"api": self.api} | ({"versions": self.versions} if self.versions else {})


@dataclass(frozen=True, slots=True)
class ErrorMeaning:
    """Explains an error code.

    `since` is the first release line whose clients know the code, such as `2.4`. `formerly` has the
    names of the code in earlier releases. `client` says what a client does about the code, and
    begins with the verb if the client is the subject. `responses` has the known responses with the
    code, by API key; other responses may carry it too.
    """

    code: int
    name: str
    retriable: bool
    since: str
    formerly: tuple[str, ...]
    meaning: str
    client: str
    responses: tuple[ErrorResponse, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns this explanation as JSON data."""
        return {
            "code": self.code,
            "name": self.name,
            "retriable": self.retriable,
            "since": self.since,
            "formerly": list(self.formerly),
            "meaning": self.meaning,
            "client": self.client,
            "responses": [each.to_json() for each in self.responses],
        }


@cache
def error_meanings() -> Mapping[int, ErrorMeaning]:
    """Returns the explanation of every error code, by code; reads the file at the first call."""
    package = __name__.rpartition(".")[0]
    file = resources.files(package).joinpath("error_meanings.toml")
    rows = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        code: ErrorMeaning(
            code,
            known.name,
            known.retriable,
            row["since"],
            tuple(row.get("formerly", ())),
            row["meaning"],
            row["client"],
            tuple(_response(text) for text in row.get("responses", ())),
        )
        for code, known in ERRORS.items()
        if (row := rows.get(known.name)) is not None
    }


def error_meaning(error: int | str) -> ErrorMeaning:
    """Returns the explanation of an error code.

    `error` is the code, its name or a former name; ignores case. Raises UnknownNameError, which
    suggests the nearest names, for an unknown code.
    """
    found = find_error(error)
    if found is not None:
        return found
    names = [each.name for each in error_meanings().values()]
    raise unknown_name_error("no error code is", str(error), names)


def find_error(error: int | str) -> ErrorMeaning | None:
    """Returns the explanation of an error code as `error_meaning` does; None if it is unknown."""
    if isinstance(error, int):
        return error_meanings().get(error)
    digits = error.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS:
        return error_meanings().get(int(error))
    wanted = error.upper()
    for each in error_meanings().values():
        if wanted == each.name or wanted in each.formerly:
            return each
    return None


def _response(text: str) -> ErrorResponse:
    api, _, versions = text.partition(" ")
    return ErrorResponse(api, versions)
