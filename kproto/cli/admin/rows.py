"""Prints the results of commands as a table, as lines of JSON or as CSV."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from ...wire.uuid import Uuid
from ..tables import escaped, print_table

__all__ = ["print_rows"]


def print_rows(
    options: argparse.Namespace,
    columns: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    *,
    hidden: Sequence[str] = (),
) -> None:
    """Prints `rows`, whose keys are `columns`, in snake_case; `hidden` are left out of the table.

    With `--json` each row is a line with an object; with `--csv` the first line has the columns.
    """
    found = [dict(row) for row in rows]
    if options.json:
        for row in found:
            print(json.dumps({name: _plain(row[name]) for name in columns}, ensure_ascii=False))
    elif options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        for row in found:
            writer.writerow([_cell(row[name], null="") for name in columns])
    else:
        shown = [name for name in columns if name not in hidden]
        header = [name.replace("_", " ").upper() for name in shown]
        cells = [[escaped(_cell(row[name], null="-")) for name in shown] for row in found]
        print_table(header, cells)


def _plain(value: Any) -> Any:
    """Returns a value as JSON data."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, Uuid):
        return str(value)
    if isinstance(value, Iterable):
        return [_plain(each) for each in value]
    return str(value)


def _cell(value: Any, *, null: str) -> str:
    plain = _plain(value)
    if plain is None:
        return null
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    if isinstance(plain, list):
        return ",".join(_cell(each, null=null) for each in plain)
    if isinstance(plain, dict):
        return ",".join(f"{key}={_cell(each, null=null)}" for key, each in plain.items())
    return str(plain)
