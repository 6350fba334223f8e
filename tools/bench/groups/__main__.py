"""Prints the tables of consumer groups that the arguments name: `python -m tools.bench.groups`.

Without an argument, prints all tables except `rebalances`, which takes minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from . import assignors, members, reading, rebalances, running

TABLES = ("reading", "running", "members", "assignors")
#: The tables that only print if an argument names them.
LONG_TABLES = ("rebalances",)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.groups", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES + LONG_TABLES))
    parser.add_argument(
        "--records", type=int, default=1_000_000, help="records that are read per turn"
    )
    parser.add_argument(
        "--pairs", type=int, default=20, help="turns of both readers of `reading` and `running`"
    )
    parser.add_argument(
        "--rounds", type=int, help="rounds of `members` and `assignors` (15), `rebalances` (3)"
    )
    parser.add_argument(
        "--heartbeat", type=int, default=100, help="heartbeat interval of a member in ms"
    )
    parser.add_argument("--members", type=int, default=100, help="members of `rebalances`")
    parser.add_argument(
        "--partitions", type=int, help="partitions of `running` (4) and `rebalances` (1,000)"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(reading.serve())
        return 0
    unknown = [name for name in chosen.names if name not in TABLES + LONG_TABLES]
    if unknown:
        parser.error(
            f"there is no table {unknown[0]}; the tables are {', '.join(TABLES + LONG_TABLES)}"
        )
    names = chosen.names or TABLES
    is_good = True
    if "reading" in names:
        is_good &= reading.table(chosen.records, chosen.pairs)
    if "running" in names:
        is_good &= running.table(
            chosen.records, chosen.pairs, chosen.partitions or reading.PARTITIONS
        )
    if "members" in names:
        is_good &= members.table(chosen.rounds or 15, chosen.heartbeat)
    if "assignors" in names:
        is_good &= assignors.table(chosen.rounds or 15)
    if "rebalances" in names:
        rebalances.table(chosen.rounds or 3, chosen.members, chosen.partitions or 1_000)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
