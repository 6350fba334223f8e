"""The command `kproto-pipeline`: `run` a job, `check` its settings, or `compact` its output.

Merges the arguments into the content of the settings file; `settings_file` validates both. Exit
codes: 0 success, 1 an error (printed to stderr), 2 wrong arguments, 130 an interrupt.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from traceback import format_exc
from typing import TYPE_CHECKING, Any, Final, NoReturn

from kproto.version import __version__
from kproto.wire.errors import ConfigurationError, KprotoError

from .interrupts import INTERRUPTED, run_as_process, signals_as_interrupts
from .secrets import without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .settings import JobSettings

__all__ = ["main", "process", "settings_from"]

_NEEDED: Final = ("pyspark", "pyarrow", "numpy")

_EXAMPLE: Final = """\
A file, pipeline.toml:

    mode = "incremental"                    # once, incremental or stream

    [source]                                # options of format("kproto")
    kafka.bootstrap.servers = "localhost:9092"
    subscribe = "flights"

    [output]
    path = "lake/flights"

    [duplicates]
    window = "1 day"

The same without a file:

    kproto-pipeline run --mode incremental --output lake/flights \\
        --source kafka.bootstrap.servers=localhost:9092 --source subscribe=flights
"""

_RUN: Final = (
    "Write topics of CloudEvents to a lake. Mode once: all records, to a new output. Mode "
    "incremental: the records after those of the last run. Mode stream: an increment per interval, "
    "until stopped. After a kill, start the job again."
)

_COMPACT: Final = (
    "Join small increments of a Parquet output. Consecutive increments become one folder of up to "
    "--size MiB. Takes the settings of run, and must not run at the same time."
)


def process() -> NoReturn:
    """Runs the command, and exits the process with its exit code."""
    run_as_process(main)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns the exit code."""
    options = _parser().parse_args(arguments)
    settings: JobSettings | None = None
    with signals_as_interrupts():
        try:
            settings = settings_from(options)
            if options.command == "check":
                print(f"{options.file or 'settings'}: valid; mode {settings.mode}")
                return 0
            size = options.size * 2**20 if options.command == "compact" else None
            return _run(settings, size, verbose=options.verbose)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return INTERRUPTED
        except KprotoError as error:
            text = f"kproto-pipeline: error: {error}"
            if options.verbose:
                text = f"{getattr(error, 'details', '') or format_exc().rstrip()}\n{text}"
            print(text if settings is None else without_secrets(text, settings), file=sys.stderr)
            return 1


def _parser() -> argparse.ArgumentParser:
    described: dict[str, Any] = {
        "epilog": _EXAMPLE,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }
    parser = argparse.ArgumentParser(
        prog="kproto-pipeline",
        description="Write topics of CloudEvents to a lake, with Spark.",
        **described,
    )
    parser.add_argument("--version", action="version", version=f"kproto-pipeline {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, what in (
        ("run", _RUN),
        ("check", "Check settings; start nothing."),
        ("compact", _COMPACT),
    ):
        command = commands.add_parser(
            name, help=what.partition(".")[0], description=what, **described
        )
        command.add_argument("file", nargs="?", type=Path, help="settings, as TOML")
        if name == "compact":
            command.add_argument(
                "--size", metavar="MIB", type=int, default=128, help="default: %(default)s MiB"
            )
        command.add_argument(
            "--verbose",
            action="store_true",
            help="print the traceback of an error, and all that Spark logs",
        )
        command.add_argument("--mode", help="once, incremental or stream")
        command.add_argument("--output", metavar="PATH", help="output.path")
        command.add_argument(
            "--format", help="output.format: parquet, delta, iceberg, or any other format of Spark"
        )
        command.add_argument(
            "--overwrite",
            action="store_true",
            default=None,
            help="replace an existing output (once)",
        )
        for section, help_ in (
            ("source", "an option of the data source"),
            ("spark", "a property of Spark, by its full name"),
        ):
            command.add_argument(
                f"--{section}", metavar="NAME=VALUE", action="append", default=[], help=help_
            )
        command.add_argument(
            "--set",
            metavar="SECTION.KEY=VALUE",
            action="append",
            default=[],
            help="any other key of the file, its value as in TOML, or else as text: "
            'duplicates.window="1 day"; the value of output.options.KEY is always text',
        )
    return parser


def settings_from(options: argparse.Namespace) -> JobSettings:
    """Returns the settings from the command line; arguments override keys of the file.

    Raises:
        SettingError: a setting is wrong; the message names the file and the key.
        ConfigurationError: an argument is not NAME=VALUE, or a package is not installed.
    """
    check_installed()
    from .settings_file import COMMAND_LINE, parse_settings, read_settings

    content: dict[str, Any] = {} if options.file is None else read_settings(options.file)

    def put(section: str, key: str, value: object) -> None:
        if section:
            folder = content.setdefault(section, {})
            if isinstance(folder, dict):  # otherwise `parse_settings` raises
                folder[key] = value
        else:
            content[key] = value

    for section, key, value in (
        ("", "mode", options.mode),
        ("output", "path", options.output),
        ("output", "format", options.format),
        ("output", "overwrite", options.overwrite),
    ):
        if value is not None:
            put(section, key, value)
    for section in ("source", "spark"):
        for text in getattr(options, section):
            name, value = _pair(f"--{section}", text)
            put(section, name, value)
    for text in options.set:
        name, value = _pair("--set", text)
        option = name.removeprefix("output.options.")
        if option != name:  # names of options may have dots
            content.setdefault("output", {}).setdefault("options", {})[option] = value
        else:
            section, _, key = name.rpartition(".")
            put(section, key, _toml_value(value))
    return parse_settings(content, file=str(options.file or COMMAND_LINE))


def _pair(option: str, text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        # The message omits the text, which may be a secret whose name is missing.
        raise ConfigurationError(f"{option} must be NAME=VALUE")
    return name, value


def _toml_value(text: str) -> object:
    """Parses a TOML value; returns other text unchanged."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def check_installed() -> None:
    """Raises ConfigurationError if a package of the extra `kproto[spark]` is not installed."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"not installed: {', '.join(missing)}; the job needs the extra kproto[spark]"
        )


def _run(settings: JobSettings, size: int | None, *, verbose: bool) -> int:
    from .command_run import compact_command, run_command

    if not verbose:
        logging.getLogger().addFilter(_is_not_of_py4j)
    if size is not None:
        return compact_command(settings, size, verbose=verbose)
    return run_command(settings, verbose=verbose)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Returns False for a record that py4j logs for each connection to an ended Java process."""
    return "py4j" not in record.pathname
