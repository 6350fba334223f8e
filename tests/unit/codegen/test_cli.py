"""Tests the command kproto-codegen: its output, its files and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kproto_codegen.cli import main
from kproto_codegen.emit import rendering
from kproto_codegen.releases.release import Release, load_release, load_releases, write_release
from kproto_codegen.union.release_union import unite
from kproto_codegen.union.warnings import union_warnings

from kproto import __version__

from .packages import write_definitions
from .releases.test_importer import SAMPLE, clients_jar, metadata_jar
from .releases.test_release import FACTS
from .releases.test_release import SAMPLE as SAMPLE_SPEC
from .samples import ROOT, SCHEMAS, data, field, message, write_jar

Captured = pytest.CaptureFixture[str]


def test_import_says_what_it_took(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "schemas"
    sources = [str(clients_jar(tmp_path)), str(metadata_jar(tmp_path))]
    assert main(["import", "--out", str(out), *sources]) == 0
    captured = capsys.readouterr()
    assert [line.split() for line in captured.out.splitlines()] == [
        ["Kafka", "9.1.0:", "2", "definitions"],
        ["clients", "1"],
        ["metadata", "1"],
        ["error", "codes", "6"],
        [f"{out}/9.1.0:", "written"],
    ]
    assert captured.err == ""
    assert len(load_release(out / "9.1.0").messages) == 2


def test_import_again_changes_nothing(tmp_path: Path, capsys: Captured) -> None:
    arguments = ["import", "--out", str(tmp_path / "schemas"), str(clients_jar(tmp_path))]
    assert main(arguments) == 0
    capsys.readouterr()
    assert main(arguments) == 0
    assert capsys.readouterr().out.endswith("9.1.0: is up to date\n")


def test_import_without_error_codes_says_so(tmp_path: Path, capsys: Captured) -> None:
    assert main(["import", "--out", str(tmp_path), str(metadata_jar(tmp_path))]) == 0
    assert "no error codes: they come with kafka-clients" in capsys.readouterr().out
    assert not (tmp_path / "9.1.0" / "errors.json").exists()


def broken_jar(folder: Path) -> Path:
    return write_jar(
        folder / "kafka-raft-9.1.0.jar",
        {"common/message/Bad.json": "{\n'x'}", "common/message/Sample.json": SAMPLE},
    )


def test_import_writes_nothing_when_something_cannot_be_read(
    tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "schemas"
    assert main(["import", "--out", str(out), str(broken_jar(tmp_path))]) == 1
    captured = capsys.readouterr()
    assert "kproto-codegen: kafka-raft-9.1.0.jar!common/message/Bad.json:2: " in captured.err
    assert "nothing was written; --keep-going" in captured.err
    assert not out.exists()


def test_import_can_keep_going(tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "schemas"
    assert main(["import", "--keep-going", "--out", str(out), str(broken_jar(tmp_path))]) == 1
    assert "Bad.json:2" in capsys.readouterr().err
    assert [path.name for path in out.rglob("*.json")] == ["SampleRequest.json"]


def test_import_into_a_place_that_cannot_be_written(tmp_path: Path, capsys: Captured) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["import", "--out", str(blocked / "schemas"), str(clients_jar(tmp_path))]) == 1
    assert "could not write" in capsys.readouterr().err


def test_import_says_what_held_nothing(tmp_path: Path, capsys: Captured) -> None:
    empty = write_jar(tmp_path / "kafka-server-9.1.0.jar", {"some.class": b""})
    assert main(["import", "--out", str(tmp_path), str(empty), str(clients_jar(tmp_path))]) == 0
    assert f"{empty}: holds no message definitions" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["import"], ["fly"], ["check", "one"], ["generate", "x"]]
)
def test_wrong_arguments_end_with_2(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: kproto-codegen" in capsys.readouterr().err


def test_generate_tells_a_faulty_definition(tmp_path: Path, capsys: Captured) -> None:
    schemas = tmp_path / "own"
    schemas.mkdir()
    (schemas / "Bad.json").write_text("{}")
    out = tmp_path / "package"
    arguments = ["generate", "--schemas", str(schemas), "--package", "own", "--out", str(out)]
    assert main(arguments) == 1
    assert "Bad.json:1: a message has no 'name'" in capsys.readouterr().err
    assert not out.exists()


def test_generate_needs_the_name_of_the_package_in_another_folder(
    tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "Sample.json").write_text(FACTS)
    out = tmp_path / "package"
    assert main(["generate", "--schemas", str(tmp_path / "own"), "--out", str(out)]) == 2
    assert f"--out {out} needs --package NAME" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


def test_a_package_has_py_typed(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "Sample.json").write_text(FACTS)
    out = tmp_path / "package"
    arguments = ["generate", "--schemas", str(tmp_path / "own"), "--package", "own"]
    assert main([*arguments, "--out", str(out)]) == 0
    assert (out / "py.typed").read_text() == ""
    (out / "py.typed").write_text("partial\n")  # the user's choice stays
    assert main([*arguments, "--out", str(out)]) == 0
    assert (out / "py.typed").read_text() == "partial\n"


def test_releases_are_given_in_order(tmp_path: Path, capsys: Captured) -> None:
    for name in ("ada", "bob"):
        write_release(Release(name, (SAMPLE_SPEC,)), tmp_path / "own")
    arguments = ["generate", "--schemas", str(tmp_path / "own"), "--package", "own"]
    arguments += ["--out", str(tmp_path / "package")]
    assert main(arguments) == 1
    assert "whose names tell no order" in capsys.readouterr().err
    assert main([*arguments, "--releases", "bob,ada"]) == 0
    text = (tmp_path / "package" / "sample_request.py").read_text()
    assert text.index("own/ada/") < text.index("own/bob/")  # the newest is first


@pytest.mark.parametrize("command", [[], ["import"], ["generate"], ["check"]])
def test_the_version(command: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"kproto-codegen {__version__}\n"


def test_generate_without_its_extra_names_it(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)  # import jinja2 now fails
    rendering._environment.cache_clear()
    schemas = write_definitions(tmp_path / "own", [data(validVersions="0")])
    out = tmp_path / "package"
    arguments = ["generate", "--schemas", str(schemas), "--package", "own", "--out", str(out)]
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "needs jinja2" in said
    assert "the extra kproto[codegen], from a checkout: pip install '.[codegen]'" in said
    assert not out.exists()
    monkeypatch.delitem(sys.modules, "jinja2")
    rendering._environment.cache_clear()
    assert main(arguments) == 0


def releases_with_faults(folder: Path) -> Path:
    """Writes two releases to `folder`, each file with faults; returns `folder`."""
    both = [message(field("A", "Int8"), field("B", zeroCopy=True)), {"name": "X", "odd": 1}]
    write_definitions(folder / "1.0", both)
    write_definitions(folder / "1.1", [data(field("A", "string", tag="x"), field("B", bad=1))])
    (folder / "1.1" / "errors.json").write_text("{}")
    return folder


def test_generate_tells_every_fault_of_every_file(tmp_path: Path, capsys: Captured) -> None:
    schemas = releases_with_faults(tmp_path / "schemas")
    assert main(["generate", "--schemas", str(schemas), "--package", "x"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith(f"kproto-codegen: {schemas}/") for line in lines), lines
    told = [line.partition(f"{schemas}/")[2] for line in lines]
    assert [(line.partition(":")[0], line.rpartition(": ")[2][:22]) for line in told] == [
        ("1.0/0.json", "'Int8' is no type; int"),
        ("1.0/0.json", "zeroCopy is for bytes,"),
        ("1.0/1.json", "a message has no 'type"),
        ("1.0/1.json", "a message has no 'vali"),
        ("1.0/1.json", "'odd' is no key of a m"),
        ("1.1/0.json", "tag should be a whole "),
        ("1.1/0.json", "'bad' is no key of a f"),
        ("1.1/errors.json", "should hold an array o"),
    ]


def test_check_tells_the_faults_of_both_releases(tmp_path: Path, capsys: Captured) -> None:
    schemas = releases_with_faults(tmp_path)
    assert main(["check", str(schemas / "1.0"), str(schemas / "1.1")]) == 2
    said = capsys.readouterr().err
    assert said.count("1.0/") == 5
    assert said.count("1.1/") == 3
    assert main(["check", str(schemas / "1.0"), str(schemas / "1.0")]) == 2
    assert capsys.readouterr().err.count("1.0/") == 5


def test_check_wants_one_of_a_folder_of_releases(tmp_path: Path, capsys: Captured) -> None:
    schemas = tmp_path / "schemas"
    for name in ("3.9.2", "3.10.0"):
        write_definitions(schemas / name / "clients", [message()])
    for arguments in ([schemas, schemas / "3.9.2"], [schemas / "3.9.2", schemas]):
        assert main(["check", *map(str, arguments)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err == (
            f"kproto-codegen: {schemas}: is a folder of releases; name one of them: "
            f"{schemas}/3.9.2, {schemas}/3.10.0\n"
        )
    assert main(["check", str(schemas / "3.9.2"), str(schemas / "3.10.0")]) == 0


def test_the_command_runs_as_a_module(tmp_path: Path) -> None:
    jar = clients_jar(tmp_path)
    run = subprocess.run(
        [sys.executable, "-m", "kproto_codegen.cli", "import", "--out", str(tmp_path), str(jar)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'codegen'}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "Kafka 9.1.0: 1 definition\n" in run.stdout


def test_import_keeps_the_sentences_of_a_folder_of_definitions(
    tmp_path: Path, capsys: Captured
) -> None:
    """Those of Kafka's jars are left out, because they are Kafka's text."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "Sample.json").write_text(SAMPLE)
    out = tmp_path / "schemas"
    arguments = ["import", "--release", "v1", "--out", str(out), str(tmp_path / "own")]
    assert main(arguments) == 0
    assert '"about": "What it is."' in (out / "v1" / "own" / "SampleRequest.json").read_text()
    assert main(["import", "--out", str(out), str(clients_jar(tmp_path))]) == 0
    assert "about" not in (out / "9.1.0" / "clients" / "SampleRequest.json").read_text()


def test_kafkas_glossary_is_for_kafkas_messages_alone(tmp_path: Path) -> None:
    own = message(field("Owner"), field("Port", "int32"), field("ErrorCode", "int16"))
    schemas = write_definitions(tmp_path / "own", [own | {"name": "ShopRequest"}])
    out = tmp_path / "shop"
    arguments = ["generate", "--schemas", str(schemas), "--package", "shop", "--out", str(out)]
    assert main(arguments) == 0
    text = (out / "shop_request.py").read_text()
    assert [line.strip() for line in text.splitlines() if line.strip() in ("owner:", "port:")] == [
        "owner:",
        "port:",
    ]


def test_import_drops_the_sentences_of_kafkas_own_files(tmp_path: Path) -> None:
    """A file is Kafka's own if it has Kafka's licence, or if the glossary has its message."""
    folder = tmp_path / "mixed"
    about = {"about": "A sentence."}
    licence = "// Licensed to the Apache Software Foundation (ASF) under one or more\n"
    texts = {
        "NewRequest": licence + json.dumps(message(field("A", **about), name="NewRequest")),
        "OwnRequest": json.dumps(message(field("A", **about), name="OwnRequest", apiKey=901)),
        "FetchRequest": json.dumps(message(field("A", **about), name="FetchRequest", apiKey=1)),
    }
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text)
    assert main(["import", "--release", "v1", "--out", str(tmp_path / "out"), str(folder)]) == 0
    kept = {
        path.stem: "A sentence." in path.read_text() for path in (tmp_path / "out").rglob("*.json")
    }
    assert kept == {"NewRequest": False, "OwnRequest": True, "FetchRequest": False}


def test_import_keeps_going_without_half_a_pair(tmp_path: Path, capsys: Captured) -> None:
    folder, out = tmp_path / "own", tmp_path / "out"
    folder.mkdir()
    for number, name in enumerate(("Good", "Bad", "Worse")):
        for kind in ("request", "response"):
            own = message(field("A"), name=name + kind.capitalize(), type=kind, apiKey=900 + number)
            text = json.dumps(own)
            if (name, kind) == ("Bad", "request"):
                text = text.replace("int32", "int33")
            if (name, kind) == ("Worse", "response"):
                text = text[:-1]
            (folder / f"{own['name']}.json").write_text(text)
    command = ["import", "--keep-going", "--release", "v1", "--out", str(out), str(folder)]
    assert main(command) == 1
    assert {path.stem for path in out.rglob("*.json")} == {"GoodRequest", "GoodResponse"}
    printed = capsys.readouterr().out
    assert "BadResponse is left out, because its request could not be read" in printed
    assert "WorseRequest is left out, because its response could not be read" in printed


def test_generate_warns_of_probable_mistakes(tmp_path: Path, capsys: Captured) -> None:
    keyed = field("Items", "[]Item", fields=[field("Id", mapKey=True)])
    plain = field("Items", "[]Item", fields=[field("Id")])
    write_definitions(tmp_path / "own" / "v1", [data(keyed, name="Stock")])
    newest = [
        data(plain, name="Stock"),
        message(field("Late", versions="9+"), name="LonelyRequest"),
    ]
    write_definitions(tmp_path / "own" / "v2", newest)
    schemas, out = str(tmp_path / "own"), str(tmp_path / "shop")
    assert main(["generate", "--schemas", schemas, "--package", "shop", "--out", out]) == 0
    warnings = capsys.readouterr().err.splitlines()
    assert [line.partition(".json: ")[2] for line in warnings] == [
        "LonelyRequest has no response: no response has api key 900",
        "field Late: is in no valid version: its versions are 9+, those of the message 0-2",
        "field Item.Id: was a mapKey in v1; the class has no find by it now",
    ]
    assert all(line.startswith("kproto-codegen: warning: own/v2/") for line in warnings)


def test_generate_warns_of_changed_bytes(tmp_path: Path, capsys: Captured) -> None:
    write_definitions(tmp_path / "own" / "v1", [data(field("A"), name="Stock")])
    write_definitions(tmp_path / "own" / "v2", [data(field("A", "int64"), name="Stock")])
    schemas, out = str(tmp_path / "own"), str(tmp_path / "shop")
    assert main(["generate", "--schemas", schemas, "--package", "shop", "--out", out]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "field A: type changed in v0, v1, v2 of v2: was int32; is int64" in line


def test_kafkas_own_definitions_changed_one_released_version() -> None:
    releases = load_releases(SCHEMAS)
    (warning,) = union_warnings(unite(releases), releases)
    assert warning.reason.startswith("ShareGroupMetadataValue: fields changed in v0 of 4.4.0")


@pytest.mark.parametrize(
    ("arguments", "function"),
    [(["generate"], "load_releases"), (["check", "a", "b"], "read_release_at")],
    ids=["generate", "check"],
)
def test_ctrl_c_ends_a_command_quietly_with_130(
    arguments: list[str],
    function: str,
    tmp_path: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"kproto_codegen.cli.{function}", interrupted)
    assert main(arguments) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
@pytest.mark.slow
def test_full_device_of_standard_output_is_named(tmp_path: Path) -> None:
    folder = write_definitions(tmp_path / "v1", [data(field("A"))])
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kproto_codegen.cli", "check", folder, folder],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == (
        "kproto-codegen: could not write to standard output: No space left on device\n"
    )


def test_renamed_and_changed_request_is_refused_before_a_file_is_written(
    tmp_path: Path, capsys: Captured
) -> None:
    own = tmp_path / "own"
    write_definitions(own / "v1", [message(field("Port", "uint16"), name="OldRequest")])
    write_definitions(own / "v2", [message(field("Port", "uint32"), name="NewRequest")])
    out = tmp_path / "shop"
    assert main(["generate", "--schemas", str(own), "--package", "shop", "--out", str(out)]) == 1
    assert capsys.readouterr().err == (
        "kproto-codegen: own/v2/0.json: NewRequest of v2 has the api key 900 of OldRequest of v1, "
        "and v0 has other bytes: field Port: type changed: was uint16; is uint32; if the request "
        "was renamed, restore its bytes; if the release reused the key, generate a package for "
        "each release\n"
    )
    assert not out.exists()
