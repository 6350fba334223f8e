"""Starts a headless browser for this project's pages: Debian's chromium and chromium-driver."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from .availability import not_available

if TYPE_CHECKING:
    from selenium import webdriver

__all__ = ["chromium"]

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # containers lack the sandbox; the pages are trusted
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1400,1000",
    "--force-device-scale-factor=1",
)

#: Some scripts read thousands of cases in seconds; a busy machine may take ten times as long.
SCRIPT_S = 300


@pytest.fixture(scope="session")
def chromium() -> Iterator[webdriver.Chrome]:
    """Yields the browser, which all tests of a worker share."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        missing = "chromium" if browser is None else "chromedriver"
        not_available(
            "pages in a browser",
            f"{missing} is not on the PATH",
            "Chromium and its driver (Debian: chromium and chromium-driver)",
        )
    from selenium import webdriver  # imported here because most runs do not need it

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    started.set_script_timeout(SCRIPT_S)
    try:
        yield started
    finally:
        started.quit()
