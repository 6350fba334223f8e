"""Reading ahead: what happens where not even the thread's loop can be made."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Coroutine
from typing import Any, NoReturn

import pytest
from kproto_pipeline.fetching import read_ahead
from kproto_pipeline.offsets import OffsetRange
from kproto_pipeline.options import parse_read_options


def test_a_loop_that_cannot_be_made_is_an_error_of_the_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when the process has no file descriptor left; whoever reads must not wait for ever."""

    def no_descriptor(coroutine: Coroutine[Any, Any, None]) -> NoReturn:
        coroutine.close()
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio, "run", no_descriptor)
    options = parse_read_options({"kafka.bootstrap.servers": "localhost:1", "subscribe": "flights"})
    with pytest.raises(OSError, match="Too many open files"):
        next(read_ahead(options, OffsetRange("flights", 0, 0, 1)))
