"""Compares control records with bytes that Kafka's classes wrote.

The bytes come from Kafka 4.4.0: ControlRecordType.recordKey, EndTransactionMarker.serializeValue,
and MessageUtil.toByteBufferAccessor at the versions of ControlRecordUtils, as in
MemoryRecordsBuilder.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages import (
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from kproto.messages.leader_change_message import Voter as LeaderVoter
from kproto.messages.voters_record import Endpoint, KRaftVersionFeature, Voter
from kproto.records import Record, encode_batch, read_batches
from kproto.stored.control_records import (
    ControlRecord,
    ControlRecordType,
    decode_control_record,
    encode_control_record,
)
from kproto.testing.strategies import messages
from kproto.wire.errors import DecodeError, EncodeError
from kproto.wire.uuid import Uuid

VOTER = Voter(
    voter_id=1,
    voter_directory_id=Uuid((1).to_bytes(8, "big") + (2).to_bytes(8, "big")),
    endpoints=[Endpoint(name="CONTROLLER", host="localhost", port=9093)],
    kraft_version_feature=KRaftVersionFeature(max_supported_version=1),
)

GOLDEN = [
    (ControlRecordType.ABORT, EndTxnMarker(coordinator_epoch=7), "00000000", "000000000007"),
    (ControlRecordType.COMMIT, EndTxnMarker(coordinator_epoch=-1), "00000001", "0000ffffffff"),
    (
        ControlRecordType.LEADER_CHANGE,
        LeaderChangeMessage(
            leader_id=1,
            voters=[LeaderVoter(voter_id=1), LeaderVoter(voter_id=2)],
            granting_voters=[LeaderVoter(voter_id=1)],
        ),
        "00000002",
        "000000000001030000000100000000020002000000010000",
    ),
    (
        ControlRecordType.SNAPSHOT_HEADER,
        SnapshotHeaderRecord(last_contained_log_timestamp=1_700_000_000_000),
        "00000003",
        "00000000018bcfe5680000",
    ),
    (ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), "00000004", "000000"),
    (
        ControlRecordType.KRAFT_VERSION,
        KRaftVersionRecord(kraft_version=1),
        "00000005",
        "0000000100",
    ),
    (
        ControlRecordType.KRAFT_VOTERS,
        VotersRecord(voters=[VOTER]),
        "00000006",
        (
            "00000200000001000000000000000100000000000000020"
            "20b434f4e54524f4c4c45520a6c6f63616c686f737423850000000001000000"
        ),
    ),
]


@pytest.mark.parametrize(("kind", "message", "key", "value"), GOLDEN)
def test_control_records_have_kafkas_framing(
    kind: ControlRecordType, message: object, key: str, value: str
) -> None:
    record = decode_control_record(Record(key=bytes.fromhex(key), value=bytes.fromhex(value)))
    assert record == ControlRecord(kind, message, 0)  # type: ignore[arg-type]  # one of several
    assert isinstance(record.type, ControlRecordType)
    assert encode_control_record(record) == (bytes.fromhex(key), bytes.fromhex(value))


def test_every_type_has_golden_bytes() -> None:
    assert {kind for kind, *_ in GOLDEN} == set(ControlRecordType)


def test_a_control_batch_is_decoded() -> None:
    key, value = encode_control_record(ControlRecord(ControlRecordType.COMMIT, EndTxnMarker()))
    data = encode_batch([(key, value, (), 0)], is_control=True, is_transactional=True)
    (batch,) = read_batches(data)
    assert batch.is_control
    (record,) = batch.records()
    assert decode_control_record(record).type == ControlRecordType.COMMIT


def test_the_version_field_of_a_raft_message_selects_its_layout() -> None:
    message = LeaderChangeMessage(
        version=1, voters=[LeaderVoter(voter_id=1, voter_directory_id=Uuid(b"\1" * 16))]
    )
    key, value = encode_control_record(ControlRecord(ControlRecordType.LEADER_CHANGE, message))
    assert value == message.encode(1)
    record = decode_control_record(Record(key=key, value=value))
    assert (record.version, record.message) == (1, message)


def test_an_unknown_type_keeps_its_bytes() -> None:
    for number in (7, 32767, -1):
        for value in (None, b"", b"\x00\x09more"):
            key = b"\x00\x00" + number.to_bytes(2, "big", signed=True)
            record = decode_control_record(Record(key=key, value=value))
            assert record == ControlRecord(number, None, None, value)
            assert encode_control_record(record) == (key, value)


def test_higher_versions_are_read_as_the_highest_known_and_kept() -> None:
    key, value = b"\x00\x05\x00\x01more key", b"\x00\x03\x00\x00\x00\x07more value"
    record = decode_control_record(Record(key=key, value=value))
    assert record == ControlRecord(
        ControlRecordType.COMMIT,
        EndTxnMarker(coordinator_epoch=7),
        3,
        b"more value",
        5,
        b"more key",
    )
    assert encode_control_record(record) == (key, value)
    key, value = b"\x00\x00\x00\x05", b"\x00\x02\x00\x01\x00more"
    record = decode_control_record(Record(key=key, value=value))
    assert record.message == KRaftVersionRecord(version=2, kraft_version=1)
    assert encode_control_record(record) == (key, value)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"", "at offset 5: its key is null"),
        (b"\x00\x00\x00", b"", "its key has 3 bytes; a control record's has 4"),
        (b"\xff\xff\x00\x00", b"", "its key has version -1"),
        (b"\x00\x00\x00\x00\x00", b"", "its key has version 0 and 5 bytes"),
        (b"\x00\x00\x00\x00", None, "its value is null; that of type ABORT"),
        (b"\x00\x00\x00\x01", b"\x00", "its value has 1 bytes; that of type COMMIT"),
        (b"\x00\x00\x00\x01", b"\xff\xff\0\0\0\0", "the value of type COMMIT has version -1"),
        (b"\x00\x00\x00\x01", b"\x00\x00\0\0", "EndTxnMarker v0, field coordinator_epoch"),
        (b"\x00\x00\x00\x01", b"\x00\x00\0\0\0\0!", "EndTxnMarker v0.* follow the end"),
        (b"\x00\x00\x00\x05", b"\x00\x00\x00\x01", "KRaftVersionRecord v0"),
        (b"\x00\x00\x00\x05", b"\x00\x00\x00\x01\x00!", "KRaftVersionRecord v0.* follow the end"),
    ],
)
def test_a_broken_control_record_is_a_decode_error(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_control_record(Record(5, key=key, value=value))


def test_the_offset_of_an_error_starts_at_the_value() -> None:
    """The error's offset counts from the start of the record's value.

    The value of a marker is an int16 version and an int32 coordinator epoch. In this record, the
    epoch has only two bytes.
    """
    record = Record(5, key=b"\x00\x00\x00\x01", value=b"\x00\x00\x00\x00")
    with pytest.raises(DecodeError) as caught:
        decode_control_record(record)
    assert caught.value.offset == 2


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (
            ControlRecord(ControlRecordType.COMMIT),
            "a record of type COMMIT has EndTxnMarker, not NoneType",
        ),
        (
            ControlRecord(ControlRecordType.COMMIT, SnapshotFooterRecord()),
            "a record of type COMMIT has EndTxnMarker, not SnapshotFooterRecord",
        ),
        (ControlRecord(7, EndTxnMarker()), "control records of type 7 have no message"),
        (ControlRecord(40000), "the type of a control record is 40000"),
        (
            ControlRecord(ControlRecordType.ABORT, EndTxnMarker(), -1),
            "the version of a control record is -1",
        ),
        (
            ControlRecord(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), 1),
            "the record's version is 1, but the message's is 0",
        ),
        (
            ControlRecord(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=-2)),
            "the version of a control record is -2",
        ),
        (
            ControlRecord(ControlRecordType.ABORT, EndTxnMarker(coordinator_epoch=2**31)),
            "field coordinator_epoch",
        ),
    ],
)
def test_an_invalid_control_record_is_an_encode_error(record: ControlRecord, reason: str) -> None:
    with pytest.raises(EncodeError, match=reason):
        encode_control_record(record)


@given(st.binary(max_size=8), st.none() | st.binary(max_size=40))
def test_any_bytes_are_a_record_or_a_decode_error(key: bytes, value: bytes | None) -> None:
    for start in (b"", b"\x00\x00\x00"):
        try:
            record = decode_control_record(Record(key=start + key, value=value))
        except DecodeError:
            continue
        written, _ = encode_control_record(record)
        assert written == start + key


@given(st.sampled_from([0, 1]), messages(EndTxnMarker))
def test_markers_round_trip(kind: int, message: EndTxnMarker) -> None:
    key, value = encode_control_record(ControlRecord(kind, message))
    assert decode_control_record(Record(key=key, value=value)).message == message
