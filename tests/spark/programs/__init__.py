"""Contains programs for environments with the JVM connector or with another PySpark.

A program is a module with `run(spark, task)`. The task and the result are plain data, as in JSON.
The environments lack pytest, so no module in this package may import pytest. Some modules are also
run as scripts, so no module may have the name of a module of the standard library.
"""
