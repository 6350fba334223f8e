"""Imports asyncio for a command, without OpenSSL if the command needs no TLS."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from importlib import import_module

__all__ = ["import_asyncio", "is_plaintext"]


def is_plaintext(options: argparse.Namespace, environment: Mapping[str, str]) -> bool:
    """Returns True if no option of a command can configure TLS for its client.

    Reads no file: a file of properties and a context may configure TLS.
    """
    if not hasattr(options, "context"):
        return False  # the command has no client, or has servers of its own
    if options.properties or options.context or environment.get("KPROTO_PROPERTIES"):
        return False
    return not any(given.lstrip().startswith("security.") for given in options.x_properties)


def import_asyncio(options: argparse.Namespace, environment: Mapping[str, str]) -> None:
    """Imports asyncio; without `ssl` if the command's client is plaintext.

    asyncio works without `ssl`, as in a Python that was built without OpenSSL, and so takes 4 MiB
    less. A later `import ssl` succeeds, but asyncio then opens no TLS connection in this process.
    Does nothing if the process has imported asyncio or ssl.
    """
    if "asyncio" in sys.modules or "ssl" in sys.modules or not is_plaintext(options, environment):
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # an import then raises ImportError
    try:
        import_module("asyncio")
    finally:
        del sys.modules["ssl"]
