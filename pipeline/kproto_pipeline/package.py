"""`python -m kproto_pipeline.package kproto.zip`: our packages in one zip, for `--py-files`.

Owns which packages a cluster needs of us, and how they are put into a file from wherever they are
installed: a wheel, a checkout, another such zip. It is pure Python, and the same bytes for the same
files. What the extra `kproto[spark]` names besides must be on every node already: wheels with
compiled code cannot be read inside a zip.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

__all__ = ["PACKAGES", "main", "write_package"]

#: What `format("kproto")` needs of us, and the module by which Spark finds it.
PACKAGES: Final = ("kproto", "kproto_cloudevents", "kproto_pipeline", "pyspark_kproto")

#: What other Pythons could not load, or make anew.
_LEFT_OUT: Final = (".so", ".pyd", ".pyc")

_OLDEST: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file: the oldest that a zip can say."""


def write_package(target: Path) -> int:
    """Write the zip, replacing one that is there; how many files it has.

    Raises:
        OSError: it cannot be written there. An old one is left as it was.
    """
    unfinished = target.with_name(f"{target.name}.unfinished")
    count = 0
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
            for package in PACKAGES:
                for name, file in sorted(_files_of(files(package), package)):
                    entry = zipfile.ZipInfo(name, _OLDEST)
                    entry.external_attr = 0o644 << 16
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, file.read_bytes())
                    count += 1
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def _files_of(folder: Traversable, place: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        name = f"{place}/{each.name}"
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _files_of(each, name)
        elif not each.name.endswith(_LEFT_OUT):
            yield name, each


def main(arguments: list[str] | None = None) -> int:
    """Carry out the command; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m kproto_pipeline.package",
        description="Write our packages into one zip, for --py-files and addArtifact.",
    )
    parser.add_argument("target", type=Path, metavar="OUT.zip")
    target: Path = parser.parse_args(arguments).target
    if target.suffix != ".zip":
        # Spark puts nothing else on the path of its workers, but for eggs and single modules.
        parser.error(f"the name must end with .zip, and {target.name!r} does not")
    try:
        count = write_package(target)
    except OSError as error:
        sys.stderr.write(f"{target} was not written: {error}\n")
        return 1
    sys.stdout.write(f"{target}: {count} files, {target.stat().st_size // 1024} KiB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
