"""Generates a package with a module for each message spec, and writes its files.

Messages are planned (`plan`), emitted as code (`readers`, `writers`, `classes`), and rendered.
"""
