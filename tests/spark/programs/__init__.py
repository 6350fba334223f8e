"""Contains programs for environments with the JVM connector or with another PySpark.

A program is a module with `run(spark, task)`. Task and result are plain data in JSON. No module in
this package imports pytest, which those environments lack. Some modules are also run as scripts, so
no module may have the name of a module of the standard library.
"""
