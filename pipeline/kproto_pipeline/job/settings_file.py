"""Parses a job's file, `pipeline.toml`, into `JobSettings`.

An error names the file and the key, but never contains the value of a secret. The error for an
unknown key also lists the known keys with similar names; if there are none, all known keys.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from kproto.schema.unknown_names import nearest

from ..columns import EVENT_SCHEMA
from ..spark.options.errors import OptionError
from ..spark.options.option_table import names_that_set
from .errors import SettingError
from .output_paths import paths_problem
from .settings import FILE_FORMATS, MODES, DeadLetterSettings, JobSettings, OutputSettings

__all__ = ["COMMAND_LINE", "parse_settings", "read_settings"]

#: Stands for the file name in errors about command-line arguments.
COMMAND_LINE: Final = "command line"

_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_DURATION: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(second|minute|hour|day|week)s?\s*")

#: The columns that an output can have.
COLUMNS: Final = (*EVENT_SCHEMA.names, "status")

#: The columns that Spark cannot write to CSV.
NO_CSV_COLUMNS: Final = ("extensions", "headers")


class _WrongValueError(Exception):
    """A value is wrong; the message describes the right values."""


def _parse_text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _WrongValueError("a text")
    return value


def _parse_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _WrongValueError("true or false")
    return value


def _parse_mode(value: object) -> str:
    if value not in MODES:
        raise _WrongValueError(f"{', '.join(MODES[:-1])} or {MODES[-1]}")
    return str(value)


def _parse_columns(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or any(name not in COLUMNS for name in value):
        raise _WrongValueError(f"a list of columns, each one of {', '.join(COLUMNS)}")
    if len(set(value)) != len(value):
        raise _WrongValueError("a list of columns, each of them once")
    return tuple(value)


def _parse_duration(value: object) -> float:
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise _WrongValueError('a duration such as "10 seconds", "1 day" or "0 seconds"')
    return float(found[1]) * _SECONDS[found[2]]


def _parse_count(value: object) -> int:
    if type(value) is not int or value < 1:
        raise _WrongValueError("a whole number of at least 1")
    return value


# By section and key: the field of the settings, and the parser of the value. "" contains the keys
# before the first section.
_KEYS: Final[Mapping[str, Mapping[str, tuple[str, Callable[[object], Any]]]]] = {
    "": {"mode": ("mode", _parse_mode)},
    "output": {
        "path": ("path", _parse_text),
        "format": ("format", _parse_text),
        "partition_by": ("partition_by", _parse_columns),
        "overwrite": ("overwrite", _parse_flag),
        "columns": ("columns", _parse_columns),
        "state": ("state", _parse_text),
        "merge_schema": ("merge_schema", _parse_flag),
    },
    "dead_letters": {"path": ("path", _parse_text), "format": ("format", _parse_text)},
    "duplicates": {"window": ("window_s", _parse_duration), "merge": ("merge", _parse_flag)},
    "trigger": {"interval": ("interval_s", _parse_duration)},
    "limits": {"max_records": ("max_records", _parse_count)},
}

# Sections whose keys are options of the data source, the writer or Spark; any key is accepted.
_OPTION_SECTIONS: Final = ("source", "output.options", "spark")

_SECTIONS: Final = (*(name for name in _KEYS if name), *_OPTION_SECTIONS)

#: By option of the data source (lower case): the modes that refuse it, because the job sets it.
_REFUSED_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "cloudevents": MODES,
    **{name.lower(): ("incremental", "stream") for name in names_that_set("ending_offsets")},
}


def read_settings(path: Path) -> dict[str, Any]:
    """Returns the content of a TOML file; `parse_settings` validates it.

    Raises:
        SettingError: the file cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} is no TOML: {error}") from None


def parse_settings(content: Mapping[str, Any], *, file: str) -> JobSettings:
    """Parses the content of a settings file; `file` is its name for errors.

    Raises:
        SettingError: a setting or an option is wrong; the message names the file and the key.
    """
    sections, options = _sections(content, file)
    fields: dict[str, dict[str, Any]] = {}
    for section, keys in sections.items():
        fields[section] = {}
        for key, value in keys.items():
            known = _KEYS[section]
            key_path = f"{section}.{key}" if section else key
            if key not in known:
                every = (*known, *_SECTIONS) if not section else tuple(known)
                raise SettingError(f"{file}: there is no key {key_path}{_hint(key, every)}")
            name, read = known[key]
            try:
                fields[section][name] = read(value)
            except _WrongValueError as wrong:
                raise SettingError(f"{file}: {key_path} is {value!r}; it must be {wrong}") from None
    top = fields[""]
    _check_source(options["source"], top.get("mode", MODES[0]), file)
    given = {
        key: value
        for name in ("duplicates", "trigger", "limits")
        for key, value in fields.get(name, {}).items()
    }
    try:
        settings = JobSettings(
            source=options["source"],
            output=OutputSettings(
                **{"path": None, **fields.get("output", {})}, options=options["output.options"]
            ),
            dead_letters=_dead_letters(fields.get("dead_letters"), file),
            spark=options["spark"],
            **top,
            **given,
        )
    except OptionError as error:
        raise SettingError(f"{file}: [source]: {error}") from None
    _check(settings, file)
    return settings


def _sections(
    content: Mapping[str, Any], file: str
) -> tuple[dict[str, Mapping[str, Any]], dict[str, dict[str, str]]]:
    """Returns the sections with the job's own keys, and the sections with options, by name."""
    sections: dict[str, Mapping[str, Any]] = {"": {}}
    options: dict[str, dict[str, str]] = {name: {} for name in _OPTION_SECTIONS}
    top: dict[str, Any] = {}
    for name, value in content.items():
        if name not in _KEYS and name not in _OPTION_SECTIONS:
            if isinstance(value, dict):
                raise SettingError(f"{file}: there is no section [{name}]{_hint(name, _SECTIONS)}")
            top[name] = value
        elif not isinstance(value, dict):
            raise SettingError(f"{file}: {name} is {value!r}; it must be a section, [{name}]")
        elif name in _OPTION_SECTIONS:
            options[name] = dict(_flattened(value, name, file))
        else:
            sections[name] = dict(value)
    output = sections.get("output", {})
    if "options" in output:
        given = output.pop("options")  # type: ignore[attr-defined]
        if not isinstance(given, dict):
            raise SettingError(f"{file}: output.options must be a section, [output.options]")
        options["output.options"] = dict(_flattened(given, "output.options", file))
    sections[""] = {**sections[""], **top}
    return sections, options


def _flattened(given: Mapping[str, Any], section: str, file: str, before: str = "") -> Any:
    """Yields the name and the text of each option.

    TOML parses a dotted name as nested tables; this function restores the dotted name. Replaces
    `{env = "NAME"}` by the value of the environment variable, so that no file needs to contain a
    secret.
    """
    for key, value in given.items():
        name = f"{before}{key}"
        if isinstance(value, dict) and set(value) == {"env"}:
            variable = value["env"]
            if not isinstance(variable, str) or variable not in os.environ:
                raise SettingError(
                    f"{file}: {section}.{name} is the environment variable {variable!r}, which is "
                    "not set"
                )
            yield name, os.environ[variable]
        elif isinstance(value, dict):
            yield from _flattened(value, section, file, f"{name}.")
        elif isinstance(value, bool):
            yield name, str(value).lower()
        elif isinstance(value, str | int | float):
            yield name, str(value)
        else:
            raise SettingError(
                f"{file}: {section}.{name} must be a text, a number, true or false, or "
                '{env = "NAME"}'
            )


def _dead_letters(fields: Mapping[str, Any] | None, file: str) -> DeadLetterSettings | None:
    if fields is None:
        return None
    if "path" not in fields:
        raise SettingError(
            f"{file}: dead_letters.path is missing; set it to the folder for dead letters"
        )
    return DeadLetterSettings(**fields)


def _check_source(source: Mapping[str, str], mode: str, file: str) -> None:
    """Raises SettingError for an option of the data source that the job sets itself."""
    for name in source:
        if mode in _REFUSED_IN.get(name.lower(), ()):
            raise SettingError(
                f"{file}: source.{name} is not allowed in the mode {mode}: the job sets it"
            )


def _check(settings: JobSettings, file: str) -> None:
    """Raises SettingError for settings that contradict each other."""
    for name in settings.spark:
        if not name.startswith("spark."):
            raise SettingError(f"{file}: spark.{name} must begin with spark., as Spark's conf does")
    problem = _output_problem(settings)
    if problem is not None:
        raise SettingError(f"{file}: {problem}")


def _output_problem(settings: JobSettings) -> str | None:
    output, letters = settings.output, settings.dead_letters
    if output.is_files and output.path is None:
        return "output.path is missing; name the folder for the events"
    if output.is_lake_table and output.path is None:
        return "output.path is missing; name the folder or the table for the events"
    if output.merge_schema and not output.is_lake_table:
        return (
            f"output.merge_schema is not allowed: the format {output.format} has no schema to grow"
        )
    if output.is_files and output.state is not None:
        return (
            f"output.state is not allowed: the format {output.format} stores the manifests in "
            "output.path"
        )
    if not output.is_files and settings.mode != "once" and output.state_path is None:
        return (
            f"output.state is missing; the format {output.format} cannot store the positions of "
            "the job: name a folder for them"
        )
    if output.overwrite and settings.mode != "once":
        return (
            f"output.overwrite is not allowed in the mode {settings.mode}: this mode appends events"
        )
    if settings.merge and (not output.is_lake_table or settings.mode == "once"):
        return "duplicates.merge needs a Delta or Iceberg table, and the mode incremental or stream"
    if settings.merge and output.merge_schema:
        return (
            "output.merge_schema is not allowed with duplicates.merge: add the columns in one run"
        )
    columns = set(output.columns or COLUMNS)
    missing = [name for name in output.partition_by if name not in columns]
    if missing:
        return f"output.partition_by names {missing[0]}, which output.columns leaves out"
    needed = {"status"} if (
        settings.mode == "once" or not (settings.window_s or settings.merge)
    ) else {
        "status", "source", "id", "timestamp"
    }  # fmt: skip
    if not needed <= columns:
        return (
            f"output.columns must have {', '.join(sorted(needed - columns))}: the job needs these "
            "columns to count rows and to find duplicates"
        )
    maps = [name for name in NO_CSV_COLUMNS if name in columns]
    if output.format.lower() == "csv" and maps:
        return (
            f"output.columns must leave out {', '.join(maps)}: CSV cannot have columns of several "
            "values"
        )
    # Dead letters have all columns.
    kinds = sorted(FILE_FORMATS - {"csv"})
    if letters is not None and letters.format.lower() not in kinds:
        return f"dead_letters.format is {letters.format!r}; it must be one of {', '.join(kinds)}"
    if letters is not None and not output.is_files:
        return "dead_letters.path needs an output of files; leave the section out"
    return paths_problem(settings, output.path, None if letters is None else letters.path)


def _hint(name: str, known: tuple[str, ...]) -> str:
    found = nearest(name, known)
    return f"; the nearest: {', '.join(found)}" if found else f"; allowed: {', '.join(known)}"
