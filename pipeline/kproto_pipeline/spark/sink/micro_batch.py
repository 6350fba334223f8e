"""Names and compares the micro-batches of the exactly-once sink. Plain data: sends no request.

A task writes its rows in a transaction of its transactional id. In the same transaction it commits
the batch id as an offset of a group, so after a restart the task knows whether its rows are
committed. The group has the name of the transactional id.

The driver also stores each batch id as an offset of a group, with the number of tasks, before it
commits the first transaction of the micro-batch. So a replay with fewer tasks finds the tasks that
have no counterpart.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from .errors import ExactlyOnceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto import CommittedOffset
    from kproto.client import TopicPartition

__all__ = [
    "MicroBatch",
    "StoredBatch",
    "TaskAction",
    "WrittenRows",
    "action_of",
    "stored_batch",
]


class MicroBatch(NamedTuple):
    """A micro-batch of a query; `prefix` is the option `transactionalIdPrefix`."""

    prefix: str
    query_id: str
    batch_id: int

    def transactional_id(self, task: int) -> str:
        """Returns the transactional id of a task, which is also the name of its group."""
        return f"{self.prefix}-{self.query_id}-{task}"

    def task_of(self, transactional_id: str) -> int | None:
        """Returns the task of a transactional id; None if it is of another query."""
        start, _, task = transactional_id.rpartition("-")
        return int(task) if start == self.group_id and task.isdecimal() else None

    @property
    def group_id(self) -> str:
        """The group in which the driver stores batch ids."""
        return f"{self.prefix}-{self.query_id}"

    def __str__(self) -> str:
        return f"micro-batch {self.batch_id} of query {self.query_id}"


class WrittenRows(NamedTuple):
    """The number of rows of a task, and their checksum, which does not depend on their order.

    `str` returns the metadata that the task commits with the batch id.
    """

    rows: int
    checksum: int

    def __str__(self) -> str:
        return f"rows={self.rows} checksum={self.checksum:016x}"


class StoredBatch(NamedTuple):
    """A batch id that is committed as an offset of a group, with its metadata."""

    batch_id: int
    metadata: str

    @property
    def tasks(self) -> int:
        """The number of tasks that the driver has stored with the batch id; 0 for other text."""
        name, _, number = self.metadata.partition("=")
        return int(number) if name == "tasks" and number.isdecimal() else 0

    @staticmethod
    def metadata_of(tasks: int) -> str:
        """Returns the metadata for a number of tasks."""
        return f"tasks={tasks}"


def stored_batch(offsets: Mapping[TopicPartition, CommittedOffset]) -> StoredBatch | None:
    """Returns the latest batch id among the committed offsets of a group; None if there is none.

    Each micro-batch may store its batch id for another topic.
    """
    if not offsets:
        return None
    latest = max(offsets.values())
    return StoredBatch(latest.offset, latest.metadata)


class TaskAction(Enum):
    """The action of a task or the driver, by the batch id that its group has."""

    WRITE = "write the rows, or store the batch id"
    COMPARE = "a replay: compare it with the first attempt"


def action_of(stored: StoredBatch | None, batch: MicroBatch) -> TaskAction:
    """Returns the action of a task or the driver.

    | stored batch id | action |
    |---|---|
    | none, or lower | WRITE |
    | equal | COMPARE |
    | higher | ExactlyOnceError |
    """
    if stored is None or stored.batch_id < batch.batch_id:
        return TaskAction.WRITE
    if stored.batch_id == batch.batch_id:
        return TaskAction.COMPARE
    raise ExactlyOnceError(
        f"{batch}: micro-batch {stored.batch_id} is stored already, so the checkpoint "
        "is older than the topic; restore the newest checkpoint, or set another "
        "transactionalIdPrefix, which writes the rows of repeated micro-batches again"
    )
