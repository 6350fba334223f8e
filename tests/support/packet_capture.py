"""Captures packets with tcpdump on the loopback interface, if installed and permitted."""

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
"""The kernel's buffer, for packets that tcpdump has not read yet."""

PROGRAMS = ("tcpdump", "/usr/sbin/tcpdump")


@dataclass
class Captured:
    """The result of a capture.

    If packets could not be captured, `missing` has the reason. Otherwise `missing` is empty, and
    `dropped` is the number of packets that the kernel dropped. `install` names the software to
    install for a capture. `last` is the client id of the last request that the capture contains:
    this request ended the capture.
    """

    file: Path
    missing: str = ""
    install: str = ""
    dropped: int = 0
    last: str = ""


@contextlib.contextmanager
def captured(bootstrap: str, file: Path) -> Iterator[Captured]:
    """Captures the traffic of the broker at `bootstrap` during the block, in a pcap file.

    If packets cannot be captured, the block runs nevertheless, and `missing` of the yielded result
    has the reason.
    """
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
    # Without -Z, tcpdump on some systems switches to a user who may not write this file.
    options = ["-Z", "root", "--immediate-mode", "-U", "-B", str(BUFFER_KIB), "-s", "0"]
    with subprocess.Popen(
        [program, "-i", "lo", *options, "-w", str(file), "tcp", "port", port],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            while line and "listening on" not in line:
                found.missing = line.strip()
                line = process.stderr.readline()
            if line:
                found.missing = ""
            yield found
            if line:
                found.last = _await_last_request(bootstrap, file)
                process.send_signal(signal.SIGINT)
                summary = process.communicate(timeout=TIMEOUT_S)[1]
                dropped = re.search(r"(\d+) packets dropped by kernel", summary)
                assert dropped is not None, summary
                found.dropped = int(dropped[1])
        finally:
            process.kill()


def _await_last_request(bootstrap: str, file: Path) -> str:
    """Sends a last request and waits until the file contains it; returns its client id."""
    name = f"last-{uuid.uuid4().hex}"
    with RawConnection(bootstrap, name) as connection:
        connection.exchange(ApiVersionsRequest(), 0)
    deadline = time.monotonic() + TIMEOUT_S
    while name.encode() not in file.read_bytes():
        assert time.monotonic() < deadline, "tcpdump does not capture the traffic"
        time.sleep(POLL_S)
    return name
