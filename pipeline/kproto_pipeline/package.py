"""`python -m kproto_pipeline.package kproto.zip`: writes the packages to a zip for `--py-files`.

Reads the packages from an installed wheel, a checkout, or a zip that this command wrote. The zip
contains no compiled code, because Python cannot import compiled code from a zip: every node must
already have the packages of the extra `kproto[spark]`. Zips of the same files have the same bytes.
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

#: The packages that `format("kproto")` needs, and the module by which Spark discovers
#: the data source.
PACKAGES: Final = ("kproto", "kproto_cloudevents", "kproto_pipeline", "pyspark_kproto")

#: The suffixes of files that the zip leaves out: they depend on the Python version.
_EXCLUDED: Final = (".so", ".pyd", ".pyc")

_OLDEST: Final = (1980, 1, 1, 0, 0, 0)
"""The timestamp of every file in the zip: the oldest that the zip format can store."""


def write_package(target: Path) -> int:
    """Writes the zip, replaces an existing zip, and returns the number of files in it.

    Raises:
        OSError: the zip cannot be written. An existing zip is then not changed.
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


def _files_of(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        name = f"{path}/{each.name}"
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _files_of(each, name)
        elif not each.name.endswith(_EXCLUDED):
            yield name, each


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns the exit code: 0, or 1 if the zip could not be written."""
    parser = argparse.ArgumentParser(
        prog="python -m kproto_pipeline.package",
        description="Write kproto's packages to a zip, for --py-files and addArtifact.",
    )
    parser.add_argument("target", type=Path, metavar="OUT.zip")
    target: Path = parser.parse_args(arguments).target
    if target.suffix != ".zip":
        # Besides eggs and single modules, Spark adds only zips to the workers' import path.
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
