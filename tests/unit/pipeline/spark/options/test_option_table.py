"""Tests the table of options.

Each field of `ReadOptions` and `WriteOptions`, except `given` and `client`, has an option. Every
option is documented. The options of a query are parsed only once.
"""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import pytest
from kproto_pipeline.spark import data_source
from kproto_pipeline.spark.data_source import KprotoDataSource
from kproto_pipeline.spark.options.option_docs import markdown_table
from kproto_pipeline.spark.options.option_table import (
    OPTIONS,
    Option,
    OptionScope,
    ReadOptions,
    WriteOptions,
    parse_undecided_read,
)

DOCS = Path(__file__).parents[5] / "docs"
GIVEN = {"kafka.bootstrap.servers": "h:1", "subscribe": "t", "startingOffsets": "latest"}
READ = OptionScope.BATCH | OptionScope.STREAM


@pytest.mark.parametrize(
    ("options", "uses"), [(ReadOptions, READ), (WriteOptions, OptionScope.SINK)]
)
def test_every_field_is_set_by_an_option(options: type, uses: OptionScope) -> None:
    fields = {field.name for field in dataclasses.fields(options)} - {"given", "client"}
    assert fields == {each.field for each in OPTIONS if each.field and each.uses & uses}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: f"{option.name}-{option.uses}")
def test_every_option_is_documented(option: Option) -> None:
    pages = [page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")]
    assert any(f"`{option.name}`" in page for page in pages)
    assert f"| `{option.name}` | {option.type} |" in markdown_table(option.uses)


def test_names_are_unique_for_each_use() -> None:
    for use in OptionScope:
        names = [option.name for option in OPTIONS if use in option.uses]
        assert len(names) == len(set(names))


def test_text_is_parsed_once_from_schema_to_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """After calling `schema`, Spark pickles the data source and calls `streamReader` on the copy.

    The copy must not parse the options again.
    """
    parsed: list[ReadOptions] = []

    def counting(text: dict[str, str], driver_folder: str | None) -> ReadOptions:
        parsed.append(parse_undecided_read(text, driver_folder))
        return parsed[-1]

    monkeypatch.setattr(data_source, "parse_undecided_read", counting)
    source = KprotoDataSource(GIVEN)
    schema = source.schema()
    arrived = pickle.loads(pickle.dumps(source))
    arrived.streamReader(schema)
    assert len(parsed) == 1


def test_batch_refuses_latest_as_start_and_stream_accepts_it() -> None:
    options = parse_undecided_read(GIVEN)
    assert options.for_stream() == options
    with pytest.raises(ValueError, match="cannot be 'latest' in a batch read"):
        options.for_batch()
