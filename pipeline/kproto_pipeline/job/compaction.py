"""Joins small increments of an output of files, so that it has fewer folders and files.

Consecutive increments become one folder with the number of the last; its manifest names the first.
The joined folder is complete before the increments are moved away, so a killed compaction is
finished by the next run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .errors import CountMismatchError, SettingError
from .event_status import VALID
from .increment_store import IncrementStore
from .job_cleanup import cleanup_on_failure
from .manifest import JobCounts, Manifest
from .output_files import OutputFiles
from .output_lock import lock_output
from .output_reader import output_columns, output_reader
from .row_counts import rows_by_status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from .settings import JobSettings

__all__ = ["DEFAULT_SIZE", "compact", "group_increments", "join_manifests"]

#: The size in bytes from which an increment is not joined with others: Parquet's usual file size.
DEFAULT_SIZE: Final = 128 * 1024 * 1024


def compact(spark: SparkSession, settings: JobSettings, *, size: int = DEFAULT_SIZE) -> list[int]:
    """Joins consecutive increments up to about `size` bytes; returns the joined folders' numbers.

    Increments of at least `size` bytes stay as they are.

    Raises:
        SettingError: the output is not Parquet, or its file system does not rename atomically.
        OutputBusyError: another run writes to the output.
        OutputDamagedError: the output contains files that no run creates, or lacks files of a run.
        CountMismatchError: the joined files do not have the rows of the increments.
    """
    output = settings.output
    if output.format.lower() != "parquet" or output.path is None:
        raise SettingError(f"output.format is {output.format}; only Parquet files can be joined")
    files = OutputFiles(spark, output.path)
    if not files.atomic:
        raise SettingError(
            f"output.path: {files.scheme} does not rename folders atomically, so increments cannot "
            "be joined"
        )
    if files.local is None:
        return _compact(spark, settings, files, size)
    with lock_output(files.local):
        return _compact(spark, settings, files, size)


def _compact(
    spark: SparkSession, settings: JobSettings, files: OutputFiles, size: int
) -> list[int]:
    store = IncrementStore(files, exclusive=files.local is not None, on_step=lambda step: None)
    store.recover()
    store.remove_staging()
    sizes = {number: files.size(store.path(number)) for number in store.manifests}
    joined = []
    for group in group_increments(sizes, size):
        manifest = join_manifests([store.manifests[number] for number in group])
        staging = store.staging(group[-1])

        with cleanup_on_failure(spark, store.remove_staging):
            _write_joined(spark, settings, store, files, group, staging, manifest.counts)
            store.write_manifest(staging, manifest)
            store.replace_increments(staging, manifest)
        store.remove_staging()
        joined.append(manifest.increment)
    return joined


def _write_joined(
    spark: SparkSession,
    settings: JobSettings,
    store: IncrementStore,
    files: OutputFiles,
    group: Sequence[int],
    staging: str,
    counts: JobCounts,
) -> None:
    output = settings.output
    files.make_folder(staging)
    paths = [store.path(number) for number in group if files.holds_data(store.path(number))]
    if not paths:
        return

    columns = output_columns(output)
    rows = output_reader(spark, output, *columns).option("basePath", files.root).load(paths)
    # All rows of a partition folder go to one task, which writes one file.
    parts = output.partition_by
    rows = rows.select(*columns)
    rows = rows.repartition(*parts) if parts else rows.coalesce(1)
    writer = rows.write.format(output.format).options(**output.options)
    (writer.partitionBy(*parts) if parts else writer).mode("append").save(staging)
    before: dict[str, int] = {}
    for path in paths:
        for status, count in rows_by_status(spark, files, output, path).items():
            before[status] = before.get(status, 0) + count
    written = rows_by_status(spark, files, output, staging)
    if written != before or written.get(VALID, 0) != counts.valid:
        raise CountMismatchError(
            f"the increments {group[0]} to {group[-1]} have the rows {before}, {counts.valid} of "
            f"them valid by their manifests; but {written} were written"
        )


def group_increments(sizes: dict[int, int], most: int) -> list[list[int]]:
    """Groups consecutive increments whose sizes add up to at most `most`.

    `sizes` has the bytes by number, in ascending order. Returns only groups of at least two.
    """
    groups: list[list[int]] = []
    total = most + 1
    for number, size in sizes.items():
        if total + size > most:
            groups.append([])
            total = 0
        groups[-1].append(number)
        total += size
    return [group for group in groups if len(group) > 1]


def join_manifests(manifests: Sequence[Manifest]) -> Manifest:
    """Returns the manifest of consecutive increments that are joined into one."""
    last = manifests[-1]
    starts: dict[tuple[str, int, object], int] = {}
    for manifest in manifests:
        for each in manifest.ranges:
            starts.setdefault((each.topic, each.partition, each.topic_id), each.start)
    timestamps = [each.timestamps for each in manifests if each.counts.read]
    known = [each for each in timestamps if each is not None]
    return replace(
        last,
        first=manifests[0].first_increment,
        ranges=tuple(
            replace(each, start=starts[each.topic, each.partition, each.topic_id])
            for each in last.ranges
        ),
        counts=sum((each.counts for each in manifests), JobCounts()),
        timestamps=(min(low for low, _ in known), max(high for _, high in known))
        if known and len(known) == len(timestamps)
        else None,
        losses=tuple(loss for each in manifests for loss in each.losses),
    )
