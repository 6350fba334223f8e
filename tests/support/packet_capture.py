"""tcpdump on the loopback interface, where it is there and may look."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kproto.messages import ApiVersionsRequest

from .raw_connection import RawConnection

__all__ = ["Captured", "captured"]

TIMEOUT_S = 60.0
POLL_S = 0.05
BUFFER_KIB = 65_536
"""Of the kernel, for packets that tcpdump has not taken yet."""

PROGRAMS = ("tcpdump", "/usr/sbin/tcpdump")


@dataclass
class Captured:
    """What became of a capture: why there is none, or how many packets the kernel dropped.

    `install` is what to install if there is none. `last` is the client id of the request that
    ended the capture, which is in it too.
    """

    file: Path
    missing: str = ""
    install: str = ""
    dropped: int = 0
    last: str = ""


@contextlib.contextmanager
def captured(bootstrap: str, file: Path) -> Iterator[Captured]:
    """All that passes to and from the broker at `bootstrap` within the block, in a pcap file."""
    found = Captured(file)
    program = next((path for each in PROGRAMS if (path := shutil.which(each))), None)
    if program is None:
        found.missing, found.install = "tcpdump is not on the PATH", "tcpdump"
        yield found
        return
    host, _, port = bootstrap.rpartition(":")
    if not host.startswith("127.") and host != "localhost":
        found.missing = f"{bootstrap} is not on the loopback interface"
        yield found
        return
    # Without -Z, tcpdump of some systems becomes a user who may not write here.
    options = ["-Z", "root", "--immediate-mode", "-U", "-B", str(BUFFER_KIB), "-s", "0"]
    with subprocess.Popen(
        [program, "-i", "lo", *options, "-w", str(file), "tcp", "port", port],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            while said and "listening on" not in said:
                found.missing = said.strip()
                said = process.stderr.readline()
            if said:
                found.missing = ""
            yield found
            if said:
                found.last = _see_the_end(bootstrap, file)
                process.send_signal(signal.SIGINT)
                told = process.communicate(timeout=TIMEOUT_S)[1]
                dropped = re.search(r"(\d+) packets dropped by kernel", told)
                assert dropped is not None, told
                found.dropped = int(dropped[1])
        finally:
            process.kill()


def _see_the_end(bootstrap: str, file: Path) -> str:
    """Send a request that is sure to be the last, and wait until it is in the file."""
    name = f"last-{uuid.uuid4().hex}"
    with RawConnection(bootstrap, name) as connection:
        connection.exchange(ApiVersionsRequest(), 0)
    deadline = time.monotonic() + TIMEOUT_S
    while name.encode() not in file.read_bytes():
        assert time.monotonic() < deadline, "tcpdump does not see what passes"
        time.sleep(POLL_S)
    return name
