"""Tests `--package` of all commands with a protocol of three releases that is not Kafka's."""

from __future__ import annotations

import importlib
import io
import json
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.registry import handles
from kproto.cli import main
from kproto.messages import MetadataRequest
from kproto.messages.base import Request, Response
from kproto.protocol.connection import ClientConnection, ServerConnection
from kproto.protocol.message_classes import MessageClasses
from kproto.study.conversations import Side
from kproto.study.recording import Recorder, RecordingEntry, read_recording
from tests.support.availability import skip_untested
from tests.support.cli_process import complaints, started
from tests.support.embedded import threaded_broker
from tests.support.environment import ROOT
from tests.support.own_protocol import (
    field,
    imported_package,
    make_package,
    message,
    write_releases,
)
from tests.support.raw_connection import RawConnection
from tests.unit.codegen.packages import write_definitions
from tests.unit.study.packets import connection, file_of

NAME = "parcels_of_tests"
OF_PACKAGE = ("--package", NAME)
TIMEOUT_S = 120

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the releases in `parcels` and the generated package."""
    folder = tmp_path_factory.mktemp("own")
    write_releases(folder / "parcels")
    make_package(folder / "parcels", folder / NAME, "--secret", "TrackRequest.Token")
    return folder


@pytest.fixture
def parcels(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> Iterator[Any]:
    monkeypatch.chdir(folder)
    with imported_package(folder / NAME) as package:
        capsys.readouterr()
        yield package


def pairs(parcels: ModuleType) -> list[tuple[bytes, bytes]]:
    """Returns the frames of two exchanges, of a request and its response each."""
    track = importlib.import_module(f"{NAME}.track_response")
    steps: Sequence[tuple[Request[Any], Response, int]] = [
        (
            parcels.TrackRequest(token="s3cret", parcel_ids=["p1"], timeout_ms=30_000),
            parcels.TrackResponse(
                parcels=[track.Parcel(id="p1", error_code=6, seen_timestamp=1_700_000_000_000)]
            ),
            2,
        ),
        (parcels.PrintLabelRequest(parcel_id="p1"), parcels.PrintLabelResponse(label=b"ok"), 1),
    ]
    client, server = ClientConnection("me"), ServerConnection(MessageClasses(parcels))
    found = []
    for request, response, version in steps:
        _, asked = client.send(request, version)
        found.append((asked, server.send(server.receive(asked[4:]), response)))
    return found


def out(capsys: Captured, *arguments: str) -> str:
    """Runs a command, which must succeed; returns its standard output."""
    assert main([*arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_inspect_shows_own_messages_alone(parcels: Any, capsys: Captured) -> None:
    listed = out(capsys, "inspect", *OF_PACKAGE)
    assert [line.split()[0] for line in listed.splitlines()[1:]] == sorted(parcels.MODULES)
    shown = out(capsys, "inspect", *OF_PACKAGE, "TrackRequest", "--version", "2")
    assert shown.startswith("TrackRequest (request, api key 1000), version 2 of 0-2\nat least 8")
    assert "after request header v2" in shown
    assert "Kafka" not in shown
    assert "The password of the customer." in shown
    told = json.loads(out(capsys, "inspect", *OF_PACKAGE, "TrackRequest", "--json"))
    assert not {"note", "broughtBy", "droppedBy"} & told.keys()
    assert told["fields"][2]["meaning"] == "How long the depot searches."
    assert out(capsys, "inspect", *OF_PACKAGE, "LabelRequest").startswith("PrintLabelRequest ")


def test_inspect_gives_own_messages_no_meaning_of_kafka(parcels: Any, capsys: Captured) -> None:
    """FetchRequest is in the package and in Kafka; so is its field ReplicaId."""
    own = json.loads(out(capsys, "inspect", *OF_PACKAGE, "FetchRequest", "--json"))
    assert (own["meaning"], [row["meaning"] for row in own["fields"]]) == ("", [""])
    kafka = json.loads(out(capsys, "inspect", "FetchRequest", "--version", "4", "--json"))
    assert kafka["meaning"]
    assert kafka["fields"][0]["meaning"]
    changed = json.loads(
        out(capsys, "inspect", *OF_PACKAGE, "TrackResponse", "--diff", "1", "2", "--json")
    )
    assert changed["changes"] == [
        {"kind": "added", "field": "Note", "detail": "string, tag 0"},
    ]
    assert "notes" not in changed


def test_decode_reads_own_frames_before_kafkas(parcels: Any, capsys: Captured) -> None:
    track, label = pairs(parcels)
    shown = out(capsys, "decode", *OF_PACKAGE, track[0].hex())
    assert "1000  (Track)" in shown
    assert "<hidden>" in shown
    assert "s3cret" not in shown
    assert "(30 s)" in shown
    (tree,) = json.loads(out(capsys, "decode", *OF_PACKAGE, label[0].hex(), "--json"))
    assert tree["value"] == "PrintLabelRequest v1"
    assert main(["decode", label[0].hex()]) == 1  # Kafka's Metadata has the api key 3
    assert "MetadataRequest v1" in capsys.readouterr().out
    _, kafka = ClientConnection("me").send(MetadataRequest(topics=[]), 12)
    assert main(["decode", *OF_PACKAGE, kafka.hex()]) == 1
    assert "PrintLabel has the versions 0 to 1, not 12" in capsys.readouterr().err


def test_decode_names_no_error_code_of_own_messages(parcels: Any, capsys: Captured) -> None:
    (_, told), _ = pairs(parcels)
    arguments = ("--message", "track", "--response", "--version", "2", "--about")
    shown = out(capsys, "decode", *OF_PACKAGE, *arguments, told.hex())
    assert "NOT_LEADER" not in shown
    assert "about: 0 if the parcel was found." in shown
    assert "(2023-11-14T22:13:20.000Z)" in shown
    event = parcels.ParcelEvent(parcel_id="p1", depot="north").encode(1)
    shown = out(
        capsys, "decode", *OF_PACKAGE, "--message", "ParcelEvent", "--version", "1", event.hex()
    )
    assert "'north'" in shown


def test_decode_guesses_own_messages_alone(parcels: Any, capsys: Captured) -> None:
    (asked, told), _ = pairs(parcels)
    for data, name in ((asked, "TrackRequest"), (told, "TrackResponse")):
        guesses = json.loads(out(capsys, "decode", *OF_PACKAGE, "--guess", "--json", data.hex()))
        assert guesses[0]["message"] == name
        assert {guess["message"] for guess in guesses} <= set(parcels.MODULES)
    arguments = ("--guess", "--message", "track", "--response")
    assert "TrackResponse v2" in out(capsys, "decode", *OF_PACKAGE, *arguments, told.hex())


@pytest.fixture(params=["recording", "pcap"])
def file(request: pytest.FixtureRequest, parcels: Any, tmp_path: Path) -> str:
    """Returns the path of a file with two exchanges of the package."""
    path = tmp_path / "file"
    talk = pairs(parcels)
    if request.param == "pcap":
        path.write_bytes(file_of(connection(talk, size=1000)))
        return str(path)
    written = io.BytesIO()
    recorder = Recorder(written)
    recorder.write(RecordingEntry(1, 1, client="10.0.0.1:50000", target="10.0.0.2:9092"))
    for number, (asked, answer) in enumerate(talk):
        recorder.write(RecordingEntry(number * 1000, 1, Side.CLIENT, asked))
        recorder.write(RecordingEntry(number * 1000 + 500, 1, Side.BROKER, answer))
    path.write_bytes(written.getvalue())
    return str(path)


def test_capture_lists_own_messages(file: str, capsys: Captured) -> None:
    first, second = out(capsys, "capture", *OF_PACKAGE, file).splitlines()
    assert " Track v2 client='me' " in first
    assert first.endswith(" error code 6")
    assert " PrintLabel v1 client='me' " in second
    (line,) = out(capsys, "capture", *OF_PACKAGE, file, "--json", "--api", "track").splitlines()
    told = json.loads(line)
    assert (told["api"], told["api_key"], told["errors"]) == ("Track", 1000, {"error code 6": 1})
    stats = json.loads(out(capsys, "capture", *OF_PACKAGE, file, "--stats", "--json"))
    assert {"Track", "PrintLabel"} <= stats.keys()


def test_capture_opens_own_messages_and_hides_secrets(file: str, capsys: Captured) -> None:
    shown = out(capsys, "capture", *OF_PACKAGE, file, "--open", "1")
    assert "TrackRequest" in shown
    assert "(30 s)" in shown
    assert "s3cret" not in shown
    opened = json.loads(out(capsys, "capture", *OF_PACKAGE, file, "--open", "1", "--json"))
    assert opened["request"]["token"] == "<hidden>"
    assert opened["response"]["parcels"][0]["id"] == "p1"
    shown = out(capsys, "capture", *OF_PACKAGE, file, "--open", "1", "--show-secrets")
    assert "s3cret" in shown


def test_proxy_logs_and_records_own_messages(parcels: Any, folder: Path, tmp_path: Path) -> None:
    @handles(parcels.TrackRequest, versions=range(3))
    def track(context: Any, request: Any, version: int) -> Any:
        return parcels.TrackResponse()

    path = tmp_path / "recording"
    with threaded_broker(apis=[*KAFKA_APIS, track]) as broker:
        arguments = ("--json", "--record", str(path), "--api", "track", *OF_PACKAGE)
        with started("proxy", "127.0.0.1:0", broker.bootstrap, *arguments, cwd=folder) as process:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["notice"].split()[-1]
            with RawConnection(address) as opened:
                opened.exchange(parcels.TrackRequest(token="s3cret"), 2)
            process.send_signal(signal.SIGINT)
            said, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, complaints(err)) == (0, [])
    events = [told for line in said.splitlines() if "api" in (told := json.loads(line))]
    assert [(told["from"], told["api"], told["kind"]) for told in events] == [
        ("client", "Track", "message"),
        ("broker", "Track", "message"),
    ]
    with path.open("rb") as recording:
        recorded = b"".join(entry.data for entry in read_recording(recording))
    assert b"******" in recorded
    assert b"s3cret" not in recorded


#: Runs the scripts of a page that need no browser, and prints the messages in the given frames.
READ_FRAMES = """
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const found = given.map((hex) => decodeAs("request", bytes(hex), null, 0));
console.log(JSON.stringify(found.map((parts) => parts.map((part) => [part.title, part.fault]))));
"""


def test_explorer_has_own_messages_alone(parcels: Any, tmp_path: Path, capsys: Captured) -> None:
    page = tmp_path / "page.html"
    assert out(capsys, "explorer", *OF_PACKAGE, "--out", str(page)) == f"{page}\n"
    text = page.read_text(encoding="utf-8")
    assert f"<title>The protocol of {NAME}</title>" in text
    assert "Apache Kafka" not in text
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    names = {each["n"] for each in data["messages"]}
    assert names == {*parcels.MODULES, "RequestHeader", "ResponseHeader"}
    assert (data["errors"], data["releases"], data["kips"], data["stored"]) == ([], [], [], {})
    assert data["secrets"] == [["TrackRequest", "Token"]]
    overrides = data["glossary"]["overrides"]
    assert overrides["TrackResponse.Parcel"]["Weight"] == "In grams."
    assert "FetchRequest.FetchRequest" not in overrides
    node = shutil.which("node")
    if node is None:
        skip_untested("the explorer with own messages", "node is not on the PATH", "Node.js")
    element = json.dumps({"textContent": json.dumps(data)})
    scripts = [
        (ROOT / "kproto" / "explorer" / name).read_text(encoding="utf-8")
        for name in ("model.js", "decode.js", "records.js", "frames.js")
    ]
    scripts.insert(0, f"const document = {{ getElementById: () => ({element}) }};")
    done = subprocess.run(
        [node, "-e", "\n".join([*scripts, READ_FRAMES])],
        input=json.dumps([asked.hex() for asked, _ in pairs(parcels)]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert json.loads(done.stdout) == [
        [["TrackRequest v2", None]],
        [["PrintLabelRequest v1", None]],
    ]


@pytest.mark.parametrize(
    "command",
    [
        ("inspect",),
        ("decode", "00"),
        ("capture", "-"),
        ("proxy", "127.0.0.1:0", "127.0.0.1:9"),
        ("explorer", "--out", "-"),
        ("diff", "parcels/v1"),
        ("vectors",),
    ],
    ids=lambda command: command[0],
)
@pytest.mark.usefixtures("parcels")
def test_unusable_packages_are_refused_in_the_same_words(
    command: tuple[str, ...], folder: Path, capsys: Captured
) -> None:
    (folder / "raises.py").write_text("raise RuntimeError('broken')")
    (folder / "other").mkdir(exist_ok=True)
    (folder / "other" / "__init__.py").write_text("MODULES = {'A': 'a'}\nAPI_KEYS = {}")
    is_none = "is no package of messages, as kproto-codegen generates them"
    for name, said in (
        ("no_such", "--package: cannot import 'no_such': ModuleNotFoundError: No module named"),
        ("raises", "--package: cannot import 'raises': RuntimeError: broken"),
        ("", "--package: cannot import '': ValueError: Empty module name"),
        ("json", f"json {is_none}"),
        ("other", f"other {is_none}"),
        ("parcels", f"parcels {is_none}"),
        (f"{NAME}.track_request", f"{NAME}.track_request {is_none}"),
    ):
        assert main([*command, "--package", name]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"kproto: error: {said}"), name
        assert captured.err.count("\n") == 1


@pytest.mark.usefixtures("parcels")
def test_options_that_only_kafka_has_are_refused(capsys: Captured) -> None:
    assert main(["decode", *OF_PACKAGE, "--records", "00"]) == 2
    assert "--records are for records of Kafka: omit --package" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["inspect", *OF_PACKAGE, "error", "6"])
    assert "error codes are Kafka's: omit --package" in capsys.readouterr().err


def test_reserved_api_keys_have_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """A definition without valid versions reserves an api key; the package has no class of it."""
    monkeypatch.chdir(tmp_path)
    definitions = [
        message("request", "OldRequest", "none", apiKey=1, flexibleVersions="none"),
        message("data", "Present", "0", field("Text", "string")),
    ]
    write_definitions(tmp_path / "definitions", definitions)
    make_package(tmp_path / "definitions", tmp_path / "reserved_of_tests")
    package = ("--package", "reserved_of_tests")
    with imported_package(tmp_path / "reserved_of_tests"):
        capsys.readouterr()
        assert "OldRequest  request  1    none" in out(capsys, "inspect", *package)
        assert "OldRequest" not in out(capsys, "explorer", *package, "--out", "-")
        shown = out(capsys, "diff", "definitions", *package)
        assert shown == "definitions to reserved_of_tests: 0 messages added, 0 removed, 0 changed\n"
        assert "Present v0" in out(capsys, "decode", *package, "--guess", "000161")
        for arguments in (("inspect", "OldRequest"), ("decode", "--message", "Old", "00")):
            assert main([*arguments, *package]) == 2
            assert capsys.readouterr().err == "kproto: error: OldRequest has no valid version\n"


def test_a_package_of_kafka_itself_is_the_default(capsys: Captured) -> None:
    whole = out(capsys, "inspect", "HeartbeatRequest")
    assert out(capsys, "inspect", "--package", "kproto.messages", "HeartbeatRequest") == whole


@pytest.mark.usefixtures("parcels")
def test_diff_compares_two_folders(capsys: Captured) -> None:
    assert out(capsys, "diff", "parcels/v1", "parcels/v2") == DIFF_1_2
    named = out(capsys, "diff", "--schemas", "parcels", "v1", "v2")
    assert named == DIFF_1_2
    told = json.loads(out(capsys, "diff", "parcels/v2", "parcels/v3", "--json"))
    assert [each["name"] for each in told["added"]] == ["FetchRequest", "FetchResponse"]
    assert told["removed"] == []
    renamed = [
        (each["older"]["name"], each["newer"]["name"], each["added"]) for each in told["changed"]
    ]
    assert renamed == [
        ("ParcelEvent", "ParcelEvent", [1]),
        ("LabelRequest", "PrintLabelRequest", [1]),
        ("LabelResponse", "PrintLabelResponse", [1]),
        ("TrackRequest", "TrackRequest", [2]),
        ("TrackResponse", "TrackResponse", [2]),
    ]
    assert told["altered"] == []


@pytest.mark.usefixtures("parcels")
def test_diff_compares_a_folder_with_the_package(capsys: Captured) -> None:
    by_folder = json.loads(out(capsys, "diff", "parcels/v1", "parcels/v3", "--json"))
    by_package = json.loads(out(capsys, "diff", "parcels/v1", *OF_PACKAGE, "--json"))
    assert by_package.pop("newer") == NAME
    assert by_folder.pop("newer") == str(Path("parcels", "v3"))
    assert by_package == by_folder
    assert (
        json.loads(out(capsys, "diff", "v3", "--schemas", "parcels", *OF_PACKAGE, "--json"))[
            "changed"
        ]
        == []
    )


@pytest.mark.usefixtures("parcels")
def test_diff_compares_the_apis_of_kafka(capsys: Captured) -> None:
    """The package has the api keys 1 and 3 of Kafka, and the name FetchRequest."""
    told = json.loads(out(capsys, "diff", "4.4.0", *OF_PACKAGE, "--json"))
    assert (told["older"], told["newer"]) == ("Kafka 4.4.0", NAME)
    assert [each["name"] for each in told["added"]] == ["TrackRequest", "TrackResponse"]
    assert "MetadataRequest" not in [each["name"] for each in told["removed"]]
    changed = {each["newer"]["name"]: each["older"]["name"] for each in told["changed"]}
    assert changed == {
        "FetchRequest": "FetchRequest",
        "FetchResponse": "FetchResponse",
        "PrintLabelRequest": "MetadataRequest",
        "PrintLabelResponse": "MetadataResponse",
    }
    schemas = str(ROOT / "schemas" / "4.4.0")
    shown = out(capsys, "diff", "4.4.0", schemas)
    assert shown == f"Kafka 4.4.0 to {schemas}: 0 messages added, 0 removed, 0 changed\n"
    told = json.loads(out(capsys, "diff", schemas, "3.9.2", "--json"))
    assert told["newer"] == "Kafka 3.9.2"
    assert {each["type"] for each in told["removed"]} == {"request", "response"}


@pytest.mark.usefixtures("parcels")
def test_diff_reports_a_changed_version(folder: Path, capsys: Captured) -> None:
    changed = folder / "changed"
    shutil.copytree(folder / "parcels" / "v1", changed, dirs_exist_ok=True)
    file = changed / "ParcelEvent.json"
    file.write_text(file.read_text().replace('"string"', '"bytes"'))
    shown = out(capsys, "diff", "parcels/v1", "changed")
    assert shown.splitlines()[-1].split() == [
        *("ParcelEvent", "v0", "type", "changed", "ParcelId"),
        *shown.splitlines()[-1].split()[5:],
    ]
    assert "kproto-codegen check" in shown


@pytest.mark.usefixtures("parcels")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["parcels/v1", "parcels/v9"], "parcels/v9 is no folder of definitions"),
        (["parcels/v1", "4.9.2"], "4.9.2 is no folder of definitions"),
        (["parcels", "parcels/v1"], "parcels has the releases v1, v2, v3: name one, such as"),
        (["v1", "v9", "--schemas", "parcels"], "parcels has no release 'v9'; the nearest: v"),
        (["v1", "v2", "--schemas", "no"], "no has no folders of releases"),
        (["v1", "v2"], "no release is called 'v1'"),
        (["empty", "parcels/v1"], "empty has no definitions"),
        (["faulty", "parcels/v1"], "kproto-codegen generate reports each fault"),
    ],
)
def test_diff_of_wrong_folders(
    arguments: list[str], said: str, folder: Path, capsys: Captured
) -> None:
    for name, text in (("empty", None), ("faulty", '{"name": "X", "type": "data"}')):
        (folder / name).mkdir(exist_ok=True)
        if text:
            (folder / name / "X.json").write_text(text)
    assert main(["diff", *arguments]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["3.9.2"], "the following arguments are required: NEWER"),
        (["a", "b", "--package", "c"], "NEWER is the package of --package: pass OLDER alone"),
    ],
)
def test_diff_with_a_wrong_number_of_sides(
    arguments: list[str], said: str, capsys: Captured
) -> None:
    with pytest.raises(SystemExit):
        main(["diff", *arguments])
    assert said in capsys.readouterr().err


DIFF_1_2 = """\
parcels/v1 to parcels/v2: 2 messages added, 0 removed, 2 changed

added messages
  MESSAGE        TYPE      KEY  VERSIONS  MARKS
  LabelRequest   request   3    0         flexible 1+
  LabelResponse  response  3    0         flexible 1+

changed messages
  MESSAGE        KEY   VERSIONS  ADDED  MARKS
  TrackRequest   1000  0 -> 0-1  1      flexible 1+, for broker
  TrackResponse  1000  0 -> 0-1  1      flexible 1+

added versions
  MESSAGE           CHANGE    FIELD           DETAIL
  TrackRequest v1   flexible                  compact lengths, tagged fields
  TrackResponse v1  flexible                  compact lengths, tagged fields
                    added     Parcels.Weight  int32, default -1
"""
