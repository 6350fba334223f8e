"""Tests packages of a user's own definitions.

Tests the example of the docs, files that are not overwritten, secret fields, and renamed fields.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kproto_codegen.cli import main
from kproto_codegen.emit.package import generate as make_package
from kproto_codegen.errors import DefinitionError

from kproto.wire.errors import DecodeError, EncodeError
from tests.support.pages import blocks, page_text

from ..packages import classes, generate, imported, try_every_version, write_definitions
from ..samples import ROOT, field, message, spec

PAGE = page_text("docs/how-to/definitions.md")
DEFINITIONS = dict(
    re.findall(r"^`(greetings/\w+\.json)`\n\n```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
)
(COMMAND,) = blocks(PAGE, "shell")
PROGRAM, _ = blocks(PAGE, "python")
PRINTED, _ = blocks(PAGE, "text")

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def hello(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the package folder that the command of docs/how-to/definitions.md generates."""
    assert len(DEFINITIONS) == 3
    for name, text in DEFINITIONS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(COMMAND)
    assert program == "kproto-codegen"
    assert main(arguments) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"greetings", "hello"}
    return tmp_path / "hello"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_page_runs_as_printed(hello: Path) -> None:
    done = run("-X", "dev", "-W", "error", "-c", PROGRAM, cwd=hello.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == PRINTED


def test_the_page_has_the_head_of_a_module(hello: Path) -> None:
    shown = re.findall(r"^    (#.*)$", PAGE, re.MULTILINE)
    made = (hello / "greet_request.py").read_text(encoding="utf-8").split("\n")
    assert len(shown) == 4
    assert made[2 : 2 + len(shown)] == shown
    assert made[2 + len(shown)] == ""


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_package_and_the_program_pass_mypy_strict(hello: Path) -> None:
    (hello.parent / "program.py").write_text(PROGRAM, encoding="utf-8")
    wrong = 'from hello import GreetRequest\nGreetRequest(tokn="a")\nGreetRequest(token=1)\n'
    (hello.parent / "wrong.py").write_text(wrong, encoding="utf-8")
    check = ("-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", ".mypy")
    done = run(*check, "hello", "program.py", "wrong.py", cwd=hello.parent)
    lines = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.partition(": error: ")[0] for line in lines] == ["wrong.py:2", "wrong.py:3"]


def test_two_rpcs_and_a_record(hello: Path) -> None:
    with imported(hello) as package:
        assert package.API_KEYS == {1000: ("GreetRequest", "GreetResponse")}
        for cls in classes(package):
            assert cls.__module__.startswith("hello.")
            assert try_every_version(cls) >= 5
        request = package.GreetRequest(token="very secret")
        assert "very secret" not in repr(request)
        assert "token=<hidden>" in repr(request)
        with pytest.raises(EncodeError, match=r"GreetRequest v1, field token: "):
            package.GreetRequest(token=1).encode(1)
        with pytest.raises(DecodeError, match=r"GreetRequest v0, field token, at byte 2: "):
            package.GreetRequest.decode(b"\0\5ab", 0)
        assert "Who is greeted." in (package.GreetRequest.__doc__ or "")


def test_a_package_does_not_import_kafkas_messages(hello: Path) -> None:
    program = (
        "import sys, hello\n"
        "hello.GreetRequest.decode(hello.GreetRequest().encode(1), 1)\n"
        "hello.GreetRequest().to_json(1)\n"
        "print(*[n for n in sys.modules if n.startswith('kproto.messages.')])"
    )
    done = run("-c", program, cwd=hello.parent)
    assert done.stdout.split() == ["kproto.messages.base"]


def test_modules_without_a_definition_are_removed(hello: Path, capsys: Captured) -> None:
    (hello / "notes.py").write_text("# by hand\n", encoding="utf-8")
    (hello / "picture.py").write_bytes(b"\xff\xfe")
    (hello.parent / "greetings" / "GreetingRecord.json").unlink()
    before = (hello / "greet_request.py").stat().st_mtime_ns
    capsys.readouterr()
    assert main(shlex.split(COMMAND)[1:]) == 0
    assert capsys.readouterr().out == "hello: 2 files written, 3 unchanged, 1 removed\n"
    assert {path.name for path in hello.iterdir() if path.is_file()} == {
        "__init__.py",
        "definitions.jsonl",
        "greet_request.py",
        "greet_response.py",
        "notes.py",
        "picture.py",
        "py.typed",
    }
    assert (hello / "greet_request.py").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "name", ["__init__.py", "greet_request.py", "definitions.jsonl", "greeting_record.py"]
)
@pytest.mark.parametrize("content", [b"# mine\n", b"\xff\xfe", None])
def test_files_of_the_user_are_not_overwritten(
    tmp_path: Path, capsys: Captured, name: str, content: bytes | None
) -> None:
    for file, text in DEFINITIONS.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    out = tmp_path / "mine"
    out.mkdir()
    target = out / name
    if content is None:  # the symbolic link leads out of the folder
        target.symlink_to(tmp_path / "elsewhere")
    else:
        target.write_bytes(content)
    assert generate(tmp_path / "greetings", out) == 1
    assert f"mine/{name}: was not made by the generator" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == [name]
    assert not (tmp_path / "elsewhere").exists()
    if content is not None:
        assert target.read_bytes() == content


@pytest.mark.parametrize("name", ["", ".", "a b", "a..b", "../up", "class", 'a"""', "1a", "é"])
def test_a_package_needs_a_valid_name(tmp_path: Path, capsys: Captured, name: str) -> None:
    arguments = ["generate", "--schemas", str(tmp_path), "--package", name]
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "is no name of a Python package" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["int32", "[]string", "[]int8", "bool", "Inner", "[]Inner"])
def test_only_text_and_bytes_can_be_secret(tmp_path: Path, capsys: Captured, kind: str) -> None:
    inner: dict[str, Any] = {"fields": [field("Y", "string")]} if kind.endswith("Inner") else {}
    schemas = write_definitions(tmp_path / "schemas", [message(field("X", kind, **inner))])
    assert generate(schemas, tmp_path / "own", "--secret", "SampleRequest.X") == 1
    assert f"is {kind}: only string and bytes can be hidden" in capsys.readouterr().err
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize(("secret", "code"), [("SampleRequest.B", 1), ("No.A", 1), ("A", 2)])
def test_a_secret_is_a_field(tmp_path: Path, capsys: Captured, secret: str, code: int) -> None:
    schemas = write_definitions(tmp_path / "schemas", [message(field("A", "string"))])
    out = tmp_path / "own"
    try:
        ended = generate(schemas, out, "--secret", secret)
    except SystemExit as error:
        ended = int(error.code or 0)
    assert ended == code
    assert secret.rpartition(".")[2] in capsys.readouterr().err
    assert not out.exists()


def test_an_unwritable_folder_is_an_error(tmp_path: Path, capsys: Captured) -> None:
    schemas = write_definitions(tmp_path / "schemas", [message()])
    (tmp_path / "file").write_text("")
    assert generate(schemas, tmp_path / "file" / "own") == 1
    assert "could not write" in capsys.readouterr().err


@pytest.mark.parametrize("link", [True, False])
def test_a_file_with_the_name_of_a_staged_file_is_not_overwritten(
    tmp_path: Path, capsys: Captured, link: bool
) -> None:
    schemas = write_definitions(tmp_path / "schemas", [message(field("A"))])
    out = tmp_path / "own"
    out.mkdir()
    mine = tmp_path / "mine" if link else out / ".sample_request.py.new"
    mine.write_text("mine\n")
    if link:
        (out / ".sample_request.py.new").symlink_to(mine)
    assert generate(schemas, out) == 1
    assert "own/.sample_request.py.new: was not made by the generator" in capsys.readouterr().err
    assert mine.read_text() == "mine\n"
    assert [path.name for path in out.iterdir()] == [".sample_request.py.new"]


def test_two_requests_with_one_api_key_are_refused(tmp_path: Path, capsys: Captured) -> None:
    schemas = tmp_path / "schemas"
    write_definitions(schemas / "one", [message(field("A"))])
    write_definitions(schemas / "two", [message(name="OtherRequest")])
    assert generate(schemas, tmp_path / "own") == 1
    assert capsys.readouterr().err == (
        "kproto-codegen: OtherRequest of the module two and SampleRequest of the module one have "
        "the api key 900; generate a package for each\n"
    )
    assert not (tmp_path / "own").exists()


def test_an_api_key_that_moved_to_another_request_is_refused(tmp_path: Path) -> None:
    """Two releases use an API key for different requests; a package can have only one of these."""
    first, then = (
        replace(spec(field("A"), name=name), module="one") for name in ("OldRequest", "NewRequest")
    )
    own = tmp_path / "own"
    with pytest.raises(
        DefinitionError, match=r"NewRequest and OldRequest of the module one .* 900"
    ):
        make_package([first, then], package="own", out=own, definitions=own / "definitions.jsonl")
    assert not own.exists()


def test_error_about_an_api_key_does_not_name_an_empty_module(tmp_path: Path) -> None:
    first, then = (
        replace(spec(field("A"), name=name), module="") for name in ("OldRequest", "NewRequest")
    )
    own = tmp_path / "own"
    with pytest.raises(DefinitionError, match=r"^NewRequest and OldRequest have the api key 900; "):
        make_package([first, then], package="own", out=own, definitions=own / "definitions.jsonl")
    other = replace(then, module="two")
    with pytest.raises(DefinitionError, match=r"^NewRequest of the module two and OldRequest of "):
        make_package([first, other], package="own", out=own, definitions=own / "definitions.jsonl")


def test_names_inside_texts_cause_no_imports(tmp_path: Path) -> None:
    words = field("Elements", "string", default="elements BOOLS index", tag=0, taggedVersions="1+")
    index = field("A", "IndexElements", tag=1, taggedVersions="1+", fields=[field("B", "string")])
    schemas = write_definitions(tmp_path / "schemas", [message(words, index)])
    assert generate(schemas, tmp_path / "named") == 0
    made = (tmp_path / "named" / "sample_request.py").read_text(encoding="utf-8")
    imports = made[: made.index("class ")]
    assert not re.search(r"\b(index|BOOLS)\b", imports)
    with imported(tmp_path / "named") as package:
        assert sum(map(try_every_version, classes(package))) > 10


def test_a_renamed_tagged_field_is_read_from_json_under_its_older_name(tmp_path: Path) -> None:
    def mood(name: str, *more: object) -> dict[str, object]:
        tagged = field(name, "string", "1+", taggedVersions="1+", tag=0)
        return message(field("Id"), tagged, *more)

    extra = field("Extra", "int8", "2+", taggedVersions="2+", tag=1)
    for release, source in (("1.0", mood("Mood")), ("1.1", mood("Humour", extra))):
        write_definitions(tmp_path / "releases" / release, [source])
    out = tmp_path / "moods"
    assert generate(tmp_path / "releases", out) == 0
    with imported(out) as package:
        cls: Any = package.SampleRequest
        old = {"id": 1, "mood": "merry"}
        read = cls.from_json(old, 2)
        assert read == cls(id=1, humour="merry")
        assert read.to_json(2) == {"id": 1, "humour": "merry"}
        with pytest.raises(DecodeError, match="field mood: a JSON string is wanted"):
            cls.from_json({"id": 1, "mood": 5}, 1)
