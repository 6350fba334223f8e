"""Tests the explorer in a real browser: contents, addresses, search, keyboard and contrast."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By

from kproto.explorer.build import MAX_PAGE_BYTES
from kproto.messages import SaslAuthenticateRequest
from kproto.protocol.headers import encode_request_header
from tests.support.environment import ROOT
from tests.support.selection import rest_slow

from .conftest import Open

pytestmark = pytest.mark.browser

#: The heading of every kind of page, by its fragment; each kind is once among the first `KINDS`.
PAGES = {
    "": "APIs and versions",
    "#/stored": "Stored records and headers",
    "#/errors/35": "Error codes",
    "#/releases": "Versions of each release",
    "#/releases/2.0.0/4.0.0": "Releases 2.0.0 → 4.0.0",
    "#/m/FetchRequest/13": "FetchRequest v13",
    "#/diff/FetchRequest/12/13": "FetchRequest v12 → v13",
    "#/search/epoch": "Search epoch",
    "#/decode": "Decode bytes",
    "#/m/FetchRequest/99": "Not found",
    "#/apis/4.0.0": "APIs and versions",
    "#/errors": "Error codes",
    "#/m/FetchRequest/13/KIP": "FetchRequest v13",
    "#/m/FetchResponse/18/Responses.Partitions.Records": "FetchResponse v18",
    "#/m/ControlledShutdownRequest/0": "ControlledShutdownRequest v0",
    "#/m/GroupMetadataValue": "GroupMetadataValue v4",
    "#/search/nowhere-to-be-found": "Search nowhere-to-be-found",
    "#/decode/response/MetadataResponse/12": "Decode bytes",
    "#/m/NoSuchMessage": "Not found",
    "#/diff/NoSuchMessage/0/1": "Not found",
    "#/releases/1/2": "Not found",
    "#/no/such/page": "Not found",
    "#/%E0%A4%A": "APIs and versions",
}
KINDS = 10
#: Fragments of pages that together have every kind of control.
CONTROLS = ("#/diff/FetchRequest/12/13", "#/releases/2.0.0/4.0.0", "#/m/FetchRequest/13", "")
EXAMPLES = 4
SECONDS = 60.0

CONTRAST = """
const rgb = (text) => (text.match(/[0-9.]+/g) || []).map(Number);
const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
  .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
  .reduce((sum, one, index) => sum + one * [0.2126, 0.7152, 0.0722][index], 0);
const behind = (node) => {
  for (let one = node; one; one = one.parentElement) {
    const colour = rgb(getComputedStyle(one).backgroundColor);
    if (colour.length === 3 || colour[3] > 0.99) return colour;
  }
  return [255, 255, 255];
};
const poor = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  const text = walker.currentNode.data.trim();
  if (!text || /^(SCRIPT|STYLE|OPTION|NOSCRIPT)$/.test(node.tagName)) continue;
  if (node.closest(".hidden, .skip") || !node.getClientRects().length) continue;
  const style = getComputedStyle(node);
  const pair = [light(rgb(style.color)), light(behind(node))].sort((a, b) => b - a);
  const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
  if (ratio < 4.5) poor.push([ratio.toFixed(2), node.className, text.slice(0, 30)]);
}
return poor;
"""

FOCUSED = """
const one = document.activeElement;
if (!one || one === document.body) return null;
const shown = (node) => {
  const style = getComputedStyle(node);
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
};
return [one, shown(one) || (one.role === "treeitem" && shown(one.firstElementChild))];
"""

STOPS = """
const controls = "a[href], button, input, select, textarea, summary, [tabindex]";
const all = [...document.querySelectorAll(controls)];
const radios = new Set();
return all.filter((one) => {
  if (one.tabIndex < 0 || one.disabled || !one.getClientRects().length) return false;
  if (one.type !== "radio") return true;
  if (!one.checked || radios.has(one.name)) return false;
  radios.add(one.name);
  return true;
});
"""


def until(holds: Callable[[], object]) -> None:
    """Waits until `holds` returns a true value; fails after `SECONDS`.

    `holds` may find an element that the page replaces before `holds` reads it. Such a result counts
    as false.
    """
    last = time.monotonic() + SECONDS
    while True:
        with suppress(StaleElementReferenceException):
            if holds():
                return
        assert time.monotonic() < last, "the expected state did not appear"
        time.sleep(0.01)


def one(browser: Chrome, selector: str) -> Any:
    return browser.find_element(By.CSS_SELECTOR, selector)


def every(browser: Chrome, selector: str) -> list[Any]:
    return browser.find_elements(By.CSS_SELECTOR, selector)


def press(browser: Chrome, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()


def unpacked(browser: Chrome) -> None:
    """Waits until the decoder page has decompressed the gzip batch of the selected example."""
    until(lambda: every(browser, "[data-unpacked]"))


def example(opened: Open, index: int, **where: str) -> Chrome:
    """Opens the decoder page and selects the example with this index; returns the browser."""
    browser = opened("#/decode", **where)
    every(browser, ".examples a")[index].click()
    until(lambda: every(browser, ".verdict"))
    return browser


@pytest.mark.parametrize("fragment", rest_slow(PAGES, KINDS, KINDS))
def test_every_address_opens_its_page(opened: Open, fragment: str) -> None:
    browser = opened(fragment)
    heading = one(browser, "h1").text
    assert heading == PAGES[fragment]
    assert browser.title.endswith("Kafka’s protocol")
    assert len(every(browser, "main h1")) == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.exhaustive), "dark"])
def test_text_is_legible_in_both_schemes(opened: Open, scheme: str) -> None:
    dark = scheme == "dark"
    for fragment in PAGES:
        browser = opened(fragment, scheme=scheme)
        paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, paper[4:-1].split(","))) < 200) is dark
        assert browser.execute_script(CONTRAST) == [], f"{fragment} {scheme}"
    for index in range(EXAMPLES):
        browser = example(opened, index, scheme=scheme)
        assert browser.execute_script(CONTRAST) == [], f"example {index} {scheme}"


@pytest.mark.parametrize("fragment", rest_slow([*CONTROLS, "example"], 1, 1))
def test_tab_reaches_every_control_and_shows_the_focus(opened: Open, fragment: str) -> None:
    if fragment == "example":
        fragment = "#" + example(opened, 1).current_url.partition("#")[2]
    browser = opened(fragment)
    wanted = browser.execute_script(STOPS)
    assert len(wanted) > 8
    reached = []
    for _ in range(len(wanted) + 2):
        press(browser, Keys.TAB)
        found = browser.execute_script(FOCUSED)
        if found is None:
            break
        element, is_shown = found
        if element in reached:
            break
        assert is_shown, element.get_attribute("outerHTML")[:200]
        reached.append(element)
    assert set(wanted) <= set(reached)
    for element in wanted[:40]:
        assert element.accessible_name.strip(), element.get_attribute("outerHTML")[:200]


def test_arrow_keys_move_over_the_versions(opened: Open) -> None:
    browser = opened()
    browser.execute_script("document.querySelector('tbody th a').focus()")
    press(browser, Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    focused = browser.execute_script("return document.activeElement")
    assert focused.accessible_name == "Fetch v1, deprecated"
    press(browser, Keys.ENTER)
    until(lambda: one(browser, "h1").text == "FetchRequest v1")
    browser.back()
    until(lambda: one(browser, "h1").text == "APIs and versions")


def test_search_updates_while_typing(opened: Open) -> None:
    browser = opened("#/m/FetchRequest/13")
    press(browser, "/", "not_leader")
    until(lambda: one(browser, "h1").text == "Search not_leader")
    assert [hit.text for hit in every(browser, ".hits a")] == ["NOT_LEADER_OR_FOLLOWER"]
    press(browser, Keys.ENTER, Keys.ENTER)
    until(lambda: one(browser, "h1").text == "Error codes")
    assert one(browser, "tr.target").text.startswith("6 NOT_LEADER_OR_FOLLOWER")
    browser.back()
    browser.back()
    until(lambda: one(browser, "h1").text == "FetchRequest v13")


RANKED = {
    "Metadata": "MetadataRequest",
    "topic ids": "Fetch v13",
    "516": "Fetch v13",
    "KIP-516": "Fetch v13",
    "isolation_level": "IsolationLevel",
    "35": "DescribeLogDirsRequest",
    "forgotten": "ForgottenTopicsData",
    "groupcoord": "FindCoordinatorRequest",
    "ListClientMetrics": "ListConfigResourcesRequest",
}


@pytest.mark.parametrize("text", rest_slow(RANKED, 2, 2))
def test_search_ranks_the_best_match_first(opened: Open, text: str) -> None:
    browser = opened(f"#/search/{text}")
    assert one(browser, "#search").get_attribute("value") == text
    assert every(browser, ".hits a")[0].text.startswith(RANKED[text])


FOUND = [
    ("isolation_level", "IsolationLevel", "FetchRequest v18", "12 IsolationLevel"),
    ("unknown topic id", "UNKNOWN_TOPIC_ID", "Error codes", "100 UNKNOWN_TOPIC_ID"),
    ("KIP-516", "Fetch v13", "FetchRequest v13", "KIP-516 Topics have an id."),
    ("an error code is new", "Fetch v14", "FetchRequest v14", "An error code is new."),
    ("ReplicaEpoch", "ReplicaEpoch", "FetchRequest v18", "+4 ReplicaEpoch"),
    ("how many bytes", "MinBytes", "FetchRequest v18", "4 MinBytes"),
    ("present leader", "NOT_LEADER_OR_FOLLOWER", "Error codes", "6 NOT_LEADER_OR_FOLLOWER"),
    ("not_leader_for", "NOT_LEADER_OR_FOLLOWER", "Error codes", "6 NOT_LEADER_OR_FOLLOWER"),
    ("-1", "UNKNOWN_SERVER_ERROR", "Error codes", "-1 UNKNOWN_SERVER_ERROR"),
]


@pytest.mark.parametrize("found", rest_slow(FOUND, 2, 2), ids=lambda found: found[0])
def test_search_result_opens_at_the_matching_row(
    opened: Open, found: tuple[str, str, str, str]
) -> None:
    text, hit, heading, marked = found
    browser = opened(f"#/search/{text}")
    next(link for link in every(browser, ".hits a") if link.text == hit).click()
    until(lambda: one(browser, "h1").text == heading)
    (target,) = every(browser, ".target")
    assert target.text.startswith(marked)
    top = target.rect["y"] - browser.execute_script("return scrollY")
    assert 0 <= top <= browser.execute_script("return innerHeight") - target.rect["height"]


LOST = """
const [texts, done] = arguments;
const shown = (hash) => new Promise((resolve) => {
  if (location.hash === hash) return resolve();
  addEventListener("hashchange", () => resolve(), { once: true });
  location.hash = hash;
});
(async () => {
  const found = new Set();
  for (const text of texts) {
    await shown(`#/search/${text}`);
    for (const hit of document.querySelectorAll(".hits a")) found.add(hit.getAttribute("href"));
  }
  const lost = [];
  for (const hash of found) {
    await shown(hash);
    // A message is the whole page; all else is a line on it.
    const wanted = hash.startsWith("#/errors/") || hash.split("/").length > 4 ? 1 : 0;
    if (document.querySelectorAll(".target").length !== wanted) lost.push(hash);
  }
  done([found.size, lost]);
})();
"""


@pytest.mark.exhaustive
def test_every_search_result_address_opens_its_target(opened: Open, plain_address: str) -> None:
    browser = opened("", where=plain_address)
    # The list is short, because the browser throttles pages that change their address 200 times.
    count, lost = browser.execute_async_script(LOST, ["epoch", "kip-49", "not_"])
    assert lost == []
    assert 80 < count < 180


def test_field_in_the_address_is_marked(opened: Open) -> None:
    browser = opened("#/m/FetchResponse/18/Responses.Partitions.Records")
    assert one(browser, "tr.target th").text.startswith("Records")


@pytest.mark.exhaustive
def test_bytes_are_drawn_to_scale(opened: Open) -> None:
    browser = opened("#/m/HeartbeatRequest/0")
    widths = {box.get_attribute("title"): box.rect["width"] for box in every(browser, ".box")}
    assert widths["GenerationId: int32, 4 bytes"] == 4 * 22
    browser = opened("#/m/FetchRequest/13")
    titles = [box.get_attribute("title") for box in every(browser, ".box")]
    assert titles[0] == "MaxWaitMs: int32, 4 bytes" or titles[0].startswith("ReplicaId")
    assert "TopicId: uuid, 16 bytes" in titles


@pytest.mark.exhaustive
def test_releases_show_their_apis_and_versions(opened: Open) -> None:
    browser = opened("#/apis/4.0.0")
    unsupported = [cell.accessible_name for cell in every(browser, ".v.unsupported")]
    assert "Fetch v3, deprecated, not in this release" in unsupported
    assert "Fetch v4" not in unsupported
    rows = [row.text for row in every(opened("#/releases/2.0.0/4.0.0"), "tbody tr")]
    assert any(row.startswith("− LeaderAndIsr 0-1") for row in rows)
    (fetch,) = [row for row in rows if row.startswith("~ Fetch 0-8 4-17 request v8 → v17")]
    assert "v13: KIP-516 Topics have an id." in fetch
    heads = [head.text for head in every(opened("#/releases"), "thead th")]
    assert heads == ["Key", "API", "1.0.0", "2.0.0", "4.0.0"]  # 2.0.1 has the versions of 2.0.0
    facts = one(opened("#/m/FetchRequest/13"), ".facts").text
    assert "first in 4.0.0" in facts
    assert "gone" not in facts
    assert "dropped in 4.0.0" in one(opened("#/m/FetchRequest/3"), ".facts").text


def test_fields_and_versions_show_descriptions_and_kips(opened: Open) -> None:
    browser = opened("#/m/FetchRequest/13")
    text = one(browser, "main").text
    for sentence in (
        "Asks for records.",
        "How long to wait, in ms.",
        "How many bytes make an answer.",
        "KIP-516 Topics have an id.",
    ):
        assert sentence in text
    address = one(browser, ".kip a")
    assert address.get_attribute("href") == "https://example.org/kip"


def test_diff_of_two_versions_shows_changed_fields(opened: Open) -> None:
    browser = opened("#/diff/FetchRequest/12/13")
    changed = [row.text for row in every(browser, "tr.added, tr.removed, tr.changed")]
    assert changed == [
        "− Topic compact string",
        "+ TopicId uuid",
        "− Topic compact string",
        "+ TopicId uuid",
    ]
    assert "4 fields differ." in one(browser, "main").text


def test_gzip_batch_is_decoded_down_to_headers(opened: Open) -> None:
    browser = example(opened, 1)
    unpacked(browser)
    rows = [row.text.replace("\n", " ") for row in every(browser, ".tree .row")]
    assert any(row.startswith("Crc") and " right " in row for row in rows)
    assert any(row.startswith('Value “{"greeting":"hello"}”') for row in rows)
    assert any(row.startswith("Header [0] content-type") for row in rows)
    assert any(row.startswith("TimestampDelta 250 2023-11-14T22:13:20.250Z") for row in rows)


def test_broken_bytes_are_decoded_up_to_the_fault(opened: Open) -> None:
    browser = example(opened, 3)
    said = one(browser, ".verdict").text
    wanted = "broken at byte 85, field topics[0].name: 121 bytes are needed and 100 are left"
    assert said == f"MetadataResponse v12: {wanted}"
    assert one(browser, ".b.fault").get_attribute("data-at") == "85"
    rows = [row.text.replace("\n", " ") for row in every(browser, ".tree .row")]
    assert any(row.startswith('ClusterId "5L6g3nShT-eMCtK--X86sw"') for row in rows)


@pytest.mark.exhaustive
def test_bytes_and_fields_are_highlighted_together(opened: Open) -> None:
    browser = example(opened, 0)
    rows = every(browser, ".tree .row")
    name = next(row for row in rows if row.text.startswith("ClientSoftwareName"))
    ActionChains(browser).move_to_element(name).perform()
    lit = [cell.text for cell in every(browser, ".b.lit")]
    assert bytes.fromhex("".join(lit)) == b"\x07kproto"
    ActionChains(browser).move_to_element(every(browser, ".b")[4]).perform()
    assert one(browser, ".row.lit").text.startswith("RequestApiKey")
    browser.execute_script("document.getElementById('hex').focus()")
    press(browser, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert "byte 17: 6c, ClientId" in one(browser, "#status").get_attribute("textContent")
    browser.execute_script("document.querySelector('#tree li').focus()")
    press(browser, Keys.END)
    assert one(browser, ".row.lit").text.startswith("tagged fields")
    press(browser, Keys.HOME, Keys.ARROW_DOWN, Keys.ARROW_LEFT)
    header = browser.execute_script("return document.activeElement")
    assert header.get_attribute("aria-expanded") == "false"


#: One frame in each format in which users paste bytes.
PASTED = {
    "hex": "00000021001200040000000100086578706c6f72657200076b70726f746f06302e312e3000",
    "base64": "AAAAIQASAAQAAAABAAhleHBsb3JlcgAHa3Byb3RvBjAuMS4wAA==",
    "spaced": "0x00000021 00:12:00:04 00000001 00086578706c6f72657200076b70726f746f06302e312e3000",
    "no size": "00120004 00000001 0008 6578706c6f726572 00 07 6b70726f746f 06 302e312e30 00",
    "xxd": """
00000000: 0000 0021 0012 0004 0000 0001 0008 6578  ...!..........ex
00000010: 706c 6f72 6572 0007 6b70 726f 746f 0630  plorer..kproto.0
00000020: 2e31 2e30 00                             .1.0.
""",
    "hexdump -C": """
00000000  00 00 00 21 00 12 00 04  00 00 00 01 00 08 65 78  |...!..........ex|
00000010  70 6c 6f 72 65 72 00 07  6b 70 72 6f 74 6f 06 30  |plorer..kproto.0|
00000020  2e 31 2e 30 00                                    |.1.0.|
00000025
""",
}


@pytest.mark.parametrize("form", rest_slow(PASTED, 2, 2))
def test_pasted_bytes_are_decoded_in_every_form(opened: Open, form: str) -> None:
    browser = opened("#/decode")
    browser.execute_script(
        "const area = document.getElementById('bytes'); area.value = arguments[0];"
        "area.dispatchEvent(new Event('input'))",
        PASTED[form],
    )
    assert one(browser, ".verdict").text == "ApiVersionsRequest v4: read to the end"
    browser.refresh()  # the address contains the bytes
    assert one(browser, ".verdict").text == "ApiVersionsRequest v4: read to the end"


REJECTED = {
    "hello!": "These bytes cannot be read: line 1, column 1: “h” is no hex digit",
    "xyw=": "Request frame: broken at byte 0: a request begins with 4 bytes",
    "7fff0000": "Request frame: broken at byte 0: no API has key 32767",
    "00120063": "Request frame: broken at byte 0: ApiVersions has no request v99",
}


@pytest.mark.parametrize("text", rest_slow(REJECTED, 1, 1))
def test_bytes_that_are_no_request_are_rejected(opened: Open, text: str) -> None:
    browser = opened("#/decode")
    one(browser, "#bytes").send_keys(text)
    assert one(browser, ".verdict").text.startswith(REJECTED[text])


def test_secrets_are_masked_and_stay_out_of_the_address(opened: Open) -> None:
    request = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland")
    frame = encode_request_header(SaslAuthenticateRequest, 2, 1, "c") + request.encode(2)
    browser = opened("#/decode")
    one(browser, "#bytes").send_keys(frame.hex())
    shown = one(browser, "#decoded").get_attribute("innerHTML")
    assert "a secret, not shown" in shown
    assert "wonderland" not in shown
    secret = [cell.text for cell in every(browser, ".b")][-19:-1]
    assert set(secret) == {"··"}
    assert browser.current_url.endswith("#/decode/request/-/-")
    one(browser, ".secret input").click()
    assert "616c69636500776f6e6465726c616e64" in one(browser, "#decoded").text


def test_page_is_self_contained_small_and_fast(opened: Open, plain_address: str) -> None:
    browser = opened()
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    try:
        opened(where=plain_address)
        browser.execute_async_script(PAINTED)
        told = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    finally:
        browser.execute_cdp_cmd("Performance.disable", {})
    # Measures the page's own thread only, up to the painting, and no other process.
    (worked_s,) = [each["value"] for each in told if each["name"] == "TaskDuration"]
    assert 0 < worked_s < 0.5
    fetched = browser.execute_script("return performance.getEntriesByType('resource').length")
    assert fetched == 0
    size = browser.execute_script("return document.documentElement.outerHTML.length")
    assert size < MAX_PAGE_BYTES


@pytest.mark.exhaustive
def test_a_narrow_window_needs_no_sideways_scrolling(opened: Open) -> None:
    browser = opened()
    device = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    try:
        for fragment in PAGES:
            opened(fragment)
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= 390, fragment
        example(opened, 1)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.exhaustive
def test_a_narrow_window_has_a_short_header_and_shows_versions_beside_the_name(
    opened: Open,
) -> None:
    browser = opened()
    device = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    try:
        opened("")
        assert one(browser, ".top").rect["height"] < 60
        name = one(browser, ".grid tbody th")
        first = one(browser, ".grid tbody .v")
        assert name.rect["x"] < first.rect["x"] < 220
        at = name.rect["x"]
        browser.execute_script("document.querySelector('.scroll').scrollLeft = 400")
        assert name.rect["x"] <= at
        assert name.rect["x"] >= 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


MEANT = {"skip assignment": "SkipAssignment", "group coordinator": "FindCoordinatorRequest"}


@pytest.mark.parametrize("text", MEANT)
def test_search_finds_words_of_names_and_of_descriptions(
    opened: Open, plain_address: str, text: str
) -> None:
    browser = opened("", where=plain_address)
    press(browser, "/", text)
    until(lambda: one(browser, "h1").text == f"Search {text}")
    assert MEANT[text] in [hit.text for hit in every(browser, ".hits a")]


PAINTED = """
const done = arguments[0];
new PerformanceObserver(() => done()).observe({ type: "paint", buffered: true });
"""

PICTURES = {
    "explorer-apis": "",
    "explorer-message": "#/m/FetchRequest/13",
    "explorer-diff": "#/diff/FetchRequest/12/13",
}


def picture(browser: Chrome, file: Path) -> None:
    """Saves a screenshot, with few colors so that the file is small."""
    with Image.open(BytesIO(browser.get_screenshot_as_png())) as shot:
        shot.convert("RGB").quantize(200).save(file, optimize=True)


@pytest.mark.skipif("KPROTO_PICTURES" not in os.environ, reason="set KPROTO_PICTURES=1 to draw")
def test_pictures_for_the_documentation_are_drawn(opened: Open, plain_address: str) -> None:
    folder = ROOT / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    for name, fragment in PICTURES.items():
        browser = opened(fragment, where=plain_address)
        picture(browser, folder / f"{name}.png")
    for name, scheme in (("explorer-bytes", "light"), ("explorer-bytes-dark", "dark")):
        browser = example(opened, 1, where=plain_address, scheme=scheme)
        unpacked(browser)
        picture(browser, folder / f"{name}.png")
