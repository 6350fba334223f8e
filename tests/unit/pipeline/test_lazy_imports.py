"""Tests lazy imports of `kproto_pipeline`.

Importing the package loads no other module of kproto. Importing its columns loads neither PySpark
nor the client.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

COLUMNS_ALONE = """
import sys
from kproto_pipeline.columns import arrow_batches, records_as_arrow
loaded = [name for name in ("pyspark", "kproto.client") if name in sys.modules]
assert not loaded, loaded
"""

READER_ALONE = """
import sys
import kproto_pipeline.spark.streaming.stream_reader
unused = (
    "kproto.client.consumer", "kproto.client.processing", "kproto.client.producer.producer",
    "kproto.security.mechanisms", "kproto_cloudevents", "kproto_pipeline.columns.arrow_events",
    "kproto_pipeline.columns.encoding", "kproto_pipeline.spark.sink",
)
loaded = [name for name in unused if name in sys.modules]
assert not loaded, loaded
"""

DATA_SOURCE_ALONE = """
import sys
import kproto_pipeline.spark.data_source
unused = ("kproto_cloudevents", "kproto_pipeline.spark.sink")
loaded = [name for name in unused if name in sys.modules]
assert not loaded, loaded
"""

FACE_ALONE = """
import sys
import kproto_pipeline
assert not [name for name in sys.modules if name.startswith(("kproto_pipeline.", "kproto."))]
"""


def run(program: str) -> None:
    """Runs a program in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_columns_import_neither_spark_nor_client() -> None:
    run(COLUMNS_ALONE)


@pytest.mark.slow
@pytest.mark.parametrize("program", [READER_ALONE, DATA_SOURCE_ALONE])
def test_reader_loads_neither_the_sink_nor_events(program: str) -> None:
    run(program)


def test_package_import_is_lazy() -> None:
    run(FACE_ALONE)
