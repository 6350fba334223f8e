"""Converts `ssl.*` properties to a `Tls`. Opens no file."""

from __future__ import annotations

from typing import Any, Final

from ..wire.errors import ConfigurationError
from .configured_property import ConfiguredByRow, ConfiguredProperty, resolve_synonyms
from .tls import Tls

__all__ = ["tls_from_properties"]

#: Commands that convert a store to PEM, by the store and its type.
_CONVERSIONS: Final = {
    ("truststore", "PKCS12"): "openssl pkcs12 -in STORE -nokeys -out ca.pem",
    ("truststore", "JKS"): "keytool -list -rfc -keystore STORE > ca.pem",
    ("keystore", "PKCS12"): "openssl pkcs12 -in STORE -out me.pem",
    ("keystore", "JKS"): (
        "keytool -importkeystore -srckeystore STORE -destkeystore me.p12 -deststoretype PKCS12, "
        "then: openssl pkcs12 -in me.p12 -out me.pem"
    ),
}
_PEM_FILES: Final = {"truststore": "ca.pem", "keystore": "me.pem"}

#: The value of ssl.ca.location with which librdkafka uses the system's CA certificates.
_PROBE: Final = "probe"


def tls_from_properties(given: ConfiguredByRow) -> bool | Tls:
    """Returns the `Tls` that the given TLS properties set; True if they set nothing.

    Raises ConfigurationError for a store that is not PEM, with the command that converts it; for
    contradicting properties; and for a key or its password without a certificate.
    """
    parts: dict[str, Any] = {}
    ca = resolve_synonyms(
        [
            _store(given, "truststore"),
            _inline(given, "truststore", "truststore_pem"),
            given.get("ca"),
            given.get("ca_pem"),
        ]
    )
    if ca is not None and str(ca.value) != _PROBE:
        parts["ca"] = ca.value
    keystore = _store(given, "keystore")
    chain = [_inline(given, "keystore", "keystore_chain_pem")]
    certificate = resolve_synonyms(
        [keystore, *chain, given.get("certificate"), given.get("certificate_pem")]
    )
    inline_key = _inline(given, "keystore", "keystore_key_pem")
    key = resolve_synonyms([inline_key, given.get("key"), given.get("key_pem")])
    if certificate is not None:
        parts["certificate"] = certificate.value
        if keystore is not None and key is not None:
            raise ConfigurationError(
                f"{keystore.property} holds the private key too: omit {key.property}"
            )
    elif key is not None:
        raise ConfigurationError(
            f"{key.property} is set without its certificate: set ssl.keystore.certificate.chain,"
            " ssl.certificate.location or ssl.certificate.pem"
        )
    if key is not None:
        parts["key"] = key.value
    if (password := given.get("key_password")) is not None:
        if certificate is None:
            raise ConfigurationError(
                f"{password.property} is set without a certificate and a key: set ssl.keystore.*, "
                "or ssl.certificate.location and ssl.key.location"
            )
        parts["key_password"] = password.value
    for name in ("verify", "check_hostname"):
        if (switch := given.get(name)) is not None and switch.value is False:
            parts[name] = False
    return Tls(**parts) if parts else True


def _store(given: ConfiguredByRow, store: str) -> ConfiguredProperty | None:
    """Returns the property `ssl.STORE.location` of the `store`; None if it is not set.

    Raises ConfigurationError if the store is not PEM.
    """
    location = given.get(store)
    if location is None:
        _type(given, store)  # raises for an unsupported type, also without a file
        return None
    kind = _type(given, store) or "JKS"
    if kind != "PEM":
        how = _CONVERSIONS[store, kind if kind == "PKCS12" else "JKS"]
        default = "" if f"{store}_type" in given else f", because ssl.{store}.type is not set"
        raise ConfigurationError(
            f"{location.property} is a {kind} store{default}; kproto reads only PEM. Convert it: "
            f"{how}. Then set ssl.{store}.type=PEM and ssl.{store}.location={_PEM_FILES[store]}, "
            f"without ssl.{store}.password"
        )
    return location


def _inline(given: ConfiguredByRow, store: str, row: str) -> ConfiguredProperty | None:
    """Returns the property `row`, whose value is PEM text; None if it is not set.

    If the property is set, raises ConfigurationError for an `ssl.STORE.type` other than PEM.
    """
    text = given.get(row)
    if text is not None and _type(given, store) not in ("PEM", None):
        raise ConfigurationError(
            f"{text.property} is PEM, and ssl.{store}.type differs: set ssl.{store}.type=PEM"
        )
    return text


def _type(given: ConfiguredByRow, store: str) -> str | None:
    kind = given.get(f"{store}_type")
    if kind is None:
        return None
    folded = str(kind.value).upper()
    if folded not in ("PEM", "JKS", "PKCS12"):
        raise ConfigurationError(
            f"{kind.property} must be PEM: kproto reads no other stores, neither JKS nor PKCS12"
        )
    return folded
