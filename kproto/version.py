"""The version of this package, for whoever names it to others. Imports nothing."""

__all__ = ["__version__"]

__version__ = "0.1.0"
