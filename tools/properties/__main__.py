"""Regenerates kproto/security/client_names.toml: `python -m tools.properties`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.setup.java import JavaNotFoundError
from tools.setup.javac import CompilerError
from tools.setup.maven import MavenError
from tools.setup.peers import PeersError
from tools.setup.programs import ProgramError

from .java_names import names_of_java
from .librdkafka_names import names_of_librdkafka

OUT = Path(__file__).resolve().parents[2] / "kproto" / "security" / "client_names.toml"

RELEASES = ("3.9.2", "4.4.0")
"""The releases whose properties kproto accepts; together they have all names in use."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the lists; with --check, only compares. Returns 1 on failure or a difference."""
    parser = argparse.ArgumentParser(prog="python -m tools.properties", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and do not write")
    options = parser.parse_args(arguments)
    try:
        java = names_of_java(RELEASES)
        version, librdkafka = names_of_librdkafka()
    except (MavenError, JavaNotFoundError, CompilerError, ProgramError, PeersError) as error:
        print(f"properties: {error}", file=sys.stderr)
        return 1
    text = format_names(java, version, librdkafka)
    same = OUT.is_file() and OUT.read_text(encoding="utf-8") == text
    if not (same or options.check):
        OUT.write_text(text, encoding="utf-8")
    print(f"{OUT}: {'is up to date' if same else 'differs' if options.check else 'written'}")
    return 1 if options.check and not same else 0


def format_names(java: Iterable[str], version: str, librdkafka: Iterable[str]) -> str:
    """Returns the content of client_names.toml: both lists of names, sorted."""
    return (
        "# The property names of Kafka's clients; made by `python -m tools.properties`.\n"
        + _list("java", ", ".join(RELEASES), java)
        + _list("librdkafka", version, librdkafka)
    )


def _list(title: str, version: str, names: Iterable[str]) -> str:
    lines = "".join(f'    "{name}",\n' for name in sorted(names))
    return f'\n[{title}]\nversion = "{version}"\nnames = [\n{lines}]\n'


if __name__ == "__main__":
    sys.exit(main())
