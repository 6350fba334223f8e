"""Runs real Kafka nodes with listeners for TLS, client certificates and SASL, and with ACLs.

    with SecuredKafka("4.4.0") as kafka:
        connect_to(kafka.bootstrap["SASL_SSL"], ca=kafka.authority.pem, user=ALICE)

Users, passwords and certificates are generated, stored only in the nodes' folders, and removed with
the folders. The plaintext listener is for the nodes themselves and for the set-up of tests: clients
of this listener are super users.
"""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tools.setup.ports import free_ports

from .certificates import Authority, Certificate
from .cluster import KafkaCluster
from .in_block import ServerContextManager
from .node import HEAP, KafkaNode
from .properties import HOST, Ports, render

__all__ = ["LISTENERS", "MECHANISMS", "USERS", "SecuredKafka", "unsecured_token"]

#: By name of a listener: its security protocol.
LISTENERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PLAINTEXT": "PLAINTEXT",
        "SSL": "SSL",
        "MTLS": "SSL",
        "SASL_PLAINTEXT": "SASL_PLAINTEXT",
        "SASL_SSL": "SASL_SSL",
        # Like SASL_SSL, but with certificates that a client must refuse.
        "EXPIRED": "SASL_SSL",
        "WRONG_HOST": "SASL_SSL",
        # Like SASL_SSL, but sessions end after `SESSION_MS`.
        "SHORT": "SASL_SSL",
    }
)

#: The mechanisms of each SASL listener.
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

#: `admin` is a super user; tests grant rights to the other users.
USERS: Final = ("admin", "alice", "bob")

#: The length of a session on the listener SHORT, in ms.
SESSION_MS: Final = 3_000

_CLASSES: Final = "org.apache.kafka.common.security"
_JAAS: Final = {
    "SCRAM-SHA-256": f"{_CLASSES}.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": f"{_CLASSES}.scram.ScramLoginModule required;",
    "OAUTHBEARER": (
        f"{_CLASSES}.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="admin";'
    ),
}


class SecuredKafka(ServerContextManager):
    """Nodes of one release with every listener of `LISTENERS`; `passwords` maps users to passwords.

    If `nodes` is above 1, the nodes form one cluster; `racks` are as in `KafkaCluster`. With
    `authorizer`, only super users have rights until ACLs are created. `config` overrides settings
    of server.properties. Raises the errors of `KafkaNode`.
    """

    def __init__(
        self,
        version: str,
        *,
        nodes: int = 1,
        racks: Sequence[str] = (),
        authorizer: bool = True,
        config: Mapping[str, str] | None = None,
        detached: bool = False,
    ) -> None:
        self.authority = Authority()
        #: The certificate for a client of the listener MTLS.
        self.client_certificate = self.authority.client("alice")
        self.passwords = {user: secrets.token_urlsafe(12) for user in USERS}
        count = len(LISTENERS)
        free = free_ports(nodes * (count + 1))
        listening = [free[at * count : (at + 1) * count] for at in range(nodes)]
        ports = [
            Ports(broker=its[0], controller=controller)
            for its, controller in zip(listening, free[nodes * count :], strict=True)
        ]
        addresses = [
            {name: f"{HOST}:{port}" for name, port in zip(LISTENERS, its, strict=True)}
            for its in listening
        ]
        #: By name of a listener: `host:port` of each node, joined by commas.
        self.bootstrap = {name: ",".join(each[name] for each in addresses) for name in LISTENERS}
        settings = self._tls() | self._sasl()
        if authorizer:
            settings |= {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:admin;User:ANONYMOUS",
            }
        self.cluster = KafkaCluster(
            version,
            nodes=nodes,
            racks=racks,
            ports=ports,
            configs=[_listeners(each, its) for each, its in zip(ports, addresses, strict=True)],
            config={**settings, **(config or {})},
            heap=HEAP,
            format_arguments=[
                argument
                for user, password in self.passwords.items()
                for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
                for argument in ("--add-scram", f"{mechanism}=[name={user},password={password}]")
            ],
            detached=detached,
        )

    @property
    def node(self) -> KafkaNode:
        """Returns the first node."""
        return self.cluster.node(1)

    def _tls(self) -> dict[str, str]:
        right = self.authority.server(HOST, "localhost")
        wrong = self.authority.server("elsewhere.example.com")
        expired = self.authority.server(HOST, expired=True)
        settings = {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self.authority.pem,
            **_keystore("", right),
            "listener.name.mtls.ssl.client.auth": "required",
        }
        for name, certificate in (("wrong_host", wrong), ("expired", expired)):
            settings |= _keystore(f"listener.name.{name}.", certificate)
        return settings

    def _sasl(self) -> dict[str, str]:
        users = " ".join(f'user_{user}="{word}"' for user, word in self.passwords.items())
        plain = (
            f'{_CLASSES}.plain.PlainLoginModule required username="admin" '
            f'password="{self.passwords["admin"]}" {users};'
        )
        settings = {
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "delegation.token.secret.key": secrets.token_urlsafe(16),
        }
        for name, protocol in LISTENERS.items():
            if protocol.startswith("SASL"):
                for mechanism, jaas in {"PLAIN": plain, **_JAAS}.items():
                    prefix = f"listener.name.{name.lower()}.{mechanism.lower()}"
                    settings[f"{prefix}.sasl.jaas.config"] = jaas
                    if name == "SHORT":
                        settings[f"{prefix}.connections.max.reauth.ms"] = str(SESSION_MS)
        return settings

    def properties(self, listener: str, mechanism: str, user: str = "alice") -> dict[str, str]:
        """Returns the properties of a client of a listener, with Java's names."""
        protocol = LISTENERS[listener]
        found = {
            "bootstrap.servers": self.bootstrap[listener],
            "security.protocol": protocol,
        }
        if protocol.endswith("SSL"):
            found["ssl.truststore.type"] = "PEM"
            found["ssl.truststore.certificates"] = self.authority.pem
        if listener == "MTLS":
            found["ssl.keystore.type"] = "PEM"
            found["ssl.keystore.certificate.chain"] = self.client_certificate.chain
            found["ssl.keystore.key"] = self.client_certificate.key
        if protocol.startswith("SASL"):
            module = {"PLAIN": "plain.PlainLoginModule"}.get(mechanism, "scram.ScramLoginModule")
            found["sasl.mechanism"] = mechanism
            found["sasl.jaas.config"] = (
                f"{_CLASSES}.oauthbearer.OAuthBearerLoginModule required "
                f'unsecuredLoginStringClaim_sub="{user}";'
                if mechanism == "OAUTHBEARER"
                else f'{_CLASSES}.{module} required username="{user}" '
                f'password="{self.passwords[user]}";'
            )
        return found

    def write_properties(self) -> list[Path]:
        """Writes a client.properties per listener and mechanism, and returns their paths."""
        assert self.node.folder is not None, "a node that was started has a folder"
        target = self.node.folder / "clients"
        target.mkdir(mode=0o700, exist_ok=True)
        written = []
        for listener, protocol in LISTENERS.items():
            for mechanism in MECHANISMS if protocol.startswith("SASL") else ("",):
                name = f"{listener}-{mechanism}" if mechanism else listener
                path = target / f"{name}.properties".lower()
                path.touch(mode=0o600)
                path.write_text(render(self.properties(listener, mechanism)), encoding="utf-8")
                written.append(path)
        return written

    def start(self) -> None:
        """Starts the stopped nodes; ports, users and data stay."""
        self.cluster.start()

    def close(self) -> None:
        """Stops all nodes and removes their data."""
        self.cluster.close()


def unsecured_token(user: str, *, lifetime_s: float = 3600.0) -> str:
    """Returns an unsigned JWT, which Kafka's unsecured token validator accepts (KIP-255)."""
    now = time.time()
    header = {"alg": "none"}
    claims = {"sub": user, "iat": now, "exp": now + lifetime_s}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode("ascii")
        for part in (header, claims)
    ]
    return ".".join([*parts, ""])


def _listeners(ports: Ports, addresses: Mapping[str, str]) -> dict[str, str]:
    listening = [f"{name}://{address}" for name, address in addresses.items()]
    protocols = [f"{name}:{protocol}" for name, protocol in LISTENERS.items()]
    return {
        "listeners": ",".join([*listening, f"CONTROLLER://{HOST}:{ports.controller}"]),
        "advertised.listeners": ",".join(listening),
        "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
    }


def _keystore(prefix: str, certificate: Certificate) -> dict[str, str]:
    return {
        f"{prefix}ssl.keystore.type": "PEM",
        f"{prefix}ssl.keystore.certificate.chain": certificate.chain,
        f"{prefix}ssl.keystore.key": certificate.key,
    }
