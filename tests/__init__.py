"""The tests of the whole source tree."""
