"""Tests `pyspark_kproto`, the module by which Spark discovers the data source.

Importing `pyspark_kproto` must load no other module. If a package is missing, the import must still
succeed; then the constructor of `DefaultSource` raises ImportError.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark  # imports PySpark, but starts no Spark

LOADS_NOTHING = """
import sys
import pyspark.sql.datasource
before = set(sys.modules)
from pyspark_kproto import DefaultSource
assert {name for name in sys.modules if name not in before} == {"pyspark_kproto"}
assert issubclass(DefaultSource, pyspark.sql.datasource.DataSource)
assert DefaultSource.name() == "kproto"
"""

GIVES_THE_REAL_ONE = """
import pickle
from kproto_pipeline import KprotoDataSource
from pyspark_kproto import DefaultSource
assert pickle.loads(pickle.dumps(DefaultSource)) is DefaultSource
options = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
source = DefaultSource(options=options)
assert type(source) is KprotoDataSource and source.options is options
"""

SAYS_WHAT_LACKS = """
import sys
sys.modules["pyarrow"] = None
from pyspark_kproto import DefaultSource
try:
    DefaultSource({})
except ImportError as error:
    assert all(part in str(error) for part in ("kproto[spark]", "pyarrow", sys.executable)), error
else:
    raise AssertionError
"""


@pytest.mark.parametrize("program", [LOADS_NOTHING, GIVES_THE_REAL_ONE, SAYS_WHAT_LACKS])
def test_default_source(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
