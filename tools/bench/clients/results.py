"""Collects measurements by turn, and formats tables of the measurements. Works on plain data.

In a turn each client runs a row of the table once.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from .rows import MeasurementUnit, Row
from .task import TimePerRecord

#: The other client with which kproto's CPU time is compared.
CPU_BASE: Final = "confluent_kafka"


class Results:
    """The measurements by row, turn and client, and the clients' versions.

    A turn of a row measures each client once.
    """

    def __init__(self) -> None:
        self.versions: dict[str, str] = {}
        self._turns: dict[str, list[dict[str, TimePerRecord]]] = defaultdict(lambda: [{}])

    def add(self, row: str, client: str, measured: TimePerRecord) -> None:
        """Records the measurement of `client` in the present turn of `row`, a row of the table.

        A turn measures each client once.
        """
        self._turns[row][-1][client] = measured

    def end_turn(self, row: str) -> None:
        """Ends the present turn of `row`."""
        self._turns[row].append({})

    def middle(self, row: str, client: str) -> TimePerRecord | None:
        """Returns the medians of a client's times over all turns of a row; None without times."""
        found = [turn[client] for turn in self._turns[row] if client in turn]
        if not found:
            return None
        return TimePerRecord(
            statistics.median(each.seconds for each in found),
            statistics.median(each.cpu for each in found),
        )

    def ratio(self, row: str, peer: str) -> TimePerRecord | None:
        """Returns the medians, over all turns, of kproto's times divided by those of client `peer`.

        A turn measures each client once. Returns None if no turn has measured both clients.
        """
        ratios = self.ratios(row, peer)
        if not ratios:
            return None
        return TimePerRecord(
            statistics.median(each.seconds for each in ratios),
            statistics.median(each.cpu for each in ratios),
        )

    def ratios(self, row: str, peer: str) -> list[TimePerRecord]:
        """Returns kproto's times divided by those of `peer`, for each turn with both clients."""
        pairs = [
            (turn["kproto"], turn[peer])
            for turn in self._turns[row]
            if "kproto" in turn and peer in turn
        ]
        return [
            TimePerRecord(ours.seconds / theirs.seconds, ours.cpu / theirs.cpu)
            for ours, theirs in pairs
        ]


def lines_of_tables(rows: Sequence[Row], clients: Sequence[str], results: Results) -> list[str]:
    """Returns the lines of two Markdown tables, rates and times, with a blank line between them."""
    tables = [
        table_lines(title, held, clients, results)
        for title, held in (
            (
                "thousand records/s, CPU µs a record (rate ÷ peer's)",
                [row for row in rows if row.shown is MeasurementUnit.RATE],
            ),
            (
                "time, CPU time (time ÷ peer's)",
                [row for row in rows if row.shown is not MeasurementUnit.RATE],
            ),
        )
        if held
    ]
    return [
        line for number, table in enumerate(tables) for line in ([""] if number else []) + table
    ]


def table_lines(
    title: str, rows: Sequence[Row], clients: Sequence[str], results: Results
) -> list[str]:
    heads = [title, *(head_of(client, results) for client in clients)]
    if CPU_BASE in clients:
        heads.append(f"CPU ÷ {CPU_BASE.replace('_', '-')}'s (from–to)")
    lines = [line_of(heads), "|---" * len(heads) + "|"]
    for row in rows:
        cells = [row.name, *(cell_of(row, client, results) for client in clients)]
        if CPU_BASE in clients:
            cells.append(cpu_cell_of(row, results))
        lines.append(line_of(cells))
    return lines


def line_of(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def head_of(client: str, results: Results) -> str:
    name = client.replace("_", "-")
    return name if client == "kproto" else f"{name} {results.versions.get(client, '')}".rstrip()


def cpu_cell_of(row: Row, results: Results) -> str:
    """Returns kproto's CPU time divided by that of `CPU_BASE`: the median ratio and the range."""
    ratios = sorted(each.cpu for each in results.ratios(row.name, CPU_BASE))
    if not ratios:
        return ""
    between = f" ({ratios[0]:.2f}–{ratios[-1]:.2f})" if len(ratios) > 1 else ""
    return f"{statistics.median(ratios):.2f}{between}"


def cell_of(row: Row, client: str, results: Results) -> str:
    """Returns the text of a table cell: the rate or time of `client`, and its CPU time.

    The cell of a client other than kproto also has the ratio of kproto to this client. Returns ""
    if the client has no work in the row, and "not measured" without measurements.
    """
    if client not in row.works:
        return ""
    middle = results.middle(row.name, client)
    if middle is None:
        return "not measured"
    ratio = None if client == "kproto" else results.ratio(row.name, client)
    if row.shown is MeasurementUnit.RATE:
        rate = 1 / middle.seconds / 1000
        beside = "" if ratio is None else f" ({1 / ratio.seconds:.2f})"
        return f"{rate:,.1f}, {middle.cpu * 1e6:.2f} µs{beside}"
    scale = 1e6 if row.shown is MeasurementUnit.MICROSECONDS else 1e3
    beside = "" if ratio is None else f" ({ratio.seconds:.2f})"
    unit = row.shown.value
    return f"{middle.seconds * scale:,.1f} {unit}, {middle.cpu * scale:,.1f} {unit}{beside}"
