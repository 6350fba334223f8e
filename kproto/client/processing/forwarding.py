"""Sends a failed record to a retry topic or to the dead letter topic.

Failure headers may make the record larger than the topic accepts. In this case the record is sent
without the text of the error. If the record is still too large, it is sent without failure headers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol.broker_errors import RecordTooLargeError
from ...records import Record
from .failure_headers import forwarded_headers, origin_of
from .failure_log import log_failure
from .ports import RecordSink

__all__ = ["send_forwarded"]


async def send_forwarded(
    producer: RecordSink,
    topic: str,
    record: Record,
    error: BaseException,
    *,
    group_id: str,
    attempts: int,
    due_ms: int | None,
    refused_forms: Sequence[BaseException] = (),
) -> None:
    """Sends a record that failed with `error` to `topic`, with failure headers.

    `attempts` counts the attempts of this `run`; `due_ms` is the time of the next attempt in ms
    since 1970, None for a dead letter. `refused_forms` has an error for each form of the record
    that a broker has refused as too large in an earlier transaction; the three forms are the record
    with all failure headers, the record without the text of the error, and the record without
    failure headers. Raises the errors of the producer.
    """
    origin = origin_of(record)
    attempts += origin.attempts
    fault = refused_forms[-1] if refused_forms else None
    forms = (
        ("", forwarded_headers(origin, error, group_id, attempts, due_ms)),
        (
            " without the text of its error",
            forwarded_headers(origin, error, group_id, attempts, due_ms, with_message=False),
        ),
        (" without failure headers", origin.headers),
    )
    for what, headers in forms[len(refused_forms) :]:
        try:
            await producer.send(topic, record.value, key=record.key, headers=headers)
        except Exception as refused:
            if not isinstance(getattr(refused, "cause", None), RecordTooLargeError):
                raise
            fault = refused
            continue
        if what:
            log_failure(record, error, f"was too large for {topic}, and was sent{what}")
        return
    assert fault is not None, "the last attempt failed"
    raise fault
