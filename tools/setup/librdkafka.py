"""Fetches the source of librdkafka once, into `.cache/librdkafka`.

The npm package of Confluent's client for JavaScript contains the source of a release of librdkafka,
because it is compiled when the package is installed. Nothing of the package is run.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Final

from .once import finished_at_once, locked
from .programs import ProgramError, run_program

__all__ = ["LibrdkafkaError", "librdkafka_source"]

#: Pinned; the package has the source of librdkafka 2.15.1.
PACKAGE: Final = "@confluentinc/kafka-javascript@1.10.1"

#: The folder of the source in the package.
_SOURCE: Final = "package/deps/librdkafka/src/"

_FETCH_TIMEOUT_S: Final = 300.0

CACHE: Final = Path(__file__).resolve().parents[2] / ".cache"


class LibrdkafkaError(RuntimeError):
    """The source is missing and cannot be fetched."""


def librdkafka_source(folder: Path = CACHE / "librdkafka") -> Path:
    """Returns the folder with the C files of librdkafka; fetches them with npm if it is missing.

    Safe if several processes call it at once. Raises LibrdkafkaError.
    """
    source = folder / "src"
    if source.is_dir():
        return source
    with locked(folder / "lock"):
        if not source.is_dir():
            with finished_at_once(source) as unfinished:
                _unpack(_fetch(folder), unfinished)
    return source


def _fetch(folder: Path) -> Path:
    """Returns the package's archive."""
    npm = shutil.which("npm")
    if npm is None:
        raise LibrdkafkaError("npm is missing, which fetches librdkafka's source: install Node.js")
    try:
        command = [npm, "pack", "--silent", "--ignore-scripts", PACKAGE]
        name = run_program(command, timeout_s=_FETCH_TIMEOUT_S, folder=folder).split()[-1]
    except ProgramError as error:
        raise LibrdkafkaError(f"the source of librdkafka cannot be fetched: {error}") from error
    return folder / name


def _unpack(archive: Path, target: Path) -> None:
    """Writes the C files of the archive to `target`, and removes the archive."""
    target.mkdir()
    with tarfile.open(archive) as package:
        for member in package:
            name = member.name.removeprefix(_SOURCE)
            if name == member.name or "/" in name or not name.endswith((".c", ".h")):
                continue
            content = package.extractfile(member)
            if content is not None:
                (target / name).write_bytes(content.read())
    archive.unlink()
    if not (target / "rdkafka.h").is_file():
        raise LibrdkafkaError(f"{PACKAGE} has no {_SOURCE}rdkafka.h")
