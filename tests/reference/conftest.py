"""Runs the long comparisons with Kafka's classes once, for all tests that check their results."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.availability import not_available
from tools.reference import KafkaJavaProgram, ReferenceUnavailableError
from tools.reference.classes import class_path
from tools.reference.comparison import ComparisonResult
from tools.reference.conformance import MUTATIONS, SEED
from tools.reference.findings import FuzzResult, compare_all, fuzz
from tools.reference.pairs import RELEASES, ReleaseMessageVersion


@pytest.fixture(scope="session")
def releases() -> tuple[str, ...]:
    """Returns the releases; skips the tests if the classes of a release are not available."""
    try:
        for release in RELEASES:
            class_path(release)
    except ReferenceUnavailableError as error:
        not_available("Kafka's own classes", error)
    return RELEASES


@pytest.fixture(scope="session")
def judges(releases: tuple[str, ...]) -> Iterator[dict[str, KafkaJavaProgram]]:
    """Yields, by release, a Java program that runs the Kafka classes of that release."""
    running = {release: KafkaJavaProgram(release) for release in releases}
    yield running
    for judge in running.values():
        judge.close()


@pytest.fixture(scope="session")
def compared(releases: tuple[str, ...]) -> dict[ReleaseMessageVersion, ComparisonResult]:
    """Returns the results of comparing kproto with Kafka, by release, message and version."""
    return compare_all()


@pytest.fixture(scope="session")
def fuzzed(releases: tuple[str, ...]) -> FuzzResult:
    """Returns the results of decoding a million mutated encodings with kproto and with Kafka."""
    return fuzz(MUTATIONS, SEED)
