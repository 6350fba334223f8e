"""The arguments of `kproto diff`: what two releases of Kafka speak otherwise.

Knows no release; `run_diff` compares them.
"""

from __future__ import annotations

import argparse

__all__ = ["add_command"]


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describes the command's arguments."""
    parser = commands.add_parser(
        "diff",
        help="show what two releases of Kafka speak otherwise",
        description="Compares the versions that two releases speak, from 0.8.2.0 to 4.4.0: APIs "
        "that came and went, ranges that changed, and the fields of each version that came.",
    )
    for name in ("older", "newer"):
        parser.add_argument(name, metavar=name.upper(), help="a release such as 3.9.2")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(runs_in="run_diff")
