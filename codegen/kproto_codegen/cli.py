"""Implements the command `kproto-codegen`: imports releases, generates code, compares releases.

Parses the arguments and prints the results; `releases`, `union` and `emit` do the work.

The exit code is:
- 0 for success;
- 1 if `import` or `generate` fails, for example because of an invalid definition;
- 1 if `check` finds a breaking change;
- 1 if the output cannot be written, or its reader closes the pipe;
- 2 for wrong arguments, and if `check` cannot read a release;
- 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import keyword
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kproto.schema.definition_folders import ORDER_FILE
from kproto.schema.definitions import FILE_NAME
from kproto.schema.release_table import TABLE_FILE
from kproto.version import __version__

from .emit.package import generate
from .emit.rendering import check_installed
from .errors import DefinitionError, MissingPackageError
from .releases.importer import ImportedRelease, read_release_at, read_releases
from .releases.release import Release, load_releases, write_release
from .union.changes import format_changes, release_changes
from .union.release_union import unite
from .union.reused_keys import check_requests
from .union.warnings import union_warnings

__all__ = ["main"]

#: The package of Kafka's messages inside kproto. It has relative imports, and its definitions file
#: is written to `kproto/schema`.
OWN_PACKAGE: Final = "kproto.messages"

#: The exit code after Ctrl-C, as in a shell.
_INTERRUPTED: Final = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command in `arguments` (default: `sys.argv[1:]`) and returns its exit code.

    Raises SystemExit for wrong arguments, and after `--help` and `--version`.
    """
    options = _parser().parse_args(arguments)
    try:
        code = int(options.run(options))
        sys.stdout.flush()  # raises the errors of standard output now, not at exit
    except KeyboardInterrupt:
        return _INTERRUPTED
    except DefinitionError as error:
        _complain([error])
        return 1
    except MissingPackageError as error:
        print(f"kproto-codegen: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        _discard_output()
        return 1
    except OSError as error:  # a write failed; a failed read is a DefinitionError
        if error.filename is None:
            _discard_output()
        target = error.filename or "to standard output"
        print(f"kproto-codegen: could not write {target}: {error.strerror}", file=sys.stderr)
        return 1
    return code


def _discard_output() -> None:
    """Discards what standard output still holds, so that Python does not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _counted(number: int, noun: str) -> str:
    """Returns a number and its noun, such as `1 file` and `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kproto-codegen", description="Python classes from Kafka's message definitions."
    )
    version = f"kproto-codegen {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    importing = commands.add_parser(
        "import",
        help="import the definitions of a Kafka release into a folder of facts",
        description="Reads the message definitions and error codes of a Kafka release and writes "
        "their facts to OUT/<release>/<module>/<Name>.json.",
    )
    importing.add_argument(
        "sources",
        nargs="+",
        type=Path,
        metavar="SOURCE",
        help="a jar, a folder of jars, a Kafka source tree, or a folder of definition files",
    )
    importing.add_argument("--out", type=Path, default=Path("schemas"), help="default: schemas")
    importing.add_argument("--release", help="default: the release that the source names")
    importing.add_argument(
        "--keep-going",
        action="store_true",
        help="write the readable definitions even if others could not be read",
    )
    importing.set_defaults(run=_import)

    generating = commands.add_parser(
        "generate",
        help="write a package of message classes",
        description="Writes one class for each message of the union of the releases in DIR.",
    )
    generating.add_argument(
        "--schemas", type=Path, default=Path("schemas"), metavar="DIR", help="default: schemas"
    )
    generating.add_argument(
        "--releases",
        type=lambda text: tuple(text.split(",")),
        default=(),
        metavar="NAME,…",
        help=f"the releases in DIR, the oldest first; default: those in DIR/{ORDER_FILE}, or in "
        "the order of the numbers in their names",
    )
    generating.add_argument(
        "--package",
        type=_package_name,
        metavar="NAME",
        help=f"the name by which Python imports the package; default, without --out: {OWN_PACKAGE}",
    )
    generating.add_argument(
        "--out", type=Path, metavar="DIR", help="default: the package's name as a path"
    )
    generating.add_argument(
        "--secret",
        action="append",
        default=[],
        type=_message_field,
        metavar="MESSAGE.FIELD",
        help="a field whose value is never printed; may be given more than once",
    )
    generating.set_defaults(run=_generate)

    checking = commands.add_parser(
        "check",
        help="find incompatible changes between two releases",
        description="Compares two releases by the rules of Kafka's guide to its message "
        "definitions. The exit code is 1 if a change breaks programs of the older release, "
        "and 2 if a release cannot be read.",
    )
    for name in ("old", "new"):
        checking.add_argument(
            name,
            type=Path,
            metavar=name.upper(),
            help="a release in a folder of facts (schemas/4.4.0), a jar, a folder of jars or a "
            "Kafka source tree",
        )
    checking.add_argument("--json", action="store_true", help="print JSON instead of a table")
    checking.set_defaults(run=_check)
    for command in commands.choices.values():
        command.add_argument("--version", action="version", version=version)
    return parser


def _package_name(text: str) -> str:
    """Returns `text` if it is a valid package name, else raises ArgumentTypeError."""
    parts = text.split(".")
    if not all(part.isascii() and part.isidentifier() for part in parts) or any(
        keyword.iskeyword(part) for part in parts
    ):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a Python package")
    return text


def _message_field(text: str) -> tuple[str, str]:
    message, dot, field = text.partition(".")
    if not (message and dot and field):
        raise argparse.ArgumentTypeError(f"{text!r} must be a message and a field, such as A.B")
    return message, field


def _import(options: argparse.Namespace) -> int:
    imported = read_releases(options.sources, release=options.release)
    for entry in imported.releases:
        _report(entry)
    for path in imported.empty:
        print(f"{path}: holds no message definitions")
    _complain(imported.unopened)
    failed = bool(imported.errors())
    if failed and not options.keep_going:
        print("nothing was written; --keep-going writes the readable definitions", file=sys.stderr)
        return 1
    for entry in imported.releases:
        changed = write_release(entry.release, options.out, own=entry.own)
        folder = options.out / entry.release.name
        print(f"{folder}: {'written' if changed else 'is up to date'}")
    return 1 if failed else 0


def _report(imported: ImportedRelease) -> None:
    """Prints how many definitions and error codes a release has, and its notes and errors."""
    release = imported.release
    print(f"Kafka {release.name}: {_counted(len(release.messages), 'definition')}")
    for module, messages in release.modules().items():
        print(f"  {module:<28}{len(messages):>5}")
    if release.error_codes:
        print(f"  {'error codes':<28}{len(release.error_codes):>5}")
    else:
        print("  no error codes: they come with kafka-clients, which is not among the sources")
    for note in imported.notes:
        print(f"  note: {note}")
    _complain(imported.errors)


def _complain(errors: Sequence[DefinitionError]) -> None:
    for error in errors:
        for entry in error.each():
            print(f"kproto-codegen: {entry}", file=sys.stderr)


def _generate(options: argparse.Namespace) -> int:
    check_installed()  # raises an error before the releases are read, which is slow
    if options.out is not None and options.package is None:
        print(
            f"kproto-codegen: --out {options.out} needs --package NAME, the name by which Python "
            "imports the package",
            file=sys.stderr,
        )
        return 2
    package: str = options.package or OWN_PACKAGE
    out: Path = options.out or Path(*package.split("."))
    own = package == OWN_PACKAGE
    releases = load_releases(options.schemas, options.releases)
    union = unite(releases)
    check_requests(union, releases)
    report = generate(
        union.messages,
        package=package,
        out=out,
        definitions=(out.parent / "schema" if own else out) / FILE_NAME,
        relative=own,
        error_codes=union.error_codes,
        error_table=out.parent / "protocol" / "error_table.py" if own else None,
        secrets=options.secret,
        origins=union.origins,
    )
    if own:
        _copy_table(options.schemas / TABLE_FILE, out.parent / "schema" / TABLE_FILE)
    print(
        f"{out}: {_counted(len(report.written), 'file')} written, {report.unchanged} unchanged, "
        f"{len(report.removed)} removed"
    )
    for warning in union_warnings(union, releases):
        print(f"kproto-codegen: warning: {warning}", file=sys.stderr)
    return 0


def _copy_table(source: Path, target: Path) -> None:
    """Copies the table of version ranges, if `source` exists and differs from `target`."""
    if source.is_file():
        text = source.read_text(encoding="utf-8")
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def _check(options: argparse.Namespace) -> int:
    read: list[Release] = []
    faults: list[DefinitionError] = []
    try:
        for path in dict.fromkeys([options.old, options.new]):
            try:
                read.append(read_release_at(path))
            except DefinitionError as error:
                faults.append(error)
        changes = [] if faults else release_changes(read[0], read[-1])
    except DefinitionError as error:
        faults.append(error)
    except OSError as error:
        print(f"kproto-codegen: could not read {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    if faults:
        _complain(faults)
        return 2
    breaking = sum(change.breaking for change in changes)
    if options.json:
        print(json.dumps([change.to_json() for change in changes], indent=2))
    else:
        if changes:
            print(format_changes(changes))
        compatible = _counted(len(changes) - breaking, "compatible change")
        print(f"{_counted(breaking, 'breaking change')}, {compatible}")
    return 1 if breaking else 0


if __name__ == "__main__":
    sys.exit(main())
