"""Tests that the page gets the data of `kproto.schema`, in the structure that the page reads."""

from __future__ import annotations

from kproto.explorer import facts
from kproto.schema import study
from kproto.schema.definitions import union


def test_every_release_with_its_ranges() -> None:
    made = facts.releases()
    assert tuple(made) == study.releases()
    assert made["3.9.2"][1] == (0, 17)
    assert 22 not in made["0.8.2.0"]


def test_the_first_release_of_a_version_is_that_of_the_table() -> None:
    """The page shows the first release in `facts.releases()` whose range includes the version."""
    made = facts.releases()
    for key in study.api_names():
        for version in range(20):
            first = (
                release
                for release, ranges in made.items()
                if key in ranges and ranges[key][0] <= version <= ranges[key][1]
            )
            assert next(first, None) == study.added_in(key, version)


def test_the_glossary_answers_as_python_asks_it() -> None:
    known = facts.glossary()
    assert known["messages"]["FetchRequest"] == study.meaning("FetchRequest")
    assert known["fields"]["MaxWaitMs"] == study.meaning("FetchRequest", "MaxWaitMs")
    assert set(known["messages"]) >= set(union())  # the table has former names, too


def test_every_note_of_a_version() -> None:
    made = {(row["api"], row["version"]): row for row in facts.kips()}
    (kip,) = made["Fetch", 13]["kips"]
    assert kip["number"] == 516
    note = study.version_note("Fetch", 13)
    assert note is not None
    assert made["Fetch", 13] == note.to_json()


def test_former_names_are_those_of_the_releases() -> None:
    assert facts.former()["GroupCoordinator"] == "FindCoordinator"
    assert set(facts.former().values()) <= set(study.api_names().values())
