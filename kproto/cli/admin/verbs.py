"""Adds the verbs of a command to its parser, with the arguments that all verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ..connection import add_connection

__all__ = ["Verb", "add_verbs", "add_yes", "verb_first"]

#: The arguments that may stand in front of the verb; True if a value follows.
_SHARED: Final = {
    "-b": True,
    "--bootstrap": True,
    "--context": True,
    "--properties": True,
    "-X": True,
    "--json": False,
    "--csv": False,
}


class Verb(NamedTuple):
    """A verb of a command; `add_arguments` adds its arguments to its parser."""

    name: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]


def add_verbs(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    description: str,
    verbs: Sequence[Verb],
) -> None:
    """Adds a command with `verbs` to the parser; it runs in `admin.run_<name>`.

    `description` begins with a capital letter and ends with a full stop.
    """
    parser = commands.add_parser(
        name,
        help=description[0].lower() + description[1:].rstrip("."),
        description=f"{description} Without a verb: {verbs[0].name}.",
    )
    added = parser.add_subparsers(
        title="verbs", metavar="VERB", dest="verb", required=True, prog=parser.prog
    )
    for verb in verbs:
        verb_parser = added.add_parser(
            verb.name,
            help=verb.description[0].lower() + verb.description[1:].rstrip("."),
            description=verb.description,
        )
        verb.add_arguments(verb_parser)
        _add_output(verb_parser)
        add_connection(verb_parser)
    parser.set_defaults(runs_in=f"admin.run_{name}")


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    form = group.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON object for each row")
    form.add_argument("--csv", action="store_true", help="print CSV with a header")


def add_yes(parser: argparse.ArgumentParser, *, pattern: bool = False) -> None:
    """Adds `--yes`, which a verb needs if it deletes or overwrites.

    With `pattern` the verb asks only if a pattern names what it changes.
    """
    needed = "needed with a pattern" if pattern else "needed"
    parser.add_argument(
        "-y",
        "--yes",
        action="store_true",
        help=f"do not ask; {needed} if standard input is no terminal",
    )


def verb_first(words: Sequence[str], verbs: Sequence[str]) -> list[str]:
    """Returns the words after the name of a command, with the verb as the first word.

    Shared arguments, such as `-b HOST:PORT`, may stand in front of the verb. If there is no verb,
    it is the first of `verbs`.
    """
    at = 0
    while at < len(words) and words[at].partition("=")[0] in _SHARED:
        has_own_value = "=" in words[at]
        at += 2 if _SHARED[words[at].partition("=")[0]] and not has_own_value else 1
    if at < len(words) and (words[at] in verbs or (not at and words[at] in ("-h", "--help"))):
        return [words[at], *words[:at], *words[at + 1 :]]
    if words[:1] == ["--version"]:
        return list(words)
    if at < len(words) and not words[at].startswith("-"):
        return [words[at], *words[:at], *words[at + 1 :]]  # argparse names the known verbs
    return [verbs[0], *words]
