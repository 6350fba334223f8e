"""Describes the arguments of `kproto completion`, which prints the completion of a shell."""

from __future__ import annotations

import argparse
from typing import Final

__all__ = ["SHELLS", "add_command"]

SHELLS: Final = ("bash", "zsh", "fish")


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto completion` and its arguments to the parser."""
    parser = commands.add_parser(
        "completion",
        help="print the completion of a shell",
        description="Prints a script that completes commands, verbs and options. For bash and zsh: "
        'eval "$(kproto completion bash)"; for fish: kproto completion fish | source.',
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(runs_in="run_completion")
