"""Tests the progress line of a stage, on a terminal and in a log."""

from __future__ import annotations

import io

from kproto_pipeline.demo.progress import StageProgress


def test_a_stage_is_one_line_in_a_log() -> None:
    out = io.StringIO()
    with StageProgress("publish", 1_000, out=out) as stage:
        stage.advance_to(500)
    assert out.getvalue().startswith("publish: 1,000 events in 0.")
    assert out.getvalue().count("\n") == 1


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_stage_is_a_bar_on_a_terminal() -> None:
    out = Terminal()
    with StageProgress("publish", 1_000, out=out) as stage:
        stage._drawn = 0.0
        stage.advance_to(500)
    assert " 50%" in out.getvalue()
    assert out.getvalue().count("█") == 15
