"""A folder that grows by increments: `increment=000001`, `increment=000002`, ….

Owns how an increment comes into the folder, and what is made of what a killed run has left. The
files of an increment and its manifest are written aside, in `_kproto`, which readers of the folder
pass over, and come into place by one move: whatever stands at `increment=N` is whole, and its
manifest says where the next one begins. There is no second place that could say otherwise. Knows
no topic and no Spark job.

Where the file system does not move a folder in one step, the manifest is written last: an
increment without one is not there, and is removed by the next run. Readers may see it meanwhile.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Final

from .errors import OutputDamagedError
from .manifest import MANIFEST, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .output_files import OutputFiles

__all__ = ["ASIDE", "IncrementStore", "folder_name"]

#: Where increments are written before they are published.
ASIDE: Final = "_kproto"

_FOLDER: Final = re.compile(r"increment=([0-9]{6,18})")
_WRITING: Final = re.compile(r"writing-([0-9]{6,18})-[0-9a-f]{32}")


def folder_name(number: int) -> str:
    """The name of an increment's folder; Spark and pyarrow read the number as a column."""
    return f"increment={number:06}"


class IncrementStore:
    """The increments of one folder.

    `alone` says that no other run can be at work here, `gaps` that numbers may lack; `at` hears of
    each step.
    """

    def __init__(
        self, files: OutputFiles, *, alone: bool, at: Callable[[str], object], gaps: bool = False
    ) -> None:
        self._files = files
        self._alone = alone
        self._gaps = gaps
        self._at = at
        self.manifests: dict[int, Manifest] = {}

    @property
    def last(self) -> Manifest | None:
        """The newest increment."""
        return self.manifests[max(self.manifests)] if self.manifests else None

    def path(self, number: int) -> str:
        """Where an increment stands, or will."""
        return self._files.below(folder_name(number))

    def recover(self) -> None:
        """Read the manifests, and remove an increment that a killed run has left without one.

        Raises:
            OutputDamagedError: the folder holds data that no run has put there, or increments lack.
        """
        numbers = []
        for name in self._files.names(self._files.root):
            found = _FOLDER.fullmatch(name)
            if found is not None:
                numbers.append(int(found[1]))
            elif not name.startswith(("_", ".")):
                raise OutputDamagedError(
                    f"{self._files.root} holds {name}, which is no increment: give the job a "
                    "folder of its own, or run it once with overwrite"
                )
        numbers.sort()
        while numbers and not self._files.atomic and not self._has_manifest(numbers[-1]):
            self._files.delete(self.path(numbers.pop()))
        if not self._gaps and numbers != list(range(1, len(numbers) + 1)):
            raise OutputDamagedError(
                f"{self._files.root} holds the increments {numbers}: one lacks, and with it what "
                "was read; put it back, or run the job once with overwrite"
            )
        for number in numbers:
            path = f"{self.path(number)}/{MANIFEST}"
            if not self._has_manifest(number):
                raise OutputDamagedError(
                    f"{path} lacks, which says what was read: put it back, or run the job once "
                    "with overwrite"
                )
            self.manifests[number] = Manifest.from_json(self._files.read(path), place=path)

    def keep_upto(self, last: int) -> None:
        """Remove increments beyond `last`: that of a run that did not publish the events to them.

        Raises:
            OutputDamagedError: there are such, and another run may be at work here.
        """
        for number in [each for each in self.manifests if each > last]:
            if not self._alone:
                raise OutputDamagedError(
                    f"{self.path(number)} is there, and no events of that number: remove it"
                )
            self._files.delete(self.path(number))
            del self.manifests[number]

    def _has_manifest(self, number: int) -> bool:
        return self._files.exists(f"{self.path(number)}/{MANIFEST}")

    def aside(self, number: int) -> str:
        """A fresh path to write an increment to."""
        return self._files.below(ASIDE, f"writing-{number:06}-{uuid.uuid4().hex}")

    def publish(self, aside: str, manifest: Manifest) -> None:
        """Move what was written aside into its place, with its manifest.

        Raises:
            OutputBusyError: another run has published an increment of that number.
        """
        number, text = manifest.increment, manifest.to_json()
        if self._files.atomic:
            self.seal(aside, manifest)
            self._files.move(aside, self.path(number))
        else:
            self._files.move(aside, self.path(number))
            self._at("moved without manifest")
            self._files.write(f"{self.path(number)}/{MANIFEST}", text)
        self._at("published")
        self.manifests[number] = manifest

    def seal(self, aside: str, manifest: Manifest) -> None:
        """Write its manifest to what was written aside: a move is all that lacks."""
        self._files.write(f"{aside}/{MANIFEST}", manifest.to_json())
        self._at("manifest written")

    def complete(self, aside: str, manifest: Manifest) -> None:
        """Move what was sealed into its place, unless that has been done.

        Raises:
            OutputDamagedError: it is at neither place.
        """
        number = manifest.increment
        if self._files.exists(self.path(number)):
            return
        if not self._files.exists(aside):
            raise OutputDamagedError(
                f"{self.path(number)} lacks, and so does {aside}, where it was written: put one of "
                "them back, or run the job once with overwrite"
            )
        self._files.move(aside, self.path(number))
        self._at("published")
        self.manifests[number] = manifest

    def clear(self) -> None:
        """Remove what is aside and can no longer be published."""
        folder = self._files.below(ASIDE)
        if self._alone:
            if self._files.exists(folder):
                self._files.delete(folder)
            return
        last = max(self.manifests, default=0)
        for name in self._files.names(folder):
            found = _WRITING.fullmatch(name)
            if found is not None and int(found[1]) <= last:
                self._files.delete(f"{folder}/{name}")
