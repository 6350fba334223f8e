"""Tests `judge` of share groups: it reports each violation, and nothing in a right history."""

from __future__ import annotations

import pytest

from tools.storm.share.sightings import (
    ACKNOWLEDGED,
    ARCHIVED,
    PASSED,
    ShareMember,
    ShareVerdict,
    Sighting,
    judge,
)

LIMIT = 3
LOCK_S = 2.0
AVAILABLE = 0


def member(name: str, *lines: str, harmed: tuple[float, ...] = ()) -> ShareMember:
    made = ShareMember(name, harmed=list(harmed))
    for line in lines:
        made.take(line)
    return made


def verdict(*members: ShareMember, **states: tuple[int, float]) -> ShareVerdict:
    """Judges one record at offset 0; `states` are its stored states."""
    numbers = {
        "available": AVAILABLE,
        "acknowledged": ACKNOWLEDGED,
        "archived": ARCHIVED,
        "passed": PASSED,
    }
    log = {(0, 0): {numbers[name]: Sighting(*its) for name, its in states.items()}}
    return judge(members, log, {0: 1}, LIMIT, LOCK_S)


ACCEPTED = ("got 1.0 0 0 1", "accepting 1.1 0 0", "accepted 1.3 0 0:1")


def test_accepted_record_has_no_violation() -> None:
    found = verdict(member("a", *ACCEPTED), acknowledged=(1, 1.2))
    assert found.is_right, found
    assert (found.records, found.accepted, found.deliveries) == (1, 1, 1)


def test_rejected_record_has_no_violation() -> None:
    found = verdict(member("a", "got 1.0 0 0 1", "rejecting 1.1 0 0"), archived=(1, 1.2))
    assert found.is_right, found
    assert found.rejected == 1


def test_record_may_be_archived_at_the_limit_before_a_member_sees_it() -> None:
    found = verdict(member("a"), archived=(LIMIT, 9.0))
    assert found.is_right, found
    assert (found.archived, found.archived_unseen) == (1, 1)


def test_start_offset_after_the_record_is_its_end() -> None:
    found = verdict(member("a", *ACCEPTED), passed=(0, 1.2))
    assert found.is_right, found
    assert found.accepted == 1
    assert verdict(member("a", "got 1.0 0 0 1"), passed=(0, 1.2)).unexplained == 1
    # The last delivery may be to a member that was killed before it logged the record.
    found = verdict(member("a", "got 1.0 0 0 1", f"got 2.0 0 0 {LIMIT - 1}"), passed=(0, 9.0))
    assert found.is_right, found
    assert found.archived == 1


def test_stopped_member_may_see_an_accepted_record_late() -> None:
    accepts = member("b", *ACCEPTED)
    late = "got 30.0 0 0 1"
    stopped = member("a", late, harmed=(1.0, 29.0))
    assert verdict(stopped, accepts, acknowledged=(1, 1.2)).is_right
    assert verdict(member("a", late), accepts, acknowledged=(1, 1.2)).after_acceptance == 1


def test_late_confirmation_of_an_ended_record_is_counted_and_no_violation() -> None:
    first = member("a", *ACCEPTED)
    second = member("b", "got 0.5 0 0 1", "accepting 2.0 0 0", "accepted 2.1 0 0:1")
    found = verdict(first, second, acknowledged=(1, 1.2))
    assert found.is_right, found
    assert found.late == 1


@pytest.mark.parametrize(
    ("lines", "states", "name"),
    [
        (("got 1.0 0 0 1",), {"available": (1, 1.2)}, "lost"),
        (("got 1.0 0 0 1",), {"acknowledged": (1, 1.2)}, "unexplained"),
        ((*ACCEPTED, "got 2.0 0 0 2"), {"acknowledged": (1, 1.2)}, "after_acceptance"),
        (ACCEPTED, {"acknowledged": (1, 1.2), "archived": (2, 1.4)}, "ended_twice"),
        (ACCEPTED, {"archived": (LIMIT, 1.4)}, "not_stored"),
        (("got 1.0 0 0 4",), {"archived": (4, 1.2)}, "above_limit"),
        (("got 9.0 0 0 3",), {"archived": (3, 1.2)}, "after_archive"),
        (("got 1.0 0 0 1",), {"archived": (1, 1.2)}, "early_archive"),
    ],
)
def test_violation_is_named(
    lines: tuple[str, ...], states: dict[str, tuple[int, float]], name: str
) -> None:
    found = verdict(member("a", *lines), **states)
    assert getattr(found, name) == 1, found
    assert not found.is_right
    assert found.named
