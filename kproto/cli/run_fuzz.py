"""Runs `kproto fuzz` against a command or a broker, and prints the findings."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import messages
from ..fuzz import page, report
from ..fuzz.broker import BrokerFuzzSettings, fuzz_broker, replay_frames
from ..fuzz.broker_connection import ConnectionSecurity
from ..fuzz.case import Case, MessageVersion, all_message_versions
from ..fuzz.case_generation import KINDS
from ..fuzz.frame_generation import FRAME_KINDS
from ..fuzz.implementation import Implementation
from ..fuzz.judges import find_judge
from ..fuzz.judging import HARMLESS
from ..fuzz.known_findings import KnownFinding, parse_known, parse_spans
from ..fuzz.run import CasePlan, replay
from ..fuzz.run import run as run_plan
from ..fuzz.settings import FuzzSettings
from ..protocol.message_classes import definitions_in
from ..wire.errors import ConfigurationError
from .command_error import CommandError
from .read_properties import properties_from_options
from .selection import import_package, message_names

__all__ = ["run"]

_CASES = 10_000

#: The exit code after Ctrl-C, as in a shell. The report is written first.
_INTERRUPTED = 130


def run(options: argparse.Namespace) -> int:
    """Runs the cases, or replays a single case.

    Returns 1 for a finding that is not harmless or if the command was restarted too often, 130
    after Ctrl-C, else 0.
    """
    _check_option_combinations(options)
    _check_limits(options)
    if options.broker is not None:
        return _broker(options)
    if options.properties is not None or options.x_properties:
        raise ConfigurationError("--properties and -X are for a broker: they need --broker")
    timeout = options.timeout
    settings = FuzzSettings()
    if timeout is not None:
        settings = FuzzSettings(answer_timeout_s=timeout, late_s=timeout)
    package = messages if options.package is None else import_package(options.package)
    case = None
    if options.replay is not None:
        case = Case.from_json(_example_of(_json_of(options.replay)), package)
    plan = _plan(options, package)
    known = _known(options.known, package)
    right, by_kproto = find_judge(_judge(options), FuzzSettings())
    try:
        with Implementation(options.command, settings) as implementation:
            if case is not None:
                expected, actual, verdicts = replay(
                    case, implementation, right, by_kproto=by_kproto
                )
                _print(report.replay_text(case, expected, actual, verdicts, right.name))
                return 1 if any(each.fault not in HARMLESS for each in verdicts or ()) else 0
            with _progress() as progress:
                result = run_plan(
                    implementation,
                    right,
                    plan,
                    by_kproto=by_kproto,
                    known=known,
                    settings=settings,
                    progress=progress,
                )
    finally:
        right.close()
    if options.write_known is not None:
        _to_file(options.write_known, report.known_lines(result, known))
    node = report.to_json(result)
    _write(options, node, report.text(result))
    if result.interrupted:
        return _INTERRUPTED
    return 1 if result.harmful or result.restarts_exhausted else 0


#: Groups of options: for a command only (two groups), for a broker only, and for a run without
#: --replay only. In other cases, `kproto fuzz` refuses the options, because an ignored option would
#: mislead.
_COMMAND_OPTIONS: tuple[str, ...] = (
    "judge",
    "package",
    "messages",
    "versions",
    "timeout",
)
_KNOWN_OPTIONS: tuple[str, ...] = ("known", "write_known")
_BROKER_OPTIONS: tuple[str, ...] = ("rate", "not_loopback", "it_may_break")
_RUN_OPTIONS: tuple[str, ...] = (
    "messages",
    "versions",
    "kinds",
    "cases",
    "time",
    "no_shrink",
    *_KNOWN_OPTIONS,
    "json",
    "html",
)


def _check_option_combinations(options: argparse.Namespace) -> None:
    if options.broker is None:
        refused = [(_BROKER_OPTIONS, "needs --broker")]
    else:
        refused = [
            (_COMMAND_OPTIONS, "needs --command: a broker gets the versions that it advertises"),
            (_KNOWN_OPTIONS, "needs --command: a known finding has a message, and not frames"),
        ]
    if options.replay is not None:
        refused.append((_RUN_OPTIONS, "cannot be used with --replay"))
    for names, why in refused:
        for name in names:
            if getattr(options, name) not in (None, False):
                raise ConfigurationError(f"--{name.replace('_', '-')} {why}")


#: The limits that must be above 0, and their least values in words.
_LIMITS: dict[str, str] = {
    "cases": "1 or more",
    "time": "above 0 seconds",
    "timeout": "above 0 seconds",
    "rate": "above 0 frames a second",
}


def _check_limits(options: argparse.Namespace) -> None:
    for name, least in _LIMITS.items():
        value = getattr(options, name)
        if value is not None and not value > 0:
            raise ConfigurationError(f"--{name} is {value:g}: it must be {least}")


def _judge(options: argparse.Namespace) -> str:
    """Returns the name of the judge. With `--package` only kproto's codec can be the judge.

    Raises ConfigurationError for `--judge java` with `--package`.
    """
    if options.package is None:
        return options.judge or "auto"
    if options.judge == "java":
        raise ConfigurationError(
            "--judge java supports only Kafka's messages: omit it with --package, whose own codec "
            "is the judge"
        )
    return "kproto"


def _broker(options: argparse.Namespace) -> int:
    limits: dict[str, Any] = {} if options.rate is None else {"rate": options.rate}
    limits |= {} if options.cases is None else {"frames": options.cases}
    limits |= {} if options.time is None else {"time_s": options.time}
    settings = BrokerFuzzSettings(**limits)
    if options.not_loopback != options.it_may_break:
        raise ConfigurationError(
            "--not-loopback needs --it-may-break, and vice versa: broken frames may crash a broker"
        )
    allow_remote: bool = options.not_loopback
    given = properties_from_options(options).settings
    secured = ConnectionSecurity(given.get("tls", False), given.get("sasl"))
    if options.replay is not None:
        node = _example_of(_json_of(options.replay))
        outcomes = replay_frames(
            options.broker, node, settings=settings, allow_remote=allow_remote, secured=secured
        )
        _print("".join(f"{each.text}\n" for each in outcomes))
        return 1 if any(each.is_harmful for each in outcomes) else 0
    with _progress() as progress:
        result = fuzz_broker(
            options.broker,
            seed=options.seed,
            settings=settings,
            kinds=_kinds(options.kinds, FRAME_KINDS),
            allow_remote=allow_remote,
            shrink=not options.no_shrink,
            secured=secured,
            progress=progress,
        )
    _write(options, result.to_json(), report.broker_text(result.to_json()))
    if result.interrupted:
        return _INTERRUPTED
    return 1 if any(not finding.harmless for finding in result.findings) else 0


def _plan(options: argparse.Namespace, package: ModuleType) -> CasePlan:
    return CasePlan(
        _message_versions(options, package),
        seed=options.seed,
        cases=_CASES if options.cases is None else options.cases,
        time_s=options.time,
        kinds=_kinds(options.kinds, KINDS),
        shrink=not options.no_shrink,
    )


def _known(name: str | None, package: ModuleType) -> list[KnownFinding]:
    """Returns the known findings in a file; an empty list if `name` is None."""
    if name is None:
        return []
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CommandError(f"--known: cannot read {name}: {error}") from None
    try:
        return parse_known(text, package)
    except ConfigurationError as error:
        raise CommandError(f"--known: {name}: {error}") from None


def _kinds(text: str | None, known: dict[str, str]) -> tuple[str, ...]:
    if text is None:
        return tuple(known)
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    unknown = [kind for kind in names if kind not in known]
    if unknown or not names:
        raise ConfigurationError(f"--kinds is {text!r}: it must name some of {', '.join(known)}")
    return names


def _message_versions(
    options: argparse.Namespace, package: ModuleType
) -> tuple[MessageVersion, ...]:
    message_versions = all_message_versions(package)
    if options.messages is not None:
        names = message_names(options.messages, definitions_in(package))
        message_versions = tuple(
            message_version for message_version in message_versions if message_version.name in names
        )
    if options.versions is not None:
        try:
            versions = parse_spans(options.versions)
        except ConfigurationError as error:
            raise ConfigurationError(f"--{error}") from None
        message_versions = tuple(
            message_version
            for message_version in message_versions
            if message_version.version in versions
        )
    if not message_versions:
        raise ConfigurationError(
            "no selected message has these versions: omit --versions to test all"
        )
    return message_versions


def _example_of(node: Any) -> Any:
    """Returns the member `example` of `node`, if `node` is a finding of a report.

    If `node` has no member `example`, `node` itself is the example and is returned. Raises
    ConfigurationError if `node` is a whole report.
    """
    if isinstance(node, dict) and "findings" in node:
        raise ConfigurationError(
            "--replay: this is a whole report: pass one of its findings, or the example of one"
        )
    return node["example"] if isinstance(node, dict) and "example" in node else node


def _json_of(given: str) -> Any:
    """Returns the JSON of the argument `--replay`.

    The argument is the JSON itself, the path of a file, or `-` for standard input.
    """
    text = given
    if not given.lstrip().startswith(("{", "[")):
        try:
            text = sys.stdin.read() if given == "-" else Path(given).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise CommandError(f"--replay: cannot read {given}: {error}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"--replay: this is no JSON: {error}") from None


def _write(options: argparse.Namespace, node: dict[str, Any], text: str) -> None:
    if options.html is not None:
        _to_file(options.html, page.page(node))
    if options.json == "-":
        _print(json.dumps(node, indent=1) + "\n")
        return
    if options.json is not None:
        _to_file(options.json, json.dumps(node, indent=1) + "\n")
    _print(text)


def _to_file(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {name}: {error}") from None


def _print(text: str) -> None:
    """Prints `text`, and ignores a closed pipe."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise Python reports the closed pipe again when it flushes the output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None] | None]:
    """Yields a function that draws a progress bar on standard error.

    Yields None if standard error is not a terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return

    def show(done: int, total: int) -> None:
        filled = 40 * done // max(total, 1)
        bar = "#" * filled + "." * (40 - filled)
        sys.stderr.write(f"\r{bar} {done} of {total} cases")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
