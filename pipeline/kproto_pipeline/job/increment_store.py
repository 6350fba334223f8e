"""Publishes increments in a folder: `increment=000001`, `increment=000002`, ….

The files of an increment and its manifest are written to a staging folder in `_kproto`, which
readers skip. A single rename publishes the folder: every `increment=N` is complete. The manifest
has the positions at which the next increment starts, so there is no separate checkpoint that could
contradict the manifest. `recover` cleans up after a killed run.

The plan of an increment of a table is stored before the increment is written. If a plan has no
manifest yet, the next run writes the same increment again.

If the file system cannot rename folders atomically, the manifest is written last. An increment
without a manifest does not count, and the next run removes it; until then readers may see it.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Final

from .errors import OutputDamagedError
from .manifest import MANIFEST, Manifest, StoredPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from .output_files import OutputFiles

__all__ = ["STAGING", "IncrementStore", "folder_name"]

#: The folder that contains the staging folders of increments.
STAGING: Final = "_kproto"
#: The folder that contains the plan of the increment that is being written to a table.
PLANS: Final = "_kproto_plans"
#: The folder that contains joined increments, until they have replaced those in the output.
JOINED: Final = "_kproto_joined"
#: The folder in `JOINED` for the replaced increments.
REPLACED: Final = "replaced"

_FOLDER: Final = re.compile(r"increment=([0-9]{6,18})")
_WRITING: Final = re.compile(r"writing-([0-9]{6,18})-[0-9a-f]{32}")


def folder_name(number: int) -> str:
    """Returns the folder name of an increment; Spark reads it as a partition column."""
    return f"increment={number:06}"


class IncrementStore:
    """Reads and publishes the increments in one folder.

    `exclusive` is True if no other run can use the folder. With `allow_gaps`, a missing number
    between increments is no error. The store calls `on_step` with the name of each finished step.
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
        """Returns the manifest of the newest increment; None if there is no increment."""
        return self.manifests[max(self.manifests)] if self.manifests else None

    def path(self, number: int) -> str:
        """Returns the path of a published increment."""
        return self._files.child_path(folder_name(number))

    def recover(self) -> None:
        """Reads the manifests of all increments.

        The first increments may be missing: they have expired, and no new event is compared with
        them. First finishes a killed compaction. If renames are not atomic, then removes the last
        increments that have no manifest: a killed run left them.

        Raises:
            OutputDamagedError: the folder has files that no run creates, or lacks an increment or a
            manifest; or a manifest is unreadable or of another version.
        """
        self._finish_replacing()
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
        for number in numbers:
            path = f"{self.path(number)}/{MANIFEST}"
            if not self._has_manifest(number):
                raise OutputDamagedError(
                    f"{path} is missing; it had the offsets that were read: put it back, or run "
                    "the job once with overwrite"
                )
            manifest = Manifest.from_json(self._files.read(path), path=path)
            previous = max(self.manifests, default=None)
            if previous not in (None, manifest.first_increment - 1) and not self._allow_gaps:
                raise OutputDamagedError(
                    f"{self._files.root} holds the increments {numbers}: one is missing, with its "
                    "events; put it back, or run the job once with overwrite"
                )
            self.manifests[number] = manifest

    def remove_after(self, last: int) -> None:
        """Removes the dead letters that a killed run has left for increments after `last`.

        Raises:
            OutputDamagedError: there are dead letters to remove, but another run may use the
            folder.
        """
        for number in [each for each in self.manifests if each > last]:
            if not self._exclusive:
                raise OutputDamagedError(
                    f"{self.path(number)} exists, but the output has no increment {number}: "
                    "remove this folder"
                )
            self._files.delete(self.path(number))
            del self.manifests[number]

    def _has_manifest(self, number: int) -> bool:
        return self._files.exists(f"{self.path(number)}/{MANIFEST}")

    def staging(self, number: int) -> str:
        """Returns the path of a new staging folder for an increment."""
        return self._files.child_path(STAGING, f"writing-{number:06}-{uuid.uuid4().hex}")

    def store_plan(self, plan: StoredPlan) -> None:
        """Stores the plan of the next increment.

        Raises:
            OutputBusyError: another run has stored a plan of the same increment.
        """
        self._files.write_whole(self._plan_path(plan.increment), plan.to_json())
        self._on_step("plan stored")

    def pending_plan(self) -> StoredPlan | None:
        """Returns the stored plan of the next increment; None if no plan is stored.

        Raises:
            OutputDamagedError: the plan is unreadable, or of another version.
        """
        path = self._plan_path(max(self.manifests, default=0) + 1)
        if not self._files.exists(path):
            return None
        return StoredPlan.from_json(self._files.read(path), path=path)

    def remove_plan(self, number: int) -> None:
        """Removes the stored plan of an increment, if there is one."""
        self._files.delete(self._plan_path(number))

    def _plan_path(self, number: int) -> str:
        return self._files.child_path(PLANS, f"{folder_name(number)}.json")

    def publish(self, staging: str, manifest: Manifest) -> None:
        """Publishes a staging folder as an increment, with its manifest.

        Raises:
            OutputBusyError: another run has published the same increment.
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
        """Writes the manifest to a staging folder, which can then be published."""
        self._files.write(f"{staging}/{MANIFEST}", manifest.to_json())
        self._on_step("manifest written")

    def replace_increments(self, staging: str, manifest: Manifest) -> None:
        """Replaces joined increments by the folder `staging`, which has their rows and a manifest.

        Between two renames a reader sees only a part of the rows.
        """
        self._files.make_folder(self._files.child_path(JOINED))
        self._files.move(staging, self._files.child_path(JOINED, folder_name(manifest.increment)))
        self._on_step("joined")
        self._finish_replacing()
        for number in range(manifest.first_increment, manifest.increment):
            self.manifests.pop(number, None)
        self.manifests[manifest.increment] = manifest

    def _finish_replacing(self) -> None:
        """Replaces the increments whose joined folder is complete; removes the replaced ones."""
        folder = self._files.child_path(JOINED)
        for name in self._files.names(folder):
            if name == REPLACED:
                continue
            path = f"{folder}/{name}/{MANIFEST}"
            manifest = Manifest.from_json(self._files.read(path), path=path)
            self._files.make_folder(f"{folder}/{REPLACED}")
            for number in range(manifest.first_increment, manifest.increment + 1):
                if self._files.exists(self.path(number)):
                    self._files.move(
                        self.path(number), f"{folder}/{REPLACED}/{folder_name(number)}"
                    )
                    self._on_step("moved away")
            self._files.move(f"{folder}/{name}", self.path(manifest.increment))
            self._on_step("replaced increments")
        if self._files.exists(folder):
            self._files.delete(folder)

    def publish_once(self, staging: str, manifest: Manifest) -> None:
        """Publishes a staging folder with a manifest; does nothing if the increment exists.

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
        """Removes the staging folders of published increments.

        If the store is `exclusive`, removes all staging folders, because no other run can use them.
        """
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
