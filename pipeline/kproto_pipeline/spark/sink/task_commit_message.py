"""`TaskCommitMessage`: the message of a task to the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

if TYPE_CHECKING:
    from kproto import OpenTransaction

__all__ = ["TaskCommitMessage"]


@dataclass
class TaskCommitMessage(WriterCommitMessage):
    """Holds the number of rows that a task wrote; all of them are acknowledged.

    `query_id` and `batch_id` name the query and the micro-batch of a stream, and `run_id` names the
    run of the query, which changes with each start; None in a batch query. `task` is the number of
    the task. With `exactlyOnce`, `transaction` is the transaction that the driver commits, None if
    the rows are committed already or if there are none; the batch id is committed as an offset of
    `topic`.
    """

    rows: int
    query_id: str | None = None
    batch_id: str | None = None
    task: int = 0
    topic: str = ""
    transaction: OpenTransaction | None = None
    run_id: str | None = None
