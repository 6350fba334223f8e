"""Compares Kafka's decoders with kproto's on mutated encodings: both must accept, or both refuse.

`kproto.fuzz.mutations` creates the mutations, this module compares one after the other, and
`findings.fuzz` distributes the comparisons over processes. If kproto refuses bytes that Kafka's
class accepts, the lenient reader must find a documented deviation; otherwise Kafka and kproto
disagree. They also disagree if kproto accepts bytes that Kafka's class refuses, or if both accept
the bytes but read different numbers of bytes or write different bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple

from kproto.fuzz.lenient_reader import DeviationFromKafka, UnreadableMessageError, read_leniently
from kproto.fuzz.mutations import mutations
from kproto.schema.definitions import union
from kproto.schema.layout import layout
from kproto.testing.instances import instances, random_instances
from kproto.wire.errors import DecodeError

from .comparison import ADDED_LATER, DIFFERENT
from .pairs import KprotoMessageVersion, ReleaseMessageVersion, all_pairs
from .process import Answer, JavaProgramOperation, KafkaJavaProgram, Outcome, question

__all__ = ["Agreement", "Case", "Disagreement", "judge", "judged_pairs", "mutations", "seeds"]


class Agreement(Enum):
    """The ways in which kproto and Kafka's class agree on bytes; each value is a description."""

    SAME = "both read all bytes and write the same bytes"
    MORE = "both read a message and write the same bytes; the same bytes remain after the message"
    NEITHER = "both refuse the bytes"


class Disagreement(NamedTuple):
    """Bytes on which kproto and Kafka's class disagree without a documented reason."""

    pair: ReleaseMessageVersion
    data: bytes
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"{self.pair}, {self.data.hex()}: kproto {self.ours}; Kafka {self.theirs}"


Case = Agreement | DeviationFromKafka | Disagreement


def judged_pairs() -> tuple[ReleaseMessageVersion, ...]:
    """Returns the pairs of a release and a message version whose mutations are compared.

    Omits a pair if the newest release defines the message version differently. For example, an
    older release cannot check the bytes of a tagged field that was added later.
    """
    return tuple(
        pair
        for pair in all_pairs()
        if (pair.release, pair.name) not in ADDED_LATER
        and (pair.release, pair.name, pair.version) not in DIFFERENT
    )


SEED_BYTES: Final = 2000
"""In bytes. Longer encodings are slow to mutate, so they are used only if all are longer."""

RANDOM_SEEDS: Final = 12


def seeds(form: KprotoMessageVersion) -> list[bytes]:
    """Returns valid encodings of `form` to mutate, the shortest first.

    Leaves out encodings above `SEED_BYTES`; if all encodings are longer, returns only the shortest.
    """
    built = [*instances(form.message, form.version)]
    built.extend(islice(random_instances(form.message, form.version), RANDOM_SEEDS))
    found = sorted(
        {made.encode(form.version) for made in built}, key=lambda data: (len(data), data)
    )
    return [data for data in found if len(data) <= SEED_BYTES] or found[:1]


def judge(
    pair: ReleaseMessageVersion, mutated: Iterable[bytes], reference: KafkaJavaProgram
) -> Iterator[Case]:
    """Decodes the bytes in `mutated` with Kafka's class and with kproto.

    Yields for each an Agreement, a DeviationFromKafka (a documented difference) or a Disagreement.
    """
    asked: deque[bytes] = deque()

    def questions() -> Iterator[bytes]:
        for data in mutated:
            asked.append(data)
            yield question(JavaProgramOperation.REWRITE, pair.name, pair.version, data)

    for answer in reference.ask(questions()):
        yield _case(pair, asked.popleft(), answer)


def _case(pair: ReleaseMessageVersion, data: bytes, answer: Answer) -> Case:
    form = pair.form
    message = form.message
    try:
        read, end = message.decode_from(data, 0, form.version)
        written = read.encode(form.version)
    except DecodeError as error:
        if answer.outcome is Outcome.REFUSED:
            return Agreement.NEITHER
        return _deviation(form, data, answer.taken) or _disagreement(pair, data, str(error), answer)
    except Exception as error:  # noqa: BLE001 - a finding, which must include the bytes
        return _disagreement(pair, data, f"raised {error!r}", answer)
    if (Outcome.DONE, written, end) != answer:
        return _disagreement(pair, data, f"reads {end} bytes, writes {written.hex()}", answer)
    if end == len(data):
        return Agreement.SAME
    try:
        message.decode(data, form.version)
    except DecodeError:
        return Agreement.MORE
    return _disagreement(pair, data, f"decode takes all, of which {end} are read", answer)


def _deviation(form: KprotoMessageVersion, data: bytes, taken: int) -> DeviationFromKafka | None:
    """Returns the first documented deviation that the lenient reader finds in `data`, or None.

    `taken` is the number of bytes that Kafka's class read. Returns None if the lenient reader reads
    another number of bytes.
    """
    try:
        end, found = read_leniently(layout(union()[form.name], form.version), data)
    except UnreadableMessageError:
        return None
    return found[0] if found and end == taken else None


def _disagreement(
    pair: ReleaseMessageVersion, data: bytes, ours: str, answer: Answer
) -> Disagreement:
    shown = answer.data.hex() if answer.accepted else answer.data.decode(errors="replace")
    theirs = f"{answer.outcome.name.lower()} after {answer.taken} bytes: {shown}"
    return Disagreement(pair, data, ours, theirs)
