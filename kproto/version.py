"""The version of this package. Imports nothing."""

__all__ = ["__version__"]

__version__ = "0.1.0"
