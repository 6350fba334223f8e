"""Builds the page of `kproto explorer`, and writes or opens it."""

from __future__ import annotations

import argparse
import os
import tempfile
import webbrowser
from pathlib import Path

from .. import messages
from ..explorer.build import kafka_page, own_page
from ..protocol.message_classes import definitions_in
from ..schema.naming import class_name
from ..study.secret_fields import secret_fields
from .command_error import CommandError
from .output import write_all
from .selection import import_package

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Writes the page to `--out`, or to a temporary file that the browser opens; returns 0.

    With `--out -` writes the page to standard output. Raises CommandError if the file cannot
    be written or no browser starts.
    """
    text = _page(options.package)
    if options.out == "-":
        write_all(text.encode())
        return 0
    if options.out is not None:
        _write(Path(options.out), text)
        print(options.out)
        return 0
    handle, name = tempfile.mkstemp(prefix="kproto-explorer-", suffix=".html")
    os.close(handle)
    _write(Path(name), text)
    print(name)
    if not webbrowser.open(Path(name).as_uri()):
        raise CommandError(f"no browser could be started: open {name} in one")
    return 0


def _page(name: str | None) -> str:
    """Returns the page of Kafka's messages, or of the messages of the package called `name`."""
    package = messages if name is None else import_package(name)
    if package is messages:
        return kafka_page()
    known = definitions_in(package)
    # A message without valid versions, whose api key is reserved, has no class.
    definitions = {name: known[name] for name in known if known[name].valid_versions}
    classes = (getattr(package, class_name(message)) for message in definitions)
    secrets = (pair for cls in classes for pair in secret_fields(cls))
    return own_page(package.__name__, definitions, secrets)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"cannot write {path}: {reason}; name another file") from error
