"""Tests the explorer with the messages of a user's package in a real browser."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from kproto.cli import main
from kproto.protocol.connection import ClientConnection
from tests.support.own_protocol import imported_package, make_package, write_releases

from .conftest import Open

pytestmark = pytest.mark.browser

#: The heading of each kind of page, by its fragment.
PAGES = {
    "": "APIs and versions",
    "#/stored": "Other messages and headers",
    "#/m/TrackRequest/2": "TrackRequest v2",
    "#/m/ParcelEvent/1": "ParcelEvent v1",
    "#/m/FetchRequest/0": "FetchRequest v0",
    "#/diff/TrackResponse/1/2": "TrackResponse v1 → v2",
    "#/search/weight": "Search weight",
    "#/errors": "Error codes",
    "#/releases": "Versions of each release",
    "#/decode": "Decode bytes",
    "#/m/MetadataRequest/1": "Not found",
}


@pytest.fixture(scope="module")
def own_page(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Returns the address of a page, and the address with a request in it."""
    folder = tmp_path_factory.mktemp("own")
    write_releases(folder / "parcels")
    out = make_package(
        folder / "parcels", folder / "parcels_of_page", "--secret", "TrackRequest.Token"
    )
    with pytest.MonkeyPatch.context() as patch, imported_package(out) as package:
        patch.chdir(folder)
        page = Path(folder, "page.html")
        assert main(["explorer", "--package", out.name, "--out", str(page)]) == 0
        request = package.TrackRequest(token="s3cret", parcel_ids=["p1"])
        _, data = ClientConnection("me").send(request, 2)
    encoded = base64.urlsafe_b64encode(data).decode().rstrip("=")
    return page.as_uri(), f"{page.as_uri()}#/decode/request/-/-/{encoded}"


@pytest.mark.parametrize("fragment", PAGES)
def test_each_view_of_own_messages_is_drawn(
    fragment: str, own_page: tuple[str, str], opened: Open
) -> None:
    browser = opened(fragment, where=own_page[0])
    assert browser.find_element(By.TAG_NAME, "h1").text == PAGES[fragment]
    assert browser.title.endswith("· The protocol of parcels_of_page")
    links = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "#nav a")]
    assert links == ["APIs", "Other messages", "Decode bytes"]
    shown = browser.find_element(By.TAG_NAME, "body").text
    assert "undefined" not in shown
    assert browser.find_elements(By.CSS_SELECTOR, ".examples") == []  # they are Kafka's frames
    assert "Kafka" not in shown.replace("Kafka’s protocol", "")


def test_own_bytes_are_decoded_and_secrets_are_hidden(
    own_page: tuple[str, str], opened: Open
) -> None:
    browser = opened(where=own_page[1])
    shown = browser.find_element(By.ID, "main").text
    assert "TrackRequest v2" in shown
    assert "a secret, not shown" in shown
    assert "s3cret" not in shown
