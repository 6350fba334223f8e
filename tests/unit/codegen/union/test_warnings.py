"""Tests the warnings of `kproto-codegen generate` about a union of releases."""

from __future__ import annotations

from typing import Any

import pytest
from kproto_codegen.errors import DefinitionError
from kproto_codegen.releases.release import Release
from kproto_codegen.union.release_union import unite
from kproto_codegen.union.reused_keys import check_requests
from kproto_codegen.union.warnings import union_warnings

from kproto.schema.specs import MessageSpec

from ..samples import field, spec


def sample(*fields: Any, **keys: Any) -> MessageSpec:
    """Returns a message of type data, by default `Sample` 0-2."""
    return spec(*fields, **{"type": "data", "name": "Sample", "apiKey": None, **keys})


def record(name: str, *fields: Any, **keys: Any) -> MessageSpec:
    """Returns a metadata record of version 0 with the api key 5."""
    same = {"type": "metadata", "apiKey": 5, "validVersions": "0", "flexibleVersions": "0+"}
    return spec(*fields, name=name, **{**same, **keys})


def releases(*messages: MessageSpec | tuple[MessageSpec, ...]) -> list[Release]:
    """Returns the releases v1, v2, … with one message each, or several in a tuple."""
    listed = [each if isinstance(each, tuple) else (each,) for each in messages]
    return [Release(f"v{number}", each) for number, each in enumerate(listed, 1)]


def warnings(*messages: MessageSpec | tuple[MessageSpec, ...]) -> list[str]:
    """Returns the texts of the warnings about the releases v1, v2, …."""
    made = releases(*messages)
    return [str(each) for each in union_warnings(unite(made), made)]


def tagged(name: str, kind: str) -> Any:
    return field(name, kind, None, taggedVersions="1+", tag=0)


# Changed bytes


def test_tag_that_returns_with_another_type_is_compared_with_the_release_that_had_it() -> None:
    without = sample(field("A"))
    first, last = (sample(field("A"), tagged("T", kind)) for kind in ("int64", "string"))
    assert warnings(first, without, last) == [
        "field T: type changed in v1, v2 of v3, compared with v1: was int64; is compact string"
    ]
    assert warnings(first, without, first) == []


def test_tag_that_returns_with_another_name_and_type_is_found() -> None:
    first = sample(field("A"), tagged("T", "int64"))
    last = sample(field("A"), tagged("U", "string"))
    (warning,) = warnings(first, sample(field("A")), sample(field("A")), last)
    assert "field U: type changed in v1, v2 of v4, compared with v1: was T, int64" in warning


def test_version_that_returns_with_another_type_is_found() -> None:
    first = sample(field("A"), validVersions="0-1")
    dropped = sample(field("A"), validVersions="1")
    last = sample(field("A", "string", versions="0"), field("A2", versions="1+"))
    found = warnings(first, dropped, last)
    assert [each for each in found if "v0 of v3, compared with v1" in each] == [
        "field A: type changed in v0 of v3, compared with v1: was int32; is string"
    ]


def test_message_that_returns_with_another_type_is_found() -> None:
    other = sample(name="Other")
    found = warnings((sample(field("A")), other), other, (sample(field("A", "int64")), other))
    assert found == [
        "field A: type changed in v0, v1, v2 of v3, compared with v1: was int32; is int64"
    ]


def test_change_between_neighbours_is_listed_once() -> None:
    changed = sample(field("A", "int64"))
    assert warnings(sample(field("A")), sample(field("A")), changed, changed) == [
        "field A: type changed in v0, v1, v2 of v3: was int32; is int64"
    ]
    later = sample(field("A", "string"))
    found = warnings(sample(field("A")), changed, later)
    assert [each.partition(" of ")[2] for each in found] == [
        "v2: was int32; is int64",
        "v3: was int64; is string",
        "v3: was int64; is compact string",
    ]


def test_changed_field_of_a_message_that_a_later_release_renames_is_found() -> None:
    first = record("OldRecord", field("A"))
    changed = record("OldRecord", field("A", "int64"))
    found = warnings(first, changed, record("NewRecord", field("A", "int64")))
    assert found == ["field A: type changed in v0 of v2: was int32; is int64"]


def test_releases_whose_versions_have_a_gap_between_them_are_compared() -> None:
    """The versions of v2 and v3 alone have a gap; v1 fills the gap."""
    assert (
        warnings(
            sample(field("A"), validVersions="0-3"),
            sample(field("A"), validVersions="0-1"),
            sample(field("A"), validVersions="3-4"),
        )
        == []
    )


def test_unstable_version_may_change_after_a_release_without_it() -> None:
    same = {"type": "request", "name": "SampleRequest", "apiKey": 900}
    first = sample(field("A"), validVersions="0", latestVersionUnstable=True, **same)
    none = sample(field("A"), validVersions="none", **same)
    last = sample(field("A", "int64"), validVersions="0", **same)
    only_0 = spec(name="SampleResponse", type="response", validVersions="0")
    assert warnings((first, only_0), (none, only_0), (last, only_0)) == []
    stable = sample(field("A"), validVersions="0", **same)
    assert len(warnings((stable, only_0), (none, only_0), (last, only_0))) == 1


# Reused api keys


def test_renamed_record_with_another_type_is_named() -> None:
    (warning,) = warnings(record("ARecord", field("A")), record("BRecord", field("A", "string")))
    assert warning == (
        "BRecord of v2 has the api key 5 of ARecord of v1, and v0 has other bytes: field A: "
        "type changed: was int32; is compact string; the package has a class for each of the two"
    )
    assert warnings(record("ARecord", field("A")), record("BRecord", field("A"))) == []


def test_renamed_record_is_compared_with_the_last_release_that_had_it() -> None:
    other = sample(name="Other")
    old, new = record("ARecord", field("A")), record("BRecord", field("A", "string"))
    (warning,) = warnings((old, other), (old, other), (other,), (new, other))
    assert warning.startswith("BRecord of v4 has the api key 5 of ARecord of v2, and v0 has other")


def test_renamed_record_without_a_common_version_is_named() -> None:
    new = record("BRecord", field("A"), validVersions="1")
    (warning,) = warnings(record("ARecord", field("A")), new)
    assert "of ARecord of v1, and they have no version in common" in warning


def test_renamed_response_with_another_type_is_named() -> None:
    def response(name: str, kind: str) -> MessageSpec:
        return spec(field("A", kind), name=name, type="response")

    old, new = response("AResponse", "int32"), response("BResponse", "int64")
    found = warnings((spec(), old), (spec(name="BRequest"), new))
    assert [each for each in found if each.startswith("BResponse of v2 has the api key 900")]


def test_renamed_request_with_another_type_is_refused() -> None:
    made = releases(spec(field("A", "uint16")), spec(field("A", "uint32"), name="NewRequest"))
    with pytest.raises(
        DefinitionError,
        match=r"NewRequest of v2 has the api key 900 of SampleRequest of v1, and v0 has other "
        r"bytes: field A: type changed: was uint16; is uint32; if the request was renamed",
    ):
        check_requests(unite(made), made)


def test_requests_of_one_release_are_no_reused_key() -> None:
    other = spec(field("A"), name="OtherRequest").with_module("other")
    made = releases((spec(), other))
    check_requests(unite(made), made)


# Versions of pairs, deprecated versions


def test_request_with_a_version_that_its_response_lacks_is_named() -> None:
    response = spec(name="SampleResponse", type="response", validVersions="0-1")
    (warning,) = warnings((spec(), response))
    assert warning == (
        "SampleRequest has the versions 0-2, but its response SampleResponse has 0-1; a version "
        "of only one of the two cannot be used"
    )
    assert warnings((spec(validVersions="0-1"), response)) == []


def test_deprecated_versions_beyond_the_valid_ones_are_named() -> None:
    assert warnings(sample(deprecatedVersions="1-7")) == [
        "Sample: deprecatedVersions 1-7 are not all among the valid versions 0-2"
    ]
    assert warnings(sample(deprecatedVersions="0-1")) == []
