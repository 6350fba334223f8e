"""Builds the page of `kproto explorer`, and writes or opens it."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import webbrowser
from pathlib import Path

from ..explorer.build import kafka_page
from ..wire.errors import ConfigurationError

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Writes the page to `--out`, or to a temporary file that the browser opens; returns 0.

    With `--out -` writes the page to standard output. Raises ConfigurationError if the file cannot
    be written or no browser starts.
    """
    text = kafka_page()
    if options.out == "-":
        sys.stdout.buffer.write(text.encode())
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
        raise ConfigurationError(f"no browser could be started: open {name} in one")
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(f"cannot write {path}: {reason}; name another file") from error
