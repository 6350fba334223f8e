"""Tests that the docs list each setting, error and route of the client.

`tests/unit/test_pages.py` runs the programs in the docs.
"""

from __future__ import annotations

import dataclasses
import re

import kproto
from kproto import ClientSettings
from kproto.client.metadata.fan_out import SPLIT_RULES
from kproto.client.metadata.routing import ROUTES
from kproto.client.producer.settings import ProducerSettings
from tests.support.pages import page_text
from tools.docs.settings import settings_table

ERRORS = page_text("docs/reference/errors.md")
REQUESTS = page_text("docs/how-to/requests.md")


def rows(of: str) -> dict[str, str]:
    """Returns the default of each setting in the settings table `of`, by the setting's name."""
    table = settings_table(of).replace("\\|", "or")
    return {
        name: default.strip('"').replace(",", "")
        for name, default in re.findall(
            r"^\| `(\w+)` \| [^|]* \| `([^|]*)` \|", table, re.MULTILINE
        )
    }


def test_page_lists_the_client_settings_with_defaults() -> None:
    wanted = {field.name: str(field.default) for field in dataclasses.fields(ClientSettings)}
    assert rows("client") == wanted


def test_page_lists_the_producer_settings_with_defaults() -> None:
    wanted = {field.name: str(field.default) for field in dataclasses.fields(ProducerSettings)}
    assert rows("producer") == wanted


def test_page_lists_every_error() -> None:
    table = ERRORS[ERRORS.index("| error |") :].partition("\n\n")[0]
    listed = set(re.findall(r"`(\w+Error)`", table))
    public = {name for name in kproto.__all__ if name.endswith("Error")}
    assert listed == public - {"KprotoError"}


def cells(heading: str) -> list[list[str]]:
    r"""Returns the cells of the table with this first heading, row by row; `\|` becomes `|`."""
    table = REQUESTS[REQUESTS.index(f"| {heading} |") :].partition("\n\n")[0]
    rows_of_table = table.replace("\\|", "\0").splitlines()[2:]
    return [
        [cell.strip().replace("\0", "|") for cell in row.strip("| ").split("|")]
        for row in rows_of_table
    ]


def test_page_lists_the_route_of_each_request() -> None:
    listed = {
        (f"{name}Request", route)
        for route, names in cells("answered by")
        for name in re.findall(r"`(\w+)`", names)
    }
    assert listed == {(name, wanted.value) for name, wanted in ROUTES.items()}


def test_page_lists_the_split_of_each_request() -> None:
    listed = {name.strip("`"): (asked, answered) for name, asked, answered in cells("request")}
    assert listed == {
        name.removesuffix("Request"): (f"`{row.request_path}`", f"`{row.response_path}`")
        for name, row in SPLIT_RULES.items()
    }
