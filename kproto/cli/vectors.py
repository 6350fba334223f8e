"""Describes the arguments of `kproto vectors`, which writes messages as JSON and as bytes.

Does not import the messages; `run_vectors` imports them when the command runs.
"""

from __future__ import annotations

import argparse

__all__ = ["add_command"]


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `kproto vectors` and its arguments to the parser."""
    parser = commands.add_parser(
        "vectors",
        help="write golden vectors of messages, for codecs in any language",
        description="Writes messages as JSON and as bytes, one line of JSON each "
        "(docs/how-to/fuzzing.md): Kafka's, or those of a package that kproto-codegen generated.",
    )
    parser.add_argument("--out", metavar="DIR", help="write a file for each module to this folder")
    parser.add_argument(
        "--package", metavar="NAME", help="the generated package, as Python imports it from here"
    )
    parser.add_argument(
        "--messages",
        metavar="NAME,…",
        help="only these messages (MetadataRequest), or those of an API (Metadata, or its key 3)",
    )
    parser.add_argument(
        "--sizes",
        action="store_true",
        help="also vectors with lengths and counts at the borders of the encodings, up to 32767; "
        "always with --package",
    )
    parser.set_defaults(runs_in="run_vectors")
