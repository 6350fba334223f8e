"""Lists the API versions that other Kafka clients can send, as a table of Markdown.

`python -m tools.client_versions` prints the table of docs/reference/client-versions.md. It reads
the installed clients of `tools.setup.peers`, franz-go's package kmsg in Go's module cache, and the
source of librdkafka that `tools.setup.librdkafka` fetches.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from kproto.schema import study
from tools.setup.librdkafka import librdkafka_source
from tools.setup.peers import peers_python

__all__ = ["client_versions", "kmsg_folder", "librdkafka_versions", "markdown", "ranges_text"]

ROOT: Final = Path(__file__).resolve().parents[1]

#: The version of kmsg that the fuzzing adapter uses; Go's module cache has its source.
_KMSG: Final = re.compile(r"pkg/kmsg v(\S+)")

#: Prints, by client, its release and the versions of its requests by API key.
_OF_PYTHON: Final = """
import importlib, json, pkgutil
from importlib.metadata import version

from aiokafka.protocol.api import Request
import aiokafka.protocol, kafka.protocol

for package in (aiokafka.protocol, kafka.protocol):
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if ".old" not in info.name and "generate_stubs" not in info.name:
            importlib.import_module(info.name)

from kafka.protocol.api_message import ApiMessage

def below(cls):
    for each in cls.__subclasses__():
        yield each
        yield from below(each)

kafka_python = {}
for cls in below(ApiMessage):
    definition = getattr(cls, "_json", None)
    if definition and definition.get("type") == "request":
        low, high = cls._valid_versions
        kafka_python[cls.API_KEY] = list(range(low, high + 1))
aiokafka = {
    cls.API_KEY: sorted({each.API_VERSION for each in cls._CLASSES}) for cls in below(Request)
}
print(json.dumps({
    f"kafka-python {version('kafka-python')}": kafka_python,
    f"aiokafka {version('aiokafka')}": aiokafka,
}))
"""


def client_versions() -> dict[str, dict[int, list[int]]]:
    """Returns, by the name and release of a client, the versions of its requests by API key.

    Raises `PeersError` if the Python clients cannot be installed, OSError if kmsg is not in Go's
    module cache, and LibrdkafkaError if the source of librdkafka cannot be fetched.
    """
    newest = study.releases()[-1]
    java = {key: list(each.stable) for key, each in study.ranges(newest).items() if each.stable}
    run = subprocess.run(
        [str(peers_python()), "-c", _OF_PYTHON], capture_output=True, text=True, check=True
    )
    found = {
        name: {int(key): versions for key, versions in rows.items()}
        for name, rows in json.loads(run.stdout).items()
    }
    folder = kmsg_folder()
    source = (folder / "generated.go").read_text(encoding="utf-8")
    release, of_librdkafka = librdkafka_versions(librdkafka_source())
    return (
        {f"Java {newest}": java}
        | found
        | {f"librdkafka {release}": of_librdkafka}
        | {f"franz-go's kmsg {_release()}": _of_kmsg(source)}
    )


def kmsg_folder() -> Path:
    """Returns the folder of kmsg's source in Go's module cache, which may be missing."""
    cache = Path.home() / "go" / "pkg" / "mod"
    return cache / f"github.com/twmb/franz-go/pkg/kmsg@v{_release()}"


def _release() -> str:
    found = _KMSG.search((ROOT / "tools/fuzz_adapters/kmsg/go.mod").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def _of_kmsg(source: str) -> dict[int, list[int]]:
    """Returns the versions by API key; kmsg has every version from 0 on."""
    method = r"func \(\*(\w+Request)\) {}\(\) int16\s*{{ return (\d+) }}"
    keys = dict(re.findall(method.format("Key"), source))
    highest = dict(re.findall(method.format("MaxVersion"), source))
    return {int(keys[name]): list(range(int(highest[name]) + 1)) for name in keys}


#: The choice of a version: API, lowest and highest version, each a number or a variable.
_CHOICE: Final = re.compile(
    r"rd_kafka_broker_ApiVersion_supported\(\s*rkb,\s*RD_KAFKAP_(\w+),\s*(\w+),\s*(\w+),"
)
#: A new request of an API.
_REQUEST: Final = re.compile(r"rd_kafka_buf_new_(?:flexver_)?request\(\s*rkb,\s*RD_KAFKAP_(\w+),")
#: The highest version of ApiVersions, which is chosen before the versions of the broker are known.
_OF_API_VERSIONS: Final = re.compile(
    r"\nvoid rd_kafka_ApiVersionRequest\([^}]*?if \(ApiVersion == -1\)\s*ApiVersion = (\d+);"
)
#: The name of ApiVersions in librdkafka.
_API_VERSIONS: Final = "ApiVersion"


def librdkafka_versions(source: Path) -> tuple[str, dict[int, list[int]]]:
    """Returns the release of librdkafka, and the versions of its requests by API key.

    `source` is the folder with librdkafka's C files. If librdkafka chooses the version of an API in
    several places, the API has the versions of all of them. If it chooses none, it sends version 0.
    """
    header = (source / "rdkafka.h").read_text(encoding="utf-8")
    number = re.search(r"#define RD_KAFKA_VERSION 0x(..)(..)(..)ff", header)
    assert number is not None
    release = ".".join(str(int(part, 16)) for part in number.groups())
    protocol = (source / "rdkafka_protocol.h").read_text(encoding="utf-8")
    keys = {
        name: int(key) for name, key in re.findall(r"#define RD_KAFKAP_(\w+)\s+(\d+)\s", protocol)
    }
    found: dict[str, set[int]] = {}
    sent: set[str] = set()
    for path in sorted(source.glob("rdkafka*.c")):
        if path.name.startswith(("rdkafka_mock", "rdkafka_ut")):  # a broker for tests
            continue
        text = path.read_text(encoding="utf-8")
        for api, low, high in _CHOICE.findall(text):
            chosen = range(_number(low, text), _number(high, text) + 1)
            found.setdefault(api, set()).update(chosen)
        sent.update(_REQUEST.findall(text))
        if highest := _OF_API_VERSIONS.search(text):
            found[_API_VERSIONS] = set(range(int(highest[1]) + 1))
    for api in sent:
        found.setdefault(api, {0})
    return release, {keys[api]: sorted(versions) for api, versions in found.items()}


def _number(value: str, text: str) -> int:
    """Returns a number, or the value that a C file first assigns to a variable."""
    while not value.isdecimal():
        assigned = re.search(rf"\b{value}\s+= (\w+);|\b{value} = (\w+);", text)
        assert assigned is not None, value
        value = assigned[1] or assigned[2]
    return int(value)


def ranges_text(versions: Iterable[int]) -> str:
    """Returns versions in ascending order as ranges, such as `0-2, 5`."""
    parts: list[list[int]] = []
    for version in versions:
        if parts and version == parts[-1][-1] + 1:
            parts[-1].append(version)
        else:
            parts.append([version])
    return ", ".join(str(each[0]) if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in parts)


def markdown(clients: Mapping[str, Mapping[int, Iterable[int]]]) -> str:
    """Returns a table with a row for each API that any client except the first, Java's, has."""
    others = [*clients.values()][1:]
    keys = sorted({key for each in others for key in each} & set(study.api_names()))
    rows = [
        ["key", "API", *clients],
        ["---"] * (2 + len(clients)),
        *(
            [str(key), study.api_names()[key], *(_cell(each, key) for each in clients.values())]
            for key in keys
        ),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(client: Mapping[int, Iterable[int]], key: int) -> str:
    return ranges_text(client.get(key, ()))


if __name__ == "__main__":
    print(markdown(client_versions()), end="")
