"""Tests `judge`: it reports each fault in a history, and nothing in a history without faults."""

from __future__ import annotations

from kproto.client.processing.settings import Order
from tools.handling.judging import Attempt, Commit, DeadLetter, Member, Verdict, attempts_of, judge
from tools.handling.work import HandlerBehavior, fate_of, key_of

SEED = 1

#: The first record of partition 0 that becomes a dead letter.
DEAD = next(at for at in range(10_000) if fate_of(SEED, 0, at) is HandlerBehavior.DEAD)
ENDS = {0: DEAD + 1}

MEMBERS = {"a": Member("a"), "b": Member("b"), "killed": Member("killed", 1)}


def attempt_at(offset: int, at: int | None = None, member: str = "a", end: str = "e") -> Attempt:
    """Returns an attempt of 1 ms; it begins at `at` ms, by default at as many ms as `offset`."""
    at = offset if at is None else at
    ns = at * 1_000_000
    return Attempt(member, 0, offset, ns, at, ns + 999_999, at + 1, end)


HISTORY = [*(attempt_at(offset) for offset in range(DEAD)), attempt_at(DEAD, end="x")]
LETTER = DeadLetter(0, DEAD, DEAD + 2, True, f"ValueError: never: {(0, DEAD)}")
COMMITS = [Commit(0, 5, 5), Commit(0, DEAD + 1, DEAD + 2)]


def judged(
    attempts: list[Attempt],
    letters: list[DeadLetter] | None = None,
    commits: list[Commit] | None = None,
    order: Order = "partition",
) -> Verdict:
    return judge(
        order,
        SEED,
        ENDS,
        MEMBERS,
        attempts,
        [LETTER] if letters is None else letters,
        COMMITS if commits is None else commits,
    )


def test_a_correct_history_has_no_fault() -> None:
    its = judged(HISTORY)
    assert (its.wrong, its.again, its.dead_letters, its.commits) == ([], 0, 1, 2)
    assert its.records == DEAD + 1


def test_an_unhandled_record_is_a_fault() -> None:
    (wrong,) = judged(HISTORY[1:], commits=[]).wrong
    assert wrong.startswith("(0, 0) was not processed")


def test_a_missing_or_different_dead_letter_is_a_fault() -> None:
    assert judged(HISTORY, [], COMMITS[:1]).wrong
    assert judged(HISTORY, [LETTER._replace(is_as_it_came=False)]).wrong
    assert judged(HISTORY, [LETTER._replace(reason="OSError: once")]).wrong
    assert judged(HISTORY, [LETTER, LETTER._replace(offset=1)]).wrong


def test_a_commit_before_the_records_are_handled_is_a_fault() -> None:
    assert judged(HISTORY, commits=[Commit(0, 5, 4)]).wrong
    assert judged(HISTORY, [LETTER._replace(ms=DEAD + 3)]).wrong
    assert judged(HISTORY, commits=[Commit(0, DEAD + 9, DEAD + 9)]).wrong
    ahead = frozenset([7])
    assert judged(HISTORY, commits=[Commit(0, 5, 7, ahead)]).wrong
    assert judged(HISTORY, commits=[Commit(0, 5, 8, ahead)]).wrong == []


def test_a_repeated_attempt_needs_a_reason() -> None:
    again = attempt_at(7, 8_000)
    assert judged([*HISTORY, again], commits=[]).wrong
    before = [replaced(each, "killed") for each in HISTORY[:8]]
    its = judged([*before, *HISTORY[8:], attempt_at(7, 7_500, "b")], commits=[], order="none")
    assert (its.wrong, its.again) == ([], 1)
    # the record is committed
    assert judged([*before, *HISTORY[8:], attempt_at(7, 7_500, "b")], order="none").wrong
    commits = [Commit(0, 5, 20, frozenset([7]))]
    assert judged(
        [*before, *HISTORY[8:], attempt_at(7, 7_500, "b")], commits=commits, order="none"
    ).wrong


def replaced(attempt: Attempt, member: str) -> Attempt:
    return attempt._replace(member=member)


def test_attempts_out_of_order_are_a_fault() -> None:
    early = replace_at(3, attempt_at(3, 1))
    assert judged(early, commits=[]).wrong
    assert judged(early, commits=[], order="none").wrong == []
    side_by_side = replace_at(3, attempt_at(3)._replace(ended=HISTORY[4].begun + 1))
    assert judged(side_by_side, commits=[]).wrong


def replace_at(at: int, attempt: Attempt) -> list[Attempt]:
    return [*HISTORY[:at], attempt, *HISTORY[at + 1 :]]


def test_only_records_of_one_key_must_be_in_order() -> None:
    keys: dict[bytes, list[int]] = {}
    for offset in range(DEAD):
        key = key_of(SEED, 0, offset)
        if key is not None:
            keys.setdefault(key, []).append(offset)
    first, second = next(its for its in keys.values() if len(its) > 1)[:2]
    late = replace_at(
        first, attempt_at(first, second, "a")._replace(begun=HISTORY[second].begun + 1)
    )
    assert judged(late, commits=[], order="key").wrong
    alone = next(at for at in range(DEAD) if key_of(SEED, 0, at) is None)
    late = replace_at(alone, attempt_at(alone, alone + 100))
    assert judged(late, commits=[], order="key").wrong == []


def test_lines_of_a_killed_member_are_read() -> None:
    lines = ["b 10 1 0 5", "x 20 2 0 5", "b 30 3 0 5", "b 35 3 1 7", "e 40 4 0 5", "e 50 5"]
    assert [*attempts_of("a", lines)] == [
        Attempt("a", 0, 5, 10, 1, 20, 2, "x"),
        Attempt("a", 0, 5, 30, 3, 40, 4, "e"),
        Attempt("a", 1, 7, 35, 3, None, None, ""),
    ]
