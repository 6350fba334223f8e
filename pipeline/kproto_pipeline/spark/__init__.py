"""The Spark data source `kproto`: its options, its readers of batches and streams, its sink."""

from .worker_imports import freeze_imported

freeze_imported()  # before the other imports, which otherwise begin a collection of all objects
