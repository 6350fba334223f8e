"""What runs in another environment than the tests': beside the JVM connector, on other PySparks.

A program is a module with `run(spark, task)`: plain data in, plain data out, as JSON can say it.
Nothing here imports pytest, which is not there. Some are scripts, too, so that none has the name of
a module of the standard library.
"""
