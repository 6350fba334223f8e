"""Compares the methods of `Admin` with those of Kafka's Admin interface in the clients jar."""

from __future__ import annotations

import inspect
import re
import zipfile
from pathlib import Path
from typing import Final

import pytest
from kproto_codegen.releases.classfile import ClassFile

import kproto
from kproto.client.admin import Admin
from tests.support.availability import not_available
from tools.releases.jars import clients_jar
from tools.setup.maven import MavenError

pytestmark = pytest.mark.reference

RELEASE: Final = "4.4.0"
ADMIN_CLASS: Final = "org/apache/kafka/clients/admin/Admin.class"

#: Kafka's methods without a counterpart in `Admin`, with the reason.
ELSEWHERE: Final = {
    "create": "`Client.admin` creates the object",
    "close": "`Client.close` closes the connections, which `Admin` shares",
    "clientInstanceId": "the id of a client that pushes metrics; kproto pushes none",
    "metrics": "`Client.metrics` has the metrics of the whole client",
    "registerMetricForSubscription": "kproto pushes no metrics",
    "unregisterMetricFromSubscription": "kproto pushes no metrics",
}

#: Methods of `Admin` that Kafka's Admin interface lacks, with the reason.
OWN: Final = {
    "consumer_group_lag": "kafka-consumer-groups.sh computes the lag itself",
}


@pytest.fixture(scope="module")
def jar() -> Path:
    try:
        return clients_jar(RELEASE)
    except MavenError as error:
        not_available(f"the clients jar of {RELEASE}", error)


def snake_case(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def test_each_method_of_kafkas_admin_has_a_counterpart_or_a_reason(jar: Path) -> None:
    with zipfile.ZipFile(jar) as archive:
        names = ClassFile(archive.read(ADMIN_CLASS)).public_methods
    assert len(names) > 60
    own = {name for name, _ in inspect.getmembers(Admin, callable) if not name.startswith("_")}
    wanted = {snake_case(name) for name in names if name not in ELSEWHERE}
    assert wanted - own == set()
    assert own - wanted == set(OWN)
    assert ELSEWHERE.keys() - set(names) == set()


def test_each_call_is_a_coroutine_function_with_a_timeout() -> None:
    calls = dict(inspect.getmembers(Admin, inspect.isfunction))
    for name in [name for name in calls if not name.startswith("_")]:
        assert inspect.iscoroutinefunction(calls[name]), name
        timeout = inspect.signature(calls[name]).parameters["timeout_ms"]
        assert (timeout.kind, timeout.default) == (inspect.Parameter.KEYWORD_ONLY, None), name
    assert kproto.Admin is Admin
