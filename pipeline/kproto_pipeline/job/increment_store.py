"""Publishes increments in a folder: `increment=000001`, `increment=000002`, ….

The files of an increment and its manifest are written to a staging folder in `_kproto`, which
readers skip, and published by one rename: an `increment=N` is complete, and its manifest has the
positions of the next one. No other checkpoint exists that could differ. `recover` cleans up after
a killed run. Knows no topic and no Spark job.

On a file system without atomic renames of folders, the manifest is written last: an increment
without a manifest does not count, and the next run removes it. Readers may see it meanwhile.
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

__all__ = ["STAGING", "IncrementStore", "folder_name"]

#: The folder with the staging folders of increments.
STAGING: Final = "_kproto"

_FOLDER: Final = re.compile(r"increment=([0-9]{6,18})")
_WRITING: Final = re.compile(r"writing-([0-9]{6,18})-[0-9a-f]{32}")


def folder_name(number: int) -> str:
    """Returns the name of an increment's folder; Spark and pyarrow read the number as a column."""
    return f"increment={number:06}"


class IncrementStore:
    """The increments of one folder.

    `exclusive` means that no other run can use the folder, `allow_gaps` that numbers may be
    missing. `on_step` is called after each step.
    """

    def __init__(
        self,
        files: OutputFiles,
        *,
        exclusive: bool,
        on_step: Callable[[str], object],
        allow_gaps: bool = False,
    ) -> None:
        self._files = files
        self._exclusive = exclusive
        self._allow_gaps = allow_gaps
        self._on_step = on_step
        self.manifests: dict[int, Manifest] = {}

    @property
    def last(self) -> Manifest | None:
        """The manifest of the newest increment."""
        return self.manifests[max(self.manifests)] if self.manifests else None

    def path(self, number: int) -> str:
        """Returns the path of a published increment."""
        return self._files.child_path(folder_name(number))

    def recover(self) -> None:
        """Reads the manifests, and removes an increment that a killed run left without one.

        Raises:
            OutputDamagedError: the folder has files that no run leaves there, or increments are
                missing.
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
        if not self._allow_gaps and numbers != list(range(1, len(numbers) + 1)):
            raise OutputDamagedError(
                f"{self._files.root} holds the increments {numbers}: one is missing, with its "
                "events; put it back, or run the job once with overwrite"
            )
        for number in numbers:
            path = f"{self.path(number)}/{MANIFEST}"
            if not self._has_manifest(number):
                raise OutputDamagedError(
                    f"{path} is missing, which has the offsets that were read: put it back, or run "
                    "the job once with overwrite"
                )
            self.manifests[number] = Manifest.from_json(self._files.read(path), path=path)

    def remove_after(self, last: int) -> None:
        """Removes increments after `last`: a killed run did not publish the events to them.

        Raises:
            OutputDamagedError: there are such increments, and another run may use the folder.
        """
        for number in [each for each in self.manifests if each > last]:
            if not self._exclusive:
                raise OutputDamagedError(
                    f"{self.path(number)} exists, and no events of that number: remove it"
                )
            self._files.delete(self.path(number))
            del self.manifests[number]

    def _has_manifest(self, number: int) -> bool:
        return self._files.exists(f"{self.path(number)}/{MANIFEST}")

    def staging(self, number: int) -> str:
        """Returns a new staging folder for an increment."""
        return self._files.child_path(STAGING, f"writing-{number:06}-{uuid.uuid4().hex}")

    def publish(self, staging: str, manifest: Manifest) -> None:
        """Publishes a staging folder as an increment, with its manifest.

        Raises:
            OutputBusyError: another run has published an increment of that number.
        """
        number, text = manifest.increment, manifest.to_json()
        if self._files.atomic:
            self.write_manifest(staging, manifest)
            self._files.move(staging, self.path(number))
        else:
            self._files.move(staging, self.path(number))
            self._on_step("moved without manifest")
            self._files.write(f"{self.path(number)}/{MANIFEST}", text)
        self._on_step("published")
        self.manifests[number] = manifest

    def write_manifest(self, staging: str, manifest: Manifest) -> None:
        """Writes the manifest to a staging folder, which is then ready to be published."""
        self._files.write(f"{staging}/{MANIFEST}", manifest.to_json())
        self._on_step("manifest written")

    def publish_once(self, staging: str, manifest: Manifest) -> None:
        """Publishes a staging folder with a manifest, unless that has been done.

        Raises:
            OutputDamagedError: neither the staging folder nor the increment exists.
        """
        number = manifest.increment
        if self._files.exists(self.path(number)):
            return
        if not self._files.exists(staging):
            raise OutputDamagedError(
                f"{self.path(number)} and its staging folder {staging} are both missing: put one "
                "of them back, or run the job once with overwrite"
            )
        self._files.move(staging, self.path(number))
        self._on_step("published")
        self.manifests[number] = manifest

    def remove_staging(self) -> None:
        """Removes staging folders that can no longer be published."""
        folder = self._files.child_path(STAGING)
        if self._exclusive:
            if self._files.exists(folder):
                self._files.delete(folder)
            return
        last = max(self.manifests, default=0)
        for name in self._files.names(folder):
            found = _WRITING.fullmatch(name)
            if found is not None and int(found[1]) <= last:
                self._files.delete(f"{folder}/{name}")
