"""Lists the supported properties: a `Row` for each setting, with the properties that set it.

The names are those of Kafka's Java clients and, if it differs, librdkafka's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .property_values import (
    ADDRESSES,
    ANY_TEXT,
    FILE,
    PEM,
    SECRET,
    SWITCH,
    TEXT,
    Kind,
    choice,
    several,
    whole,
)

__all__ = ["IGNORED_PREFIXES", "ROWS", "Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """Describes one setting, and the properties (`names`) that set it.

    If a source has several of `names`, their values must be equal. `name` is the setting; it is
    unique within its `part`, which is one of

    bootstrap   the bootstrap addresses
    settings    arguments of ClientSettings
    producer    arguments of `Client.producer`
    consumer    arguments of `Client.consumer`
    group       arguments of `Client.consumer` that only members of a group have
    security    `security.protocol`
    tls, sasl   together give one object for the client's setting `tls` or `sasl`
    """

    part: str
    name: str
    names: tuple[str, ...]
    kind: Kind
    #: A description for the documentation; "" if the names say enough.
    meaning: str = ""


#: A time in ms from 1 to the largest Java int, which is 24 days.
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
    Row("bootstrap", "bootstrap", ("bootstrap.servers", "metadata.broker.list"), ADDRESSES),
    Row("settings", "client_id", ("client.id",), ANY_TEXT),
    Row("settings", "rack", ("client.rack",), ANY_TEXT, "empty for none"),
    Row(
        "settings",
        "connect_timeout_ms",
        ("socket.connection.setup.timeout.ms",),
        _MS,
        "to open a connection, to secure it, and to agree on versions",
    ),
    Row(
        "settings",
        "connect_timeout_max_ms",
        ("socket.connection.setup.timeout.max.ms",),
        _MS,
    ),
    Row("settings", "reconnect_backoff_ms", ("reconnect.backoff.ms",), whole(0)),
    Row("settings", "reconnect_backoff_max_ms", ("reconnect.backoff.max.ms",), whole(0)),
    Row("settings", "connections_max_idle_ms", ("connections.max.idle.ms",), whole(0)),
    Row("settings", "request_timeout_ms", ("request.timeout.ms", "socket.timeout.ms"), _MS),
    Row("settings", "delivery_timeout_ms", ("delivery.timeout.ms", "message.timeout.ms"), _MS),
    Row("settings", "api_timeout_ms", ("default.api.timeout.ms",), _MS),
    Row("settings", "retry_backoff_ms", ("retry.backoff.ms",), _MS),
    Row("settings", "retry_backoff_max_ms", ("retry.backoff.max.ms",), _MS),
    Row("settings", "metadata_max_age_ms", ("metadata.max.age.ms",), _MS),
    Row(
        "settings",
        "metadata_recovery_strategy",
        ("metadata.recovery.strategy",),
        choice({each: each for each in ("rebootstrap", "none")}),
    ),
    Row(
        "settings",
        "metadata_recovery_rebootstrap_trigger_ms",
        ("metadata.recovery.rebootstrap.trigger.ms",),
        whole(0),
    ),
    Row("settings", "max_frame_bytes", ("receive.message.max.bytes",), whole(1000)),
    Row("settings", "max_request_bytes", ("max.request.size", "message.max.bytes"), whole(1)),
    Row(
        "producer",
        "compression",
        ("compression.type", "compression.codec"),
        choice({each: each for each in ("none", "gzip", "snappy", "lz4", "zstd")}),
    ),
    Row("producer", "linger_ms", ("linger.ms", "queue.buffering.max.ms"), whole(0)),
    Row("producer", "batch_bytes", ("batch.size",), whole(1)),
    Row("producer", "buffer_bytes", ("buffer.memory",), whole(1, 2**63 - 1)),
    Row(
        "producer",
        "max_in_flight",
        ("max.in.flight.requests.per.connection", "max.in.flight"),
        whole(1),
        "more than 5 end idempotence, unless `enable.idempotence` asks for it",
    ),
    Row("producer", "idempotent", ("enable.idempotence",), SWITCH),
    Row(
        "producer",
        "acks",
        ("acks", "request.required.acks"),
        choice({"all": "all", "-1": "all", "0": "fewer", "1": "fewer"}),
        "always `all`; 0 and 1 are logged",
    ),
    Row(
        "consumer",
        "start",
        ("auto.offset.reset",),
        choice(
            {
                **dict.fromkeys(("earliest", "smallest", "beginning"), "earliest"),
                **dict.fromkeys(("latest", "largest", "end"), "latest"),
                **dict.fromkeys(("none", "error"), "none"),
            }
        ),
        "`none` and `error` are for consumers of a group: others have no position that could be "
        "missing",
    ),
    Row(
        "consumer",
        "max_partition_fetch_bytes",
        ("max.partition.fetch.bytes", "fetch.message.max.bytes"),
        whole(1),
    ),
    Row("consumer", "max_wait_ms", ("fetch.max.wait.ms", "fetch.wait.max.ms"), whole(0)),
    Row(
        "consumer",
        "read_committed",
        ("isolation.level",),
        choice({"read_committed": True, "read_uncommitted": False}, any_case=True),
    ),
    Row(
        "group",
        "group",
        ("group.id",),
        TEXT,
        "consumers of this client are members of it, unless they say `group=None` or another",
    ),
    Row("group", "instance_id", ("group.instance.id",), TEXT),
    Row(
        "group",
        "group_protocol",
        ("group.protocol",),
        choice({each: each for each in ("classic", "consumer")}, any_case=True),
        "without it the one that the group has, or the newer one: `auto`",
    ),
    Row("group", "server_assignor", ("group.remote.assignor",), TEXT),
    Row("group", "session_timeout_ms", ("session.timeout.ms",), _MS),
    Row("group", "heartbeat_interval_ms", ("heartbeat.interval.ms",), _MS),
    Row("group", "max_poll_interval_ms", ("max.poll.interval.ms",), _MS),
    Row("group", "auto_commit", ("enable.auto.commit",), SWITCH),
    Row("group", "auto_commit_interval_ms", ("auto.commit.interval.ms",), _MS),
    Row(
        "group",
        "assignors",
        ("partition.assignment.strategy",),
        several(_ASSIGNORS),
        "the names, or Kafka's classes; one of your own is given in Python",
    ),
    Row(
        "security",
        "protocol",
        ("security.protocol",),
        choice(
            {each: each.upper() for each in ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")},
            any_case=True,
        ),
        "PLAINTEXT where it is not set; `ssl.*` and `sasl.*` count only where it asks for them",
    ),
    Row(
        "tls",
        "check_hostname",
        ("ssl.endpoint.identification.algorithm",),
        choice({"https": True, "none": False, "": False}, any_case=True),
        "empty or `none`: the certificate may be for any name",
    ),
    Row(
        "tls",
        "verify",
        ("enable.ssl.certificate.verification",),
        SWITCH,
        "`false`: the broker is not authenticated",
    ),
    Row("tls", "truststore_type", ("ssl.truststore.type",), TEXT, "PEM; JKS where it is not set"),
    Row("tls", "truststore", ("ssl.truststore.location",), FILE, "a file of PEM"),
    Row("tls", "truststore_pem", ("ssl.truststore.certificates",), PEM),
    Row("tls", "ca", ("ssl.ca.location",), FILE, "a file of PEM, or `probe`: those of the system"),
    Row("tls", "ca_pem", ("ssl.ca.pem",), PEM),
    Row("tls", "keystore_type", ("ssl.keystore.type",), TEXT, "PEM; JKS where it is not set"),
    Row("tls", "keystore", ("ssl.keystore.location",), FILE, "PEM: private key and certificates"),
    Row("tls", "keystore_chain_pem", ("ssl.keystore.certificate.chain",), PEM),
    Row("tls", "keystore_key_pem", ("ssl.keystore.key",), PEM),
    Row("tls", "certificate", ("ssl.certificate.location",), FILE),
    Row("tls", "certificate_pem", ("ssl.certificate.pem",), PEM),
    Row("tls", "key", ("ssl.key.location",), FILE),
    Row("tls", "key_pem", ("ssl.key.pem",), PEM),
    Row("tls", "key_password", ("ssl.key.password",), SECRET),
    Row(
        "sasl",
        "mechanism",
        ("sasl.mechanism", "sasl.mechanisms"),
        TEXT,
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER",
    ),
    Row(
        "sasl",
        "jaas",
        ("sasl.jaas.config",),
        SECRET,
        "PlainLoginModule, ScramLoginModule (`tokenauth` too) or OAuthBearerLoginModule",
    ),
    Row("sasl", "username", ("sasl.username",), TEXT),
    Row("sasl", "password", ("sasl.password",), SECRET),
    Row(
        "sasl",
        "login_handler",
        ("sasl.login.callback.handler.class",),
        TEXT,
        "Kafka's OAuthBearerLoginCallbackHandler and its unsecured one, Strimzi's",
    ),
    Row("sasl", "token_url", ("sasl.oauthbearer.token.endpoint.url",), TEXT, "or a `file:` URL"),
    Row(
        "sasl",
        "client_id",
        ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id"),
        TEXT,
    ),
    Row(
        "sasl",
        "client_secret",
        ("sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret"),
        SECRET,
    ),
    Row("sasl", "scope", ("sasl.oauthbearer.scope",), TEXT),
    Row(
        "sasl",
        "url_encoded",
        ("sasl.oauthbearer.header.urlencode",),
        SWITCH,
        "`true`: id and secret are URL-encoded, as RFC 6749 wants it",
    ),
    Row("sasl", "extensions", ("sasl.oauthbearer.extensions",), SECRET, "`key=value,key=value`"),
    Row(
        "sasl",
        "method",
        ("sasl.oauthbearer.method",),
        choice({"oidc": "oidc", "default": "default"}, any_case=True),
    ),
    Row(
        "sasl",
        "grant",
        ("sasl.oauthbearer.grant.type",),
        TEXT,
        "client_credentials",
    ),
    Row(
        "sasl",
        "retriever",
        ("sasl.oauthbearer.jwt.retriever.class",),
        TEXT,
        "Kafka's Default-, ClientCredentials- and FileJwtRetriever",
    ),
    Row("sasl", "https_ca", ("https.ca.location",), FILE, "trusted for the token's URL"),
    Row("sasl", "https_ca_pem", ("https.ca.pem",), PEM, "the same"),
)

#: Prefixes of a schema registry client's properties, which the same file may have; accepted, and
#: without an effect.
IGNORED_PREFIXES: Final = ("schema.registry.", "basic.auth.", "bearer.auth.")
