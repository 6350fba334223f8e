"""The pages tell each setting, error and route of the client.

Their programs run in tests/unit/test_pages.py.
"""

from __future__ import annotations

import dataclasses
import re

import kproto
from kproto import ClientSettings
from kproto.client.metadata.fan_out import SPLITS
from kproto.client.metadata.routing import ROUTES
from kproto.client.producer.settings import ProducerSettings
from tests.support.pages import page_text
from tools.docs.settings import settings_table

ERRORS = page_text("docs/reference/errors.md")
REQUESTS = page_text("docs/how-to/requests.md")


def rows(of: str) -> dict[str, str]:
    """The defaults by name, of a table of settings."""
    table = settings_table(of).replace("\\|", "or")
    return {
        name: default.strip('"').replace(",", "")
        for name, default in re.findall(
            r"^\| `(\w+)` \| [^|]* \| `([^|]*)` \|", table, re.MULTILINE
        )
    }


def test_every_setting_of_the_client_with_its_default() -> None:
    wanted = {field.name: str(field.default) for field in dataclasses.fields(ClientSettings)}
    assert rows("client") == wanted


def test_every_setting_of_a_producer_with_its_default() -> None:
    wanted = {field.name: str(field.default) for field in dataclasses.fields(ProducerSettings)}
    assert rows("producer") == wanted


def test_every_error() -> None:
    table = ERRORS[ERRORS.index("| error |") :].partition("\n\n")[0]
    told = set(re.findall(r"`(\w+Error)`", table))
    public = {name for name in kproto.__all__ if name.endswith("Error")}
    assert told == public - {"KprotoError"}


def cells(heading: str) -> list[list[str]]:
    """The rows of a table, by its first heading; a bar within a cell is escaped."""
    table = REQUESTS[REQUESTS.index(f"| {heading} |") :].partition("\n\n")[0]
    rows_of_table = table.replace("\\|", "\0").splitlines()[2:]
    return [
        [cell.strip().replace("\0", "|") for cell in row.strip("| ").split("|")]
        for row in rows_of_table
    ]


def test_who_answers_which_request() -> None:
    told = {
        (f"{name}Request", who)
        for who, names in cells("answered by")
        for name in re.findall(r"`(\w+)`", names)
    }
    assert told == {(name, route.value) for name, route in ROUTES.items()}


def test_what_is_split_by_what() -> None:
    told = {name.strip("`"): (asked, answered) for name, asked, answered in cells("request")}
    assert told == {
        name.removesuffix("Request"): (f"`{row.asked}`", f"`{row.answered}`")
        for name, row in SPLITS.items()
    }
