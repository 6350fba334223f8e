"""Tests `judge`: it reports each fault of a group, and nothing in a history without faults."""

from __future__ import annotations

from tools.storm.java import lines_of
from tools.storm.sightings import Commit, Member, Verdict, judge


def member(name: str, *lines: str, harmed: tuple[float, ...] = (), strict: bool = True) -> Member:
    made = Member(name, is_strict=strict, harmed=list(harmed))
    for line in lines:
        made.take(line)
    return made


def reads(first: int, last: int, at: float, partition: int = 0) -> list[str]:
    """Returns a `read` line for each offset from `first` to `last` - 1, at intervals of 0.1 s."""
    return [
        f"read {at + number / 10:.3f} {partition} {offset}"
        for number, offset in enumerate(range(first, last))
    ]


def verdict(*members: Member, end: int, committed: int | None = None) -> Verdict:
    last = end if committed is None else committed
    return judge(members, [Commit(0, last, 100.0)], {0: end})


def test_an_orderly_handover_has_no_fault() -> None:
    first = member("a", "assigned 1.0 0", *reads(0, 5, 1.0), "revoked 2.0 0", "left 2.1")
    second = member("b", "assigned 2.0 0", *reads(5, 9, 2.5), "revoked 4.0 0", "left 4.1")
    found = verdict(first, second, end=9)
    assert found.is_right, found
    assert found.records == 9
    assert first.has_left


def test_a_record_that_no_member_read_is_lost() -> None:
    found = verdict(member("a", "assigned 1.0 0", *reads(0, 5, 1.0)), end=6)
    assert found.lost == 1
    assert "0:5 was seen by no member" in found.named


def test_a_record_read_twice_without_a_reason_is_doubled() -> None:
    first = member("a", "assigned 1.0 0", *reads(0, 5, 1.0), "revoked 2.0 0")
    second = member("b", "assigned 2.0 0", *reads(4, 9, 2.5))
    assert verdict(first, second, end=9).doubled == 1
    first.is_strict = False
    found = verdict(first, second, end=9)
    assert (found.doubled, found.by_peers) == (0, 1)
    assert found.is_right


def test_an_uncommitted_record_may_be_read_again_after_a_kill() -> None:
    first = member("a", "assigned 1.0 0", *reads(0, 5, 1.0), harmed=(2.0,))
    second = member("b", "assigned 8.0 0", *reads(3, 9, 8.5))
    commits = [Commit(0, 3, 1.45), Commit(0, 9, 100.0)]
    found = judge([first, second], commits, {0: 9})
    assert found.is_right, found
    assert found.again == 2
    commits.insert(1, Commit(0, 4, 1.6))
    assert judge([first, second], commits, {0: 9}).again_committed == 1


def test_a_stalled_member_may_read_records_that_others_read_meanwhile() -> None:
    stalled = member("a", "assigned 1.0 0", *reads(0, 3, 1.0), harmed=(1.25, 20.0))
    stalled.take("read 20.001 0 3")
    stalled.take("lost 20.1 0")
    other = member("b", "assigned 9.0 0", *reads(3, 9, 9.5))
    found = verdict(stalled, other, end=9)
    assert found.is_right, found
    assert found.again == 1


def test_two_owners_at_once_are_a_fault() -> None:
    first = member("a", "assigned 1.0 0", *reads(0, 5, 1.0), "revoked 3.0 0")
    second = member("b", "assigned 2.0 0", *reads(5, 9, 2.5))
    assert verdict(first, second, end=9).two_owners == 1
    first.harmed.append(1.9)
    assert verdict(first, second, end=9).two_owners == 0


def test_a_gap_within_one_assignment_is_out_of_order() -> None:
    one = member("a", "assigned 1.0 0", *reads(0, 3, 1.0), *reads(4, 6, 1.5))
    assert verdict(one, end=6).out_of_order == 1
    twice = member("a", "assigned 1.0 0", *reads(0, 3, 1.0), "revoked 2.0 0", "assigned 3.0 0")
    for line in reads(3, 6, 3.0):
        twice.take(line)
    assert verdict(twice, end=6).is_right


def test_a_commit_before_its_records_were_read_is_early() -> None:
    one = member("a", "assigned 1.0 0", *reads(0, 5, 1.0), "revoked 2.0 0")
    assert judge([one], [Commit(0, 4, 1.2), Commit(0, 5, 9.0)], {0: 5}).early_commits == 1
    assert judge([one], [Commit(0, 2, 1.2), Commit(0, 5, 9.0)], {0: 5}).early_commits == 0


def test_a_record_not_committed_at_the_end_is_uncommitted() -> None:
    one = member("a", "assigned 1.0 0", *reads(0, 5, 1.0), "revoked 2.0 0")
    assert verdict(one, end=5, committed=4).uncommitted == 1


def test_java_events_are_translated_to_lines() -> None:
    said = [
        "SLF4J: nothing of ours",
        '{"timestamp":1000,"name":"partitions_assigned","partitions":[{"topic":"t","partition":0}]}',
        (
            '{"timestamp":1500,"name":"records_consumed","count":2,"partitions":'
            '[{"topic":"t","partition":0,"count":2,"minOffset":7,"maxOffset":8}]}'
        ),
        '{"timestamp":1600,"name":"offsets_committed","offsets":[],"success":false,"error":"no"}',
        '{"timestamp":2000,"name":"shutdown_complete"}',
    ]
    lines = [ours for line in said for ours in lines_of(line)]
    assert lines == [
        "assigned 1.000000 0",
        "read 1.500000 0 7",
        "read 1.500000 0 8",
        "error 1.600000 no",
        "left 2.000000",
    ]


def left_behind(*lines: str, at: float) -> Member:
    made = member("a", *lines)
    made.left_behind.append(at)
    return made


def test_last_records_of_a_member_left_behind_may_be_read_again() -> None:
    first = left_behind("assigned 1.0 0", *reads(0, 5, 1.0), "lost 2.0 0", at=1.5)
    second = member("b", "assigned 8.0 0", *reads(2, 9, 8.5))
    commits = [Commit(0, 2, 1.25), Commit(0, 9, 100.0)]
    found = judge([first, second], commits, {0: 9})
    assert found.is_right, found
    assert (found.left_behind, found.again) == (3, 0)
    commits.insert(1, Commit(0, 4, 1.45))
    assert judge([first, second], commits, {0: 9}).again_committed == 2


def test_a_member_left_behind_may_leave_records_uncommitted() -> None:
    first = left_behind("assigned 1.0 0", *reads(0, 5, 1.0), "revoked 2.0 0", at=1.5)
    found = verdict(first, end=5, committed=3)
    assert found.is_right, found
    assert found.left_behind == 2


def test_a_member_left_behind_before_its_last_commit_had_announced_the_revocation() -> None:
    lines = ("assigned 1.0 0", *reads(0, 5, 1.0), "revoked 1.5 0")
    assert verdict(left_behind(*lines, at=1.55), end=5, committed=3).is_right
    others = left_behind(*lines, "assigned 1.53 1", at=1.55)
    assert verdict(others, end=5, committed=3).uncommitted == 1


def test_being_left_behind_excuses_no_other_fault() -> None:
    lines = ("assigned 1.0 0", *reads(0, 5, 1.0), "revoked 2.0 0")
    again = ("assigned 1.0 0", *reads(0, 5, 1.0), "revoked 2.0 0", "assigned 8.0 0")
    long_ago = ("assigned 1.0 0", *reads(0, 5, 1.0), "revoked 20.0 0")
    # the member has left before
    assert verdict(left_behind(*lines, at=3.5), end=5, committed=3).uncommitted == 1
    # the records belong to an earlier assignment
    assert verdict(left_behind(*again, at=9.0), end=5, committed=3).uncommitted == 1
    assert verdict(left_behind(*long_ago, at=19.0), end=5, committed=3).uncommitted == 1
    # more records are missing than were read
    assert verdict(left_behind(*lines, at=1.5), end=5, committed=6).uncommitted == 1
    second = member("b", "assigned 2.0 0", *reads(4, 9, 2.5), "revoked 4.0 0")
    found = verdict(left_behind(*lines, at=3.5), second, end=9)
    assert (found.doubled, found.left_behind) == (1, 0)
