"""Tests parsing a job's settings file; errors name the file and the key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from kproto_pipeline.job.command import _parser, main, settings_from
from kproto_pipeline.job.errors import SettingError
from kproto_pipeline.job.settings import JobSettings
from kproto_pipeline.job.settings_file import parse_settings, read_settings

LEAST = """
[source]
kafka.bootstrap.servers = "h:1"
subscribe = "t"
[output]
path = "lake"
"""


def of(text: str) -> object:
    return parse_settings(tomllib.loads(text), file="p.toml")


def test_minimal_file_has_defaults() -> None:
    settings = parse_settings(tomllib.loads(LEAST), file="p.toml")
    assert settings.source == {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
    assert (settings.mode, settings.output.format) == ("once", "parquet")
    assert settings.output.partition_by == ("status", "type")
    assert (settings.window_s, settings.interval_s, settings.max_records) == (86400, 60, 10**7)


def test_every_key_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_SECRET", "s3cret")
    text = (
        'mode = "stream"\n'
        + LEAST
        + """
format = "orc"
partition_by = ["type"]
[output.options]
compression = "zstd"
maxRecordsPerFile = 10
[dead_letters]
path = "dead"
format = "json"
[duplicates]
window = "1.5 hours"
[trigger]
interval = "10 seconds"
[limits]
max_records = 7
[spark]
spark.master = "local[1]"
"spark.ui.enabled" = true
"""
    ).replace('subscribe = "t"', 'subscribe = "t"\nkafka.ssl.keystore.key = {env = "THE_SECRET"}')
    settings = parse_settings(
        tomllib.loads(text.replace("kafka.ssl.keystore.key", "kafka.client.rack")), file="p.toml"
    )
    assert settings.source["kafka.client.rack"] == "s3cret"
    assert settings.output.options == {"compression": "zstd", "maxRecordsPerFile": "10"}
    assert settings.dead_letters is not None
    assert settings.dead_letters.format == "json"
    assert (settings.window_s, settings.interval_s, settings.max_records) == (5400, 10, 7)
    assert settings.spark == {"spark.master": "local[1]", "spark.ui.enabled": "true"}
    assert "s3cret" not in repr(settings)


WRONG = [
    ('mod = "once"\n' + LEAST, "there is no key mod; the nearest: mode"),
    (LEAST + '[outputs]\nx = "y"', r"there is no section \[outputs\]; the nearest: output"),
    (LEAST + 'partition = ["type"]', "no key output.partition; the nearest: partition_by"),
    ('mode = "onse"\n' + LEAST, "mode is 'onse'; it must be once, incremental or stream"),
    (LEAST + 'partition_by = ["kind"]', "output.partition_by is .*; it must be a list of columns"),
    (LEAST + 'partition_by = ["type", "type"]', "each of them once"),
    (LEAST + "overwrite = 1", "output.overwrite is 1; it must be true or false"),
    (LEAST + "format = 7", "output.format is 7; it must be a text"),
    (LEAST + '[duplicates]\nwindow = "a week"', "duplicates.window is 'a week'; it must be a dura"),
    (LEAST + "[limits]\nmax_records = 0", "limits.max_records is 0; it must be a whole number"),
    (LEAST + "[limits]\nmax_records = true", "limits.max_records is True"),
    ('output = "x"', r"output is 'x'; it must be a section, \[output\]"),
    (LEAST + '[spark]\nmaster = "x"', "spark.master must begin with spark."),
    (LEAST + "[source.kafka.x]\ny = [1]", "source.kafka.x.y must be a text"),
    (LEAST + '[source.kafka.x]\ny = {env = "NOT_THERE"}', "variable 'NOT_THERE', which is not set"),
    (LEAST.replace("subscribe", "subscibe"), r"\[source\]: option subscibe is not known"),
    (LEAST.replace('subscribe = "t"', ""), r"\[source\]: exactly one of the options"),
    (LEAST.replace('subscribe = "t"', 'subscribe = "t"\ncloudEvents = true'), "is not allowed in"),
    (
        'mode = "stream"\n' + LEAST.replace("subscribe", 'endingOffsets = "latest"\nsubscribe'),
        "source.endingOffsets is not allowed in the mode stream",
    ),
    (LEAST.replace('path = "lake"', ""), "output.path is missing"),
    ('mode = "stream"\n' + LEAST + "overwrite = true", "overwrite is not allowed in the mode"),
    ('mode = "stream"\n' + LEAST + 'format = "jdbc"', "output.state is missing"),
    (
        'mode = "stream"\n' + LEAST.replace('"lake"', '"lake.events"') + 'format = "iceberg"',
        "output.state is missing",
    ),
    (LEAST.replace('path = "lake"', 'format = "delta"'), "output.path is missing"),
    (LEAST + "[duplicates]\nmerge = true", "duplicates.merge needs a Delta or Iceberg table"),
    (LEAST + 'format = "delta"\n[duplicates]\nmerge = true', "duplicates.merge needs a Delta or"),
    (
        'mode = "stream"\n'
        + LEAST
        + 'format = "delta"\nmerge_schema = true\n[duplicates]\nmerge = true',
        "output.merge_schema is not allowed with duplicates.merge",
    ),
    (LEAST + "merge_schema = true", "output.merge_schema is not allowed: the format parquet"),
    (LEAST + 'state = "s"', "output.state is not allowed: the format parquet"),
    (LEAST + 'columns = ["id"]', "partition_by names status, which output.columns leaves out"),
    (LEAST + 'columns = ["id"]\npartition_by = []', "output.columns must have status"),
    (
        'mode = "stream"\n' + LEAST + 'columns = ["status"]\npartition_by = []',
        "output.columns must have id, source, timestamp",
    ),
    (LEAST + 'format = "CSV"', "output.columns must leave out extensions, headers: CSV cannot"),
    (
        LEAST + 'format = "csv"\ncolumns = ["status", "type", "headers"]',
        "output.columns must leave out headers: CSV cannot",
    ),
    (LEAST + '[dead_letters]\npath = "d"\nformat = "csv"', "dead_letters.format is 'csv'; it must"),
    (LEAST + '[dead_letters]\nformat = "json"', "dead_letters.path is missing"),
    (LEAST + '[dead_letters]\npath = "d"\nformat = "delta"', "dead_letters.format is 'delta'"),
    (LEAST + '[dead_letters]\npath = "lake/"', "dead_letters.path equals output.path"),
    (LEAST + '[dead_letters]\npath = "./lake"', "dead_letters.path equals output.path"),
    *(
        (
            f'mode = "{mode}"\n' + LEAST + f'[dead_letters]\npath = "{path}"',
            r"dead_letters.path is in the folder of output.path, .*; name two folders side by side",
        )
        for mode, path in (
            ("incremental", "lake/letters"),
            ("stream", "./lake//a/_b"),
            ("incremental", "lake/increment=000001"),
            ("incremental", "lake/_kproto"),
            ("incremental", "lake/_kproto_joined/a"),
            ("once", "lake/_letters"),
        )
    ),
    (
        LEAST.replace('"lake"', '"letters/lake"') + '[dead_letters]\npath = "letters"',
        "output.path is in the folder of dead_letters.path",
    ),
    *(
        (LEAST.replace('"lake"', f"'a/{name}/lake'"), r"output.path is a/.*: Spark takes a path")
        for name in ("{a}", "{", "[a]", "a*", "?", "a\\b", "}", "]")
    ),
    (LEAST + 'format = "delta"\n[dead_letters]\npath = "d"', "needs an output of files"),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=range(len(WRONG)))
def test_wrong_value_is_named(text: str, words: str) -> None:
    with pytest.raises(SettingError, match=f"^p.toml: .*{words}"):
        of(text)


@pytest.mark.parametrize(
    ("output", "state"),
    [
        ('path = "a/b"', "a/b"),
        ('path = "b"\nformat = "delta"', "b/_kproto_state"),
        ('path = "a/b/"\nformat = "Iceberg"', "a/b/_kproto_state"),
        ('path = "a.b"\nformat = "iceberg"\nstate = "s"', "s"),
        ('path = "a/b"\nformat = "delta"\nstate = "s"', "s"),
    ],
)
def test_table_with_a_path_contains_its_state(output: str, state: str) -> None:
    settings = of(LEAST.replace('path = "lake"', output))
    assert isinstance(settings, JobSettings)
    assert settings.output.state_path == state


@pytest.mark.parametrize(
    ("output", "letters"),
    [
        ("lake", "lake/_letters"),
        ("lake", "lake/.a/letters"),
        ("lake", "lake-letters"),
        ("letters/_lake", "letters"),
        ("s3a://a/lake", "s3a://b/lake/letters"),
    ],
)
def test_dead_letters_may_be_beside_the_output_or_in_a_skipped_folder(
    output: str, letters: str
) -> None:
    text = f'mode = "stream"\n{LEAST}[dead_letters]\npath = "{letters}"'
    settings = of(text.replace('"lake"', f'"{output}"'))
    assert isinstance(settings, JobSettings)
    assert settings.dead_letters is not None


def test_path_of_a_table_may_be_a_pattern() -> None:
    of(LEAST.replace('"lake"', '"a*"') + 'format = "delta"')


def test_errors_contain_no_option_value() -> None:
    text = LEAST.replace("subscribe", 'kafka.sasl.jaas.config = ["s3cret"]\nsubscribe')
    with pytest.raises(SettingError) as caught:
        of(text)
    assert "s3cret" not in str(caught.value)


def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="No such file"):
        read_settings(tmp_path / "no.toml")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("a = ")
    with pytest.raises(SettingError, match="is no TOML"):
        read_settings(wrong)


@pytest.mark.parametrize("window", ["1.5 hours", '"1.5 hours"', "'1.5 hours'"])
def test_set_takes_toml_or_text(tmp_path: Path, window: str) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(LEAST)
    given = (
        f"duplicates.window={window}",
        'output.columns=["status", "type"]',
        "output.options.orc.bloom.filter.columns=id",
        'output.options.quote="',
        "output.options.sep='\t'",
        "output.options.header=true",
    )
    arguments = ["run", str(path), *(word for each in given for word in ("--set", each))]
    settings = settings_from(_parser().parse_args(arguments))
    assert settings.window_s == 5400
    assert settings.output.columns == ("status", "type")
    assert settings.output.options == {
        "orc.bloom.filter.columns": "id",
        "quote": '"',
        "sep": "'\t'",
        "header": "true",
    }


def test_check_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(LEAST)
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out.endswith("pipeline.toml: valid; mode once\n")
    assert main(["check", str(path), "--mode", "stream", "--set", "trigger.interval=7"]) == 1
    assert "trigger.interval is 7; it must be a duration" in capsys.readouterr().err
    assert main(["check", "--source", "subscribe=t", "--output", "x"]) == 1
    told = capsys.readouterr().err
    assert "command line: [source]: option kafka.bootstrap.servers is missing" in told
    assert main(["check", "--source", "s3cret"]) == 1
    assert capsys.readouterr().err == "kproto-pipeline: error: --source must be NAME=VALUE\n"
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    assert "pipeline.toml" in capsys.readouterr().out
