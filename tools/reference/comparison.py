"""Checks that kproto's codec and Kafka's classes read and write the same bytes and JSON.

Reports every difference. The tables DIFFERENT, RENAMED and ADDED_LATER list the differences that
the message definitions cause; no other differences are allowed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kproto.fuzz.judging import without_records
from kproto.messages.base import Message
from kproto.schema.definitions import union
from kproto.schema.layout import layout
from kproto.wire.errors import KprotoError

from .pairs import KprotoMessageVersion, ReleaseMessageVersion
from .process import Answer, JavaProgramOperation, KafkaJavaProgram, Outcome, question
from .samples import samples

__all__ = [
    "ADDED_LATER",
    "DIFFERENT",
    "RENAMED",
    "ComparisonResult",
    "Difference",
    "compare",
]

#: By (release, name, version): why the release's bytes differ from those of the newest release.
DIFFERENT: Final[Mapping[tuple[str, str, int], str]] = {
    ("3.9.2", "ReadShareGroupStateSummaryResponse", 0): (
        "unstable in 3.9; 4.0 put leaderEpoch in front of startOffset under the same version"
    ),
    ("3.9.2", "ShareGroupMetadataValue", 0): (
        "unstable in 3.9; 4.0 added metadataHash under the same version"
    ),
}

#: By (release, name): the JSON fields that were renamed later, each with its newest name and the
#: release's name.
RENAMED: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    ("3.9.2", "ListClientMetricsResourcesResponse"): {
        "configResources": "clientMetricsResources",
        "resourceName": "name",
    },
    ("3.9.2", "TxnOffsetCommitRequest"): {"generationIdOrMemberEpoch": "generationId"},
    ("3.9.2", "VoteRequest"): {
        "replicaEpoch": "candidateEpoch",
        "replicaId": "candidateId",
        "replicaDirectoryId": "candidateDirectoryId",
    },
}

#: By (release, name): tagged fields that later releases added without a new version. The release
#: keeps their bytes as unknown tagged fields, but its JSON lacks these fields.
ADDED_LATER: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    ("3.9.2", "ConsumerGroupCurrentMemberAssignmentValue"): frozenset({"assignmentEpochs"}),
    ("3.9.2", "ConsumerGroupMetadataValue"): frozenset({"metadataHash"}),
    ("3.9.2", "ConsumerGroupTargetAssignmentMetadataValue"): frozenset({"assignmentTimestamp"}),
    ("3.9.2", "OffsetCommitValue"): frozenset({"topicId"}),
    ("3.9.2", "RemoteLogSegmentMetadataRecord"): frozenset({"txnIndexEmpty"}),
    ("3.9.2", "RemoteLogSegmentMetadataSnapshotRecord"): frozenset({"txnIndexEmpty"}),
    ("3.9.2", "TransactionLogValue"): frozenset(
        {
            "previousProducerId",
            "nextProducerId",
            "nextProducerEpoch",
            "clientTransactionVersion",
        }
    ),
}


class Difference(NamedTuple):
    """A difference between kproto and Kafka's class; `check` is bytes, JSON or reading JSON."""

    pair: ReleaseMessageVersion
    check: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"{self.pair}, {self.check}: kproto {self.ours!r}, Kafka {self.theirs!r}"


class ComparisonResult(NamedTuple):
    """The result for a message version of a release: the number of samples, and the differences."""

    pair: ReleaseMessageVersion
    instances: int
    differences: tuple[Difference, ...]


class _Sample(NamedTuple):
    """A sample message, and the bytes and the JSON that kproto encodes."""

    message: Message
    data: bytes
    json: dict[str, Any]


SHOWN: Final = 300
"""The maximum number of characters of each side in the text of a difference."""


def compare(
    form: KprotoMessageVersion,
    pairs: Sequence[ReleaseMessageVersion],
    judges: Mapping[str, KafkaJavaProgram],
) -> list[ComparisonResult]:
    """Compares the samples of `form` with Kafka's class in each release of `pairs`.

    For each sample, Kafka's class must do three things: decode kproto's bytes and encode the same
    bytes; write the same JSON as kproto; and encode both its own and kproto's JSON to kproto's
    bytes.
    """
    version = form.version
    taken = [
        _Sample(message, data, message.to_json(version)) for data, message in samples(form).items()
    ]
    read: dict[str, str] = {}
    return [_Comparison(pair, judges[pair.release], read).run(taken) for pair in pairs]


class _Comparison:
    """Compares kproto's samples with the class of one release, for one message version.

    `read` caches the bytes that kproto encodes, by JSON text.
    """

    def __init__(
        self, pair: ReleaseMessageVersion, judge: KafkaJavaProgram, read: dict[str, str]
    ) -> None:
        self.pair = pair
        self.judge = judge
        self.read = read
        self.cls = pair.form.message
        self.version = pair.form.version
        self.shape = layout(union()[pair.form.name], self.version)
        self.renamed = RENAMED.get((pair.release, pair.name), {})
        self.names = {old: new for new, old in self.renamed.items()}
        self.unknown = ADDED_LATER.get((pair.release, pair.name), frozenset())
        self.differences: list[Difference] = []

    def run(self, taken: list[_Sample]) -> ComparisonResult:
        self.rewriting(taken)
        theirs = self.writing_json(taken)
        ours = [_dumps(self.as_release_names(sample.json)) for sample in taken]
        self.reading_json(list(dict.fromkeys([*ours, *theirs])))
        return ComparisonResult(self.pair, len(taken), tuple(self.differences))

    def rewriting(self, taken: list[_Sample]) -> None:
        answers = self.ask(JavaProgramOperation.REWRITE, [sample.data for sample in taken])
        for sample, answer in zip(taken, answers, strict=True):
            if answer != Answer(Outcome.DONE, sample.data, len(sample.data)):
                self.differ("bytes", sample.data.hex(), _shown(answer, hexadecimal=True))

    def writing_json(self, taken: list[_Sample]) -> list[str]:
        """Compares the JSON of Kafka's class with kproto's; returns the JSON of Kafka's class."""
        texts = []
        answers = self.ask(JavaProgramOperation.TO_JSON, [sample.data for sample in taken])
        for sample, answer in zip(taken, answers, strict=True):
            if not answer.accepted:
                self.differ("JSON", _dumps(sample.json), _shown(answer))
                continue
            theirs = answer.data.decode()
            texts.append(theirs)
            node = self.as_release_names(without_records(self.shape, sample.json))
            ours = _dumps(node)
            # The order of object members and the spelling of floats do not matter.
            if ours != theirs and _sorted(node) != _sorted(json.loads(theirs)):
                self.differ("JSON", ours, theirs)
        return texts

    def reading_json(self, texts: list[str]) -> None:
        """Checks that kproto and Kafka's class encode the same JSON to the same bytes."""
        contents = [text.encode() for text in texts]
        answers = self.ask(JavaProgramOperation.FROM_JSON, contents)
        for text, content, answer in zip(texts, contents, answers, strict=True):
            ours = self.read.get(text) or self.bytes_of_json(text)
            self.read[text] = ours
            if not answer.accepted or answer.data.hex() != ours or answer.taken != len(content):
                self.differ("reading JSON", ours, _shown(answer, hexadecimal=True))

    def bytes_of_json(self, text: str) -> str:
        """Returns kproto's bytes (hexadecimal) for the release's JSON, or the refusal's reason."""
        node = _rename(json.loads(text), self.names)
        try:
            return self.cls.from_json(node, self.version).encode(self.version).hex()
        except KprotoError as error:
            return f"refused: {error}"

    def ask(self, operation: JavaProgramOperation, contents: list[bytes]) -> Iterator[Answer]:
        name, version = self.pair.name, self.pair.version
        return self.judge.ask(question(operation, name, version, data) for data in contents)

    def differ(self, check: str, ours: str, theirs: str) -> None:
        self.differences.append(Difference(self.pair, check, ours[:SHOWN], theirs[:SHOWN]))

    def as_release_names(self, node: Any) -> Any:
        """Returns kproto's JSON with the field names of the release.

        Leaves out the fields that the release lacks.
        """
        if not self.renamed and not self.unknown:
            return node
        return _rename(node, self.renamed, self.unknown)


def _rename(node: Any, names: Mapping[str, str], left_out: frozenset[str] = frozenset()) -> Any:
    if isinstance(node, dict):
        return {
            names.get(key, key): _rename(value, names, left_out)
            for key, value in node.items()
            if key not in left_out
        }
    if isinstance(node, list):
        return [_rename(element, names, left_out) for element in node]
    return node


def _sorted(node: Any) -> str:
    return json.dumps(node, sort_keys=True)


_dumps: Final[Callable[[Any], str]] = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":")
).encode


def _shown(answer: Answer, *, hexadecimal: bool = False) -> str:
    if not answer.accepted:
        return f"{answer.outcome.name.lower()}: {answer.data.decode(errors='replace')}"
    return answer.data.hex() if hexadecimal else answer.data.decode(errors="replace")
