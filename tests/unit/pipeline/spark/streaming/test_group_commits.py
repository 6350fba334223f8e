"""Tests that the end of a query's last finished micro-batch is committed when the query ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kproto_pipeline.spark.streaming import group_commits
from kproto_pipeline.spark.streaming.group_commits import GroupCommitListener

OPTIONS = {
    "kafka.bootstrap.servers": "localhost:1",
    "subscribe": "t",
    "commitoffsets": "true",
    "kafka.group.id": "g",
}


class Leaf:
    """A leaf of a query's plan, as py4j shows it."""

    def __init__(self, name: str, source: str, options: dict[str, str]) -> None:
        self._name, self._source, self._options = name, source, options

    def isStreaming(self) -> bool:
        return self._name.startswith("Streaming")

    def nodeName(self) -> str:
        return self._name

    def sourceName(self) -> str:
        return self._source

    def extraOptions(self) -> dict[str, str]:
        return self._options


class Session:
    """A session whose only query has a plan with these leaves."""

    def __init__(self, *leaves: Leaf) -> None:
        self.leaves = leaves

    streams = streamingQuery = analyzedPlan = collectLeaves = property(lambda self: self)
    _jsq = streams

    def __call__(self) -> Session:
        return self

    def get(self, query: str) -> Session:
        assert query == "query"
        return self

    def size(self) -> int:
        return len(self.leaves)

    def apply(self, index: int) -> Leaf:
        return self.leaves[index]


def run(session: object, ends: list[list[str | None]]) -> None:
    """Calls the listener as Spark does for a query with these ends of micro-batches."""
    listener: Any = GroupCommitListener(session)  # type: ignore[arg-type]
    listener.onQueryStarted(SimpleNamespace(id="query", runId="run"))
    for each in ends:
        sources = [SimpleNamespace(endOffset=end) for end in each]
        progress = SimpleNamespace(runId="run", sources=sources)
        listener.onQueryProgress(SimpleNamespace(progress=progress))
    listener.onQueryTerminated(SimpleNamespace(id="query", runId="run", exception=None))
    assert not listener._sources
    assert not listener._ends


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def commit(options: Any, offsets: Any) -> bool:
        found.append((options.group_id, offsets))
        return True

    monkeypatch.setattr(group_commits, "commit_for_group", commit)
    return found


def test_end_of_the_last_finished_micro_batch_is_committed(commits: list[Any]) -> None:
    session = Session(
        Leaf("LocalRelation", "", {}),
        Leaf("StreamingRelationV2", "rate", {}),
        Leaf("StreamingRelationV2", "kproto", OPTIONS),
    )
    run(session, [["0", '{"t": {"0": 5}}'], ["1", '{"t": {"0": 9}}']])
    assert commits == [("g", {("t", 0): 9})]


@pytest.mark.parametrize("ends", [[], [[None]]], ids=["no micro-batch", "no end"])
def test_query_without_a_finished_micro_batch_commits_nothing(
    commits: list[Any], ends: list[list[str | None]]
) -> None:
    run(Session(Leaf("StreamingRelationV2", "kproto", OPTIONS)), ends)
    assert commits == []


def test_source_without_commit_offsets_commits_nothing(commits: list[Any]) -> None:
    others = {name: OPTIONS[name] for name in ("kafka.bootstrap.servers", "subscribe")}
    run(Session(Leaf("StreamingRelationV2", "kproto", others)), [['{"t": {"0": 5}}']])
    assert commits == []


def test_unknown_plan_is_logged(commits: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    run(object(), [['{"t": {"0": 5}}']])
    assert commits == []
    assert "may not be committed at its end" in caplog.text
