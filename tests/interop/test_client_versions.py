"""Compares the page of other clients' API versions with the installed clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from kproto.schema import study
from tests.support.availability import not_available
from tests.support.environment import ROOT
from tests.support.go_programs import built
from tools.client_versions import (
    client_versions,
    kmsg_folder,
    librdkafka_versions,
    markdown,
    ranges_text,
)
from tools.setup.librdkafka import LibrdkafkaError, librdkafka_source


@pytest.mark.peers
def test_the_page_has_the_versions_of_the_installed_clients(
    peers_python: Path, tmp_path: Path
) -> None:
    assert peers_python.exists()
    # The build downloads kmsg to Go's module cache, unless it is there.
    built("Go's kmsg", ROOT / "tools" / "fuzz_adapters" / "kmsg", tmp_path)
    assert kmsg_folder().exists()
    try:
        librdkafka_source()
    except LibrdkafkaError as error:
        not_available("the source of librdkafka", error)
    clients = client_versions()
    page = (ROOT / "docs" / "reference" / "client-versions.md").read_text(encoding="utf-8")
    assert page.endswith("\n\n" + markdown(clients))
    for name, rows in clients.items():
        for key, versions in rows.items():
            assert study.api_name(key), (name, key)
            assert versions == sorted(set(versions))


@pytest.mark.parametrize(
    ("versions", "text"),
    [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([0, 1, 2, 5], "0-2, 5"), ([1, 3, 4], "1, 3-4")],
)
def test_ranges(versions: list[int], text: str) -> None:
    assert ranges_text(versions) == text


def test_table_has_a_row_for_each_api_of_any_client_but_java() -> None:
    made = markdown({"Java 4.4.0": {0: [3, 4], 7: [1]}, "other 1.0": {0: [0], 999: [1]}})
    assert made == (
        "| key | API | Java 4.4.0 | other 1.0 |\n"
        "| --- | --- | --- | --- |\n"
        "| 0 | Produce | 3-4 | 0 |\n"
    )


def test_versions_of_librdkafka_are_read_from_its_source(tmp_path: Path) -> None:
    (tmp_path / "rdkafka.h").write_text("#define RD_KAFKA_VERSION 0x020f01ff\n")
    (tmp_path / "rdkafka_protocol.h").write_text(
        "".join(
            f"#define RD_KAFKAP_{name} {key}\n"
            for name, key in {
                "Produce": 0,
                "Fetch": 1,
                "Metadata": 3,
                "EndTxn": 26,
                "Alter": 51,
            }.items()
        )
        + "#define RD_KAFKAP_ApiVersion 18\n"
    )
    (tmp_path / "rdkafka_request.c").write_text(
        "        ApiVersion = rd_kafka_broker_ApiVersion_supported(\n"
        "            rkb, RD_KAFKAP_EndTxn, 0, 1, NULL);\n"
        "        int16_t max_version   = 13;\n"
        "        rd_kafka_broker_ApiVersion_supported(\n"
        "            rkb, RD_KAFKAP_Metadata, 9, max_version, &features);\n"
        "        rd_kafka_broker_ApiVersion_supported(rkb, RD_KAFKAP_Metadata, 0, 1, NULL);\n"
        "        rkbuf = rd_kafka_buf_new_flexver_request(\n"
        "            rkb, RD_KAFKAP_Alter, 1, 100, rd_true);\n"
        "\nvoid rd_kafka_ApiVersionRequest(rd_kafka_broker_t *rkb) {\n"
        "        if (ApiVersion == -1)\n"
        "                ApiVersion = 3;\n"
        "        rkbuf = rd_kafka_buf_new_flexver_request(\n"
        "            rkb, RD_KAFKAP_ApiVersion, 1, 3, ApiVersion >= 3);\n"
        "}\n"
    )
    (tmp_path / "rdkafka_msgset_writer.c").write_text(
        "static const int16_t newest = 10;\n"
        "        const int16_t max_version = newest;\n"
        "        rd_kafka_broker_ApiVersion_supported(rkb, RD_KAFKAP_Produce, 0, max_version, 0);\n"
    )
    (tmp_path / "rdkafka_mock.c").write_text(
        "        rd_kafka_broker_ApiVersion_supported(rkb, RD_KAFKAP_Fetch, 0, 99, NULL);\n"
    )
    release, versions = librdkafka_versions(tmp_path)
    assert release == "2.15.1"
    assert {key: ranges_text(each) for key, each in versions.items()} == {
        0: "0-10",
        3: "0-1, 9-13",
        18: "0-3",
        26: "0-1",
        51: "0",
    }
