"""Reads the property names of librdkafka from the library in the package confluent-kafka.

`rd_kafka_conf_properties_show` writes the table of librdkafka's documentation. A program that runs
in the environment of the other clients calls this function.
"""

from __future__ import annotations

import re

from tools.setup.peers import peers_python
from tools.setup.programs import run_program

__all__ = ["names_of_librdkafka"]

RUN_TIMEOUT_S = 60.0

PROGRAM = """
import confluent_kafka, ctypes, pathlib, tempfile
libraries = pathlib.Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
library = ctypes.CDLL(str(next(libraries.glob("librdkafka*"))))
c = ctypes.CDLL(None)
c.fopen.restype = ctypes.c_void_p
library.rd_kafka_version_str.restype = ctypes.c_char_p
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "table"
    file = ctypes.c_void_p(c.fopen(bytes(path), b"w"))
    library.rd_kafka_conf_properties_show(file)
    c.fclose(file)
    print(library.rd_kafka_version_str().decode())
    print(path.read_text())
"""

#: A row begins with a name in lower case; the table's header does not.
_ROW = re.compile(r"([a-z][a-z0-9._]*) +\|")


def names_of_librdkafka() -> tuple[str, set[str]]:
    """Returns the version of librdkafka, and its property names with their aliases.

    Raises PeersError or ProgramError.
    """
    said = run_program([str(peers_python()), "-c", PROGRAM], timeout_s=RUN_TIMEOUT_S)
    version, *lines = said.splitlines()
    return version, {row[1] for line in lines if (row := _ROW.match(line))}
