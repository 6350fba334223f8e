"""Tests the soak run: a short run, the verdict on a leak, and the plot."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from tools.soak import Outcome, Sample, soak, verdicts
from tools.soak.__main__ import table
from tools.soak.plot import svg


def samples(files_a_minute: float = 0.0, bytes_a_minute: float = 0.0) -> list[Sample]:
    return [
        Sample(
            at * 60.0,
            int(50e6 + at * bytes_a_minute),
            int(20 + at * files_a_minute),
            16 + at % 3,
            at * 100,
        )
        for at in range(30)
    ]


def test_constant_samples_are_flat() -> None:
    assert all(flat for _, _, flat in verdicts(samples()).values())


@pytest.mark.parametrize(
    ("leaking", "title"),
    [
        (samples(files_a_minute=1), "open files"),
        (samples(bytes_a_minute=1e6), "resident memory, MB"),
    ],
)
def test_a_leak_is_not_right(leaking: list[Sample], title: str) -> None:
    assert [name for name, (_, _, flat) in verdicts(leaking).items() if not flat] == [title]
    text, is_right = table(Outcome(1.0, 1, leaking))
    assert not is_right
    assert "NOT RIGHT" in text


def test_faults_are_printed() -> None:
    text, is_right = table(Outcome(1.0, 1, samples(), wrong=["0: 5 came where 4 was expected"]))
    assert not is_right
    assert "5 came where 4" in text


def test_the_plot_has_three_lines() -> None:
    root = ET.fromstring(svg(samples(), "a & b"))
    lines = [each for each in root.iter() if each.tag.endswith("polyline")]
    assert len(lines) == 3
    assert all(len(line.attrib["points"].split()) == 30 for line in lines)


@pytest.mark.slow
async def test_three_seconds_of_faults_lose_no_record() -> None:
    outcome = await soak(3.0, 3, lambda _: None)
    assert outcome.wrong == []
    assert outcome.acknowledged == outcome.seen > 0
    assert outcome.faults.total() > 0
    assert outcome.visits > 0
