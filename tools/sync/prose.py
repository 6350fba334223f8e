"""Changes docstrings of the asyncio client to those of the blocking client."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Final

__all__ = ["sync_docstring"]

#: Expressions in the docstrings, and their replacements, in this order. A space stands for any
#: white space, because sentences are wrapped.
_REPLACEMENTS: Final = (
    (r"`async with`", "`with`"),
    (r"`async with ", "`with "),
    (r"`async for`", "`for`"),
    (r"`async for ", "`for "),
    (r"`(ack = )?await delivery`", r"`\1delivery.result()`"),
    (r"`await (\w+[^`]*)`", r"`\1`"),
    (r"`aclose`", "`close`"),
    (
        r"\n\nRequests in flight raise BrokerConnectionError; later requests.*",
        "\n\nRequests in flight raise BrokerConnectionError; later requests, and retries, raise "
        "ConfigurationError. The close of the last open client of the process ends the thread of "
        "the event loop.",
    ),
    (
        r"An `anext` that is cancelled, as by `asyncio.wait_for`, loses no record and does not "
        r"end the iteration",
        "A call that Ctrl-C interrupts loses no record and does not end the iteration",
    ),
    (r"A cancelled call loses no record", "A call that Ctrl-C interrupts loses no record"),
    (r"are functions or coroutine functions", "are plain functions, which run in threads"),
    (r"If the call is cancelled,", "If Ctrl-C interrupts the call,"),
    (r"if the call is cancelled,", "if Ctrl-C interrupts the call,"),
    (r"If `close` is cancelled, once or repeatedly,", "If Ctrl-C interrupts `close`,"),
    (
        r"it (still )?(sends|commits|completes|aborts|does so)([^.]*?),? before it raises "
        r"CancelledError",
        r"the event loop's thread \1\2\3, while the call raises KeyboardInterrupt",
    ),
    (r"After the cancellation, callbacks", "After the interruption, callbacks"),
    (
        r"handlers of `run` have the sum of `cancelled_close_ms` and `error_flush_ms`, and are "
        r"then cancelled",
        "handlers of `run` have the sum of `cancelled_close_ms` and `error_flush_ms`; their "
        "threads are then left to themselves",
    ),
    (
        r"An attempt that still runs at the deadline is cancelled",
        "The call does not wait for an attempt that still runs at the deadline",
    ),
    (r"another task", "another thread"),
    (r"block raises an exception, or is cancelled,", "block raises an exception,"),
    (r"a cancellation, for example by a timeout,", "an interruption by Ctrl-C"),
    (r"after a cancellation or a timeout that", "after an interruption by Ctrl-C that"),
    (r"Cancelling this call during the wait", "An interruption of this call during the wait"),
    (r"if `run` is cancelled", "if Ctrl-C interrupts the call"),
    (
        r"then cancels these handlers",
        "then no longer waits for them: their next calls of the client raise CancelledError",
    ),
    (
        r"cancels them and releases their records",
        "then releases the records of the others and no longer waits for them: their next calls of "
        "the client raise CancelledError",
    ),
    (
        r"With `cancel_lost`, `run` cancels handlers of lost partitions at once",
        "With `cancel_lost`, `run` does not wait for handlers of lost partitions, and their next "
        "calls of the client raise CancelledError",
    ),
    (
        r"With order \"partition\" one record of",
        'Each call of `handler`, with that of `decode`, has a thread. With order "partition" one '
        "record of",
    ),
    (
        r"no caller (has awaited|awaits)",
        lambda match: "no caller has read" if match[1] == "has awaited" else "no caller reads",
    ),
)


def sync_docstring(docstring: str, indent: int) -> str:
    """Returns the docstring of a blocking method, wrapped for a line that begins at `indent`."""
    text = inspect.cleandoc(docstring)
    changed = text
    for pattern, replacement in _REPLACEMENTS:
        changed = re.sub(pattern.replace(" ", r"\s+"), replacement, changed, flags=re.DOTALL)
    paragraphs = [_wrapped(each, indent) for each in changed.split("\n\n")]
    return "\n\n".join(paragraphs)


def _wrapped(paragraph: str, indent: int) -> str:
    if "\n" not in paragraph and len(paragraph) <= 97 - indent:
        return paragraph
    return textwrap.fill(
        " ".join(paragraph.split()), 100 - indent, break_long_words=False, break_on_hyphens=False
    )
