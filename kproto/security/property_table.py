"""Lists the supported properties: a `PropertyMapping` for each setting has its properties.

Each property has its name in Kafka's Java clients and, if it differs, its name in librdkafka.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .property_values import (
    ADDRESSES,
    ANY_TEXT,
    FILE,
    OLD_RELEASE,
    PEM,
    SECRET,
    SWITCH,
    TEXT,
    PropertyType,
    choice,
    kilobytes,
    or_by_duration,
    several,
    whole,
)

__all__ = ["IGNORED_PREFIXES", "ROWS", "PropertyMapping"]


@dataclass(frozen=True, slots=True)
class PropertyMapping:
    """Describes one setting, and the properties (`names`) that set it.

    If a source has several of `names`, their values must be equal. `name` is the setting; it is
    unique within its `part`, which is one of

    bootstrap   the bootstrap addresses
    settings    arguments of ClientSettings
    producer    arguments of `Client.producer`
    consumer    arguments of `Client.consumer`
    group       arguments of `Client.consumer` that only members of a group have
    share       arguments of `Client.share_consumer` that no other consumer has
    security    `security.protocol`
    tls, sasl   all rows of the part make one object for the client's setting `tls` or `sasl`
    """

    part: str
    name: str
    names: tuple[str, ...]
    kind: PropertyType
    #: A description for the documentation; "" if the names say enough.
    meaning: str = ""


#: A time in ms from 1 to the largest Java int (24 days).
_MS: Final = whole(1)

#: Assignors by librdkafka's names and by the classes of Kafka's Java client.
_ASSIGNORS: Final = {
    **{each: each for each in ("range", "roundrobin", "sticky", "cooperative-sticky")},
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}

ROWS: Final = (
    PropertyMapping(
        "bootstrap", "bootstrap", ("bootstrap.servers", "metadata.broker.list"), ADDRESSES
    ),
    PropertyMapping("settings", "client_id", ("client.id",), ANY_TEXT),
    PropertyMapping("settings", "rack", ("client.rack",), ANY_TEXT, "empty for none"),
    PropertyMapping(
        "settings",
        "broker_version",
        ("broker.version.fallback",),
        OLD_RELEASE,
        "for brokers before 0.10; of no effect for later releases, which report their versions",
    ),
    PropertyMapping(
        "settings",
        "connect_timeout_ms",
        ("socket.connection.setup.timeout.ms",),
        _MS,
        "for opening and securing a connection, and for ApiVersions",
    ),
    PropertyMapping(
        "settings",
        "connect_timeout_max_ms",
        ("socket.connection.setup.timeout.max.ms",),
        _MS,
    ),
    PropertyMapping("settings", "reconnect_backoff_ms", ("reconnect.backoff.ms",), whole(0)),
    PropertyMapping(
        "settings", "reconnect_backoff_max_ms", ("reconnect.backoff.max.ms",), whole(0)
    ),
    PropertyMapping("settings", "connections_max_idle_ms", ("connections.max.idle.ms",), whole(0)),
    PropertyMapping(
        "settings", "request_timeout_ms", ("request.timeout.ms", "socket.timeout.ms"), _MS
    ),
    PropertyMapping(
        "settings", "delivery_timeout_ms", ("delivery.timeout.ms", "message.timeout.ms"), _MS
    ),
    PropertyMapping("settings", "api_timeout_ms", ("default.api.timeout.ms",), _MS),
    PropertyMapping("settings", "retry_backoff_ms", ("retry.backoff.ms",), _MS),
    PropertyMapping("settings", "retry_backoff_max_ms", ("retry.backoff.max.ms",), _MS),
    PropertyMapping("settings", "metadata_max_age_ms", ("metadata.max.age.ms",), _MS),
    PropertyMapping(
        "settings",
        "metadata_recovery_strategy",
        ("metadata.recovery.strategy",),
        choice({each: each for each in ("rebootstrap", "none")}),
    ),
    PropertyMapping(
        "settings",
        "metadata_recovery_rebootstrap_trigger_ms",
        ("metadata.recovery.rebootstrap.trigger.ms",),
        whole(0),
    ),
    PropertyMapping("settings", "max_frame_bytes", ("receive.message.max.bytes",), whole(1000)),
    PropertyMapping(
        "settings", "max_request_bytes", ("max.request.size", "message.max.bytes"), whole(1)
    ),
    PropertyMapping(
        "producer",
        "compression",
        ("compression.type", "compression.codec"),
        choice({each: each for each in ("none", "gzip", "snappy", "lz4", "zstd")}),
    ),
    PropertyMapping("producer", "linger_ms", ("linger.ms", "queue.buffering.max.ms"), whole(0)),
    PropertyMapping("producer", "batch_bytes", ("batch.size",), whole(1)),
    PropertyMapping("producer", "buffer_bytes", ("buffer.memory",), whole(1, 2**63 - 1)),
    PropertyMapping(
        "producer",
        "max_in_flight",
        ("max.in.flight.requests.per.connection", "max.in.flight"),
        whole(1),
        "above 5 the producer is not idempotent, unless `enable.idempotence` is set",
    ),
    PropertyMapping("producer", "idempotent", ("enable.idempotence",), SWITCH),
    PropertyMapping(
        "producer",
        "acks",
        ("acks", "request.required.acks"),
        choice({"all": "all", "-1": "all", "0": 0, "1": 1}),
        "with 0 or 1 the producer is not idempotent",
    ),
    PropertyMapping(
        "producer",
        "partitioner",
        ("partitioner",),
        choice(
            {
                each: each
                for each in (
                    "random",
                    "consistent",
                    "consistent_random",
                    "murmur2",
                    "murmur2_random",
                    "fnv1a",
                    "fnv1a_random",
                )
            }
        ),
        "default `murmur2_random`",
    ),
    PropertyMapping(
        "producer",
        "transactional_id",
        ("transactional.id",),
        TEXT,
        "of all producers of this client that do not set `transactional_id`",
    ),
    PropertyMapping("producer", "transaction_timeout_ms", ("transaction.timeout.ms",), _MS),
    PropertyMapping(
        "consumer",
        "start",
        ("auto.offset.reset",),
        or_by_duration(
            choice(
                {
                    **dict.fromkeys(("earliest", "smallest", "beginning"), "earliest"),
                    **dict.fromkeys(("latest", "largest", "end"), "latest"),
                    **dict.fromkeys(("none", "error"), "none"),
                }
            )
        ),
        "also `by_duration:PT1H` (KIP-1106); `none` and `error` apply only to consumers of a "
        "group; a share group has the config `share.auto.offset.reset`",
    ),
    PropertyMapping(
        "consumer",
        "max_partition_fetch_bytes",
        ("max.partition.fetch.bytes", "fetch.message.max.bytes"),
        whole(1),
    ),
    PropertyMapping(
        "consumer", "max_wait_ms", ("fetch.max.wait.ms", "fetch.wait.max.ms"), whole(0)
    ),
    PropertyMapping("consumer", "fetch_min_bytes", ("fetch.min.bytes",), whole(0)),
    PropertyMapping("consumer", "fetch_max_bytes", ("fetch.max.bytes",), whole(1)),
    PropertyMapping(
        "consumer",
        "queued_max_bytes",
        ("queued.max.messages.kbytes",),
        kilobytes(1, 2_097_151),
        "in KB, for all partitions of a consumer together",
    ),
    PropertyMapping("consumer", "max_poll_records", ("max.poll.records",), whole(1)),
    PropertyMapping(
        "consumer",
        "allow_auto_create_topics",
        ("allow.auto.create.topics",),
        SWITCH,
        "default false; `client.producer` has the same argument, and no property sets it",
    ),
    PropertyMapping(
        "consumer",
        "read_committed",
        ("isolation.level",),
        choice({"read_committed": True, "read_uncommitted": False}, any_case=True),
        "a share group has the config `share.isolation.level`",
    ),
    PropertyMapping(
        "group",
        "group",
        ("group.id",),
        TEXT,
        "the group of all consumers of this client that do not set `group`",
    ),
    PropertyMapping("group", "instance_id", ("group.instance.id",), TEXT),
    PropertyMapping(
        "group",
        "group_protocol",
        ("group.protocol",),
        choice({each: each for each in ("classic", "consumer")}, any_case=True),
        "default `auto`: the protocol of the group; for a new group the consumer protocol",
    ),
    PropertyMapping("group", "server_assignor", ("group.remote.assignor",), TEXT),
    PropertyMapping("group", "session_timeout_ms", ("session.timeout.ms",), _MS),
    PropertyMapping("group", "heartbeat_interval_ms", ("heartbeat.interval.ms",), _MS),
    PropertyMapping("group", "max_poll_interval_ms", ("max.poll.interval.ms",), _MS),
    PropertyMapping("group", "auto_commit", ("enable.auto.commit",), SWITCH),
    PropertyMapping("group", "auto_commit_interval_ms", ("auto.commit.interval.ms",), _MS),
    PropertyMapping(
        "group",
        "assignors",
        ("partition.assignment.strategy",),
        several(_ASSIGNORS),
        "names, or Kafka's classes; your own assignor needs `client.consumer(assignors=…)`",
    ),
    PropertyMapping(
        "share",
        "acknowledgement",
        ("share.acknowledgement.mode",),
        choice({each: each for each in ("implicit", "explicit")}, any_case=True),
    ),
    PropertyMapping(
        "share",
        "acquire_mode",
        ("share.acquire.mode",),
        choice({each: each for each in ("batch_optimized", "record_limit")}, any_case=True),
    ),
    PropertyMapping(
        "security",
        "protocol",
        ("security.protocol",),
        choice(
            {each: each.upper() for each in ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")},
            any_case=True,
        ),
        "default PLAINTEXT; `ssl.*` and `sasl.*` apply only if the protocol includes them",
    ),
    PropertyMapping(
        "tls",
        "check_hostname",
        ("ssl.endpoint.identification.algorithm",),
        choice({"https": True, "none": False, "": False}, any_case=True),
        "empty or `none`: the certificate may be for any name",
    ),
    PropertyMapping(
        "tls",
        "verify",
        ("enable.ssl.certificate.verification",),
        SWITCH,
        "`false`: the broker is not authenticated",
    ),
    PropertyMapping(
        "tls",
        "truststore_type",
        ("ssl.truststore.type",),
        TEXT,
        "PEM; the default, JKS, is refused",
    ),
    PropertyMapping("tls", "truststore", ("ssl.truststore.location",), FILE, "a PEM file"),
    PropertyMapping("tls", "truststore_pem", ("ssl.truststore.certificates",), PEM),
    PropertyMapping(
        "tls", "ca", ("ssl.ca.location",), FILE, "a PEM file; `probe`: the CAs of the system"
    ),
    PropertyMapping("tls", "ca_pem", ("ssl.ca.pem",), PEM),
    PropertyMapping(
        "tls", "keystore_type", ("ssl.keystore.type",), TEXT, "PEM; the default, JKS, is refused"
    ),
    PropertyMapping(
        "tls", "keystore", ("ssl.keystore.location",), FILE, "PEM: private key and certificates"
    ),
    PropertyMapping("tls", "keystore_chain_pem", ("ssl.keystore.certificate.chain",), PEM),
    PropertyMapping("tls", "keystore_key_pem", ("ssl.keystore.key",), PEM),
    PropertyMapping("tls", "certificate", ("ssl.certificate.location",), FILE),
    PropertyMapping("tls", "certificate_pem", ("ssl.certificate.pem",), PEM),
    PropertyMapping("tls", "key", ("ssl.key.location",), FILE),
    PropertyMapping("tls", "key_pem", ("ssl.key.pem",), PEM),
    PropertyMapping("tls", "key_password", ("ssl.key.password",), SECRET),
    PropertyMapping(
        "sasl",
        "mechanism",
        ("sasl.mechanism", "sasl.mechanisms"),
        TEXT,
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER",
    ),
    PropertyMapping(
        "sasl",
        "jaas",
        ("sasl.jaas.config",),
        SECRET,
        "PlainLoginModule, ScramLoginModule (also with `tokenauth`) or OAuthBearerLoginModule",
    ),
    PropertyMapping("sasl", "username", ("sasl.username",), TEXT),
    PropertyMapping("sasl", "password", ("sasl.password",), SECRET),
    PropertyMapping(
        "sasl",
        "login_handler",
        ("sasl.login.callback.handler.class",),
        TEXT,
        "Kafka's OAuthBearerLoginCallbackHandler and its unsecured variant, or Strimzi's handler",
    ),
    PropertyMapping(
        "sasl", "token_url", ("sasl.oauthbearer.token.endpoint.url",), TEXT, "or a `file:` URL"
    ),
    PropertyMapping(
        "sasl",
        "client_id",
        ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id"),
        TEXT,
    ),
    PropertyMapping(
        "sasl",
        "client_secret",
        ("sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret"),
        SECRET,
    ),
    PropertyMapping("sasl", "scope", ("sasl.oauthbearer.scope",), TEXT),
    PropertyMapping(
        "sasl",
        "url_encoded",
        ("sasl.oauthbearer.header.urlencode",),
        SWITCH,
        "`true`: id and secret are URL-encoded, as RFC 6749 requires",
    ),
    PropertyMapping(
        "sasl", "extensions", ("sasl.oauthbearer.extensions",), SECRET, "`key=value,key=value`"
    ),
    PropertyMapping(
        "sasl",
        "method",
        ("sasl.oauthbearer.method",),
        choice({"oidc": "oidc", "default": "default"}, any_case=True),
    ),
    PropertyMapping(
        "sasl",
        "grant",
        ("sasl.oauthbearer.grant.type",),
        TEXT,
        "client_credentials",
    ),
    PropertyMapping(
        "sasl",
        "retriever",
        ("sasl.oauthbearer.jwt.retriever.class",),
        TEXT,
        "Kafka's Default-, ClientCredentials- and FileJwtRetriever",
    ),
    PropertyMapping("sasl", "https_ca", ("https.ca.location",), FILE, "the CAs for the token URL"),
    PropertyMapping("sasl", "https_ca_pem", ("https.ca.pem",), PEM, "the CAs for the token URL"),
)

#: Prefixes of a schema registry client's properties, which the same file may have; accepted, and
#: without an effect.
IGNORED_PREFIXES: Final = ("schema.registry.", "basic.auth.", "bearer.auth.")
