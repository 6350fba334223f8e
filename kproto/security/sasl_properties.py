"""Converts `sasl.*` properties to an object for the client's setting `sasl`. Does no I/O.

Java's clients have their credentials in `sasl.jaas.config`, librdkafka has the credentials in
`sasl.username` and `sasl.password`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..wire.errors import ConfigurationError
from .configured_property import ConfiguredByRow, ConfiguredProperty, resolve_synonyms
from .jaas import LoginModule, parse_jaas
from .mechanisms import DelegationToken, OAuthBearer, Plain, ScramSha256, ScramSha512
from .sasl import Sasl
from .tls import Tls
from .token_sources import TokenFile, UnsecuredToken, fixed_token

__all__ = ["sasl_from_properties"]

_PASSWORDS: Final[dict[str, Callable[[str, str], Sasl]]] = {
    "PLAIN": Plain,
    "SCRAM-SHA-256": ScramSha256,
    "SCRAM-SHA-512": ScramSha512,
}
_BEARER: Final = "OAUTHBEARER"
_NAMES: Final = (*_PASSWORDS, _BEARER)

_KAFKA: Final = "org.apache.kafka.common.security."
_KERBEROS: Final = "Krb5LoginModule"

#: The mechanisms of each login module. Libraries that shade Kafka prepend their own package to the
#: class name.
_MODULES: Final = {
    f"{_KAFKA}plain.PlainLoginModule": ("PLAIN",),
    f"{_KAFKA}scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    f"{_KAFKA}oauthbearer.OAuthBearerLoginModule": (_BEARER,),
}

#: JAAS option names of the OAUTHBEARER login callback handlers, by purpose.
_GRANT: Final = {
    "url": "sasl.oauthbearer.token.endpoint.url",  # in Kafka a property, not a JAAS option
    "id": "clientId",
    "secret": "clientSecret",
    "scope": "scope",
    "token": "",
}
_STRIMZI: Final = {
    "url": "oauth.token.endpoint.uri",
    "id": "oauth.client.id",
    "secret": "oauth.client.secret",
    "scope": "oauth.scope",
    "token": "oauth.access.token",
}
_UNSECURED: Final = (
    f"{_KAFKA}oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
)
_HANDLERS: Final = {
    f"{_KAFKA}oauthbearer.OAuthBearerLoginCallbackHandler": _GRANT,
    f"{_KAFKA}oauthbearer.secured.OAuthBearerLoginCallbackHandler": _GRANT,
    _UNSECURED: _GRANT,
    "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler": _STRIMZI,
}
_RETRIEVERS: Final = ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")
_EXTENSION: Final = "extension_"

#: Values that an error may quote: the name of a mechanism (RFC 4422, 3.1) or of a Java class.
_MECHANISM: Final = re.compile(r"[A-Z0-9_-]{1,20}")
_CLASS: Final = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)+")


def sasl_from_properties(given: ConfiguredByRow) -> Sasl:
    """Returns the mechanism and credentials for `given`, the properties that concern SASL.

    Raises ConfigurationError for an unknown mechanism, a missing property or a contradiction; no
    error contains a secret.
    """
    mechanism = _mechanism(given)
    module = _module(given, mechanism)
    if mechanism == _BEARER:
        return _bearer(given, {} if module is None else module.options)
    options = {} if module is None else module.options
    username = _from_both(given, "username", module, "username")
    password = _from_both(given, "password", module, "password")
    if options.get("tokenauth", "").strip().lower() == "true":
        return DelegationToken(username, password, mechanism)
    try:
        return _PASSWORDS[mechanism](username, password)
    except ConfigurationError as error:  # for a NUL in name or password
        raise ConfigurationError(f"sasl.*: {error}") from None


def _mechanism(given: ConfiguredByRow) -> str:
    named = given.get("mechanism")
    if named is None:
        raise ConfigurationError(
            "sasl.mechanism is not set, and its default is GSSAPI, which kproto does not have: set "
            f"it to one of {', '.join(_NAMES)}"
        )
    mechanism = str(named.value)
    if mechanism in _NAMES:
        return mechanism
    if mechanism == "GSSAPI":
        raise _no_kerberos(named.property)
    is_ = f"is {mechanism!r}" if _MECHANISM.fullmatch(mechanism) else "is no mechanism"
    raise ConfigurationError(
        f"{named.property} {is_}; kproto has {', '.join(_NAMES)}. For another one pass an object: "
        "from_properties(…, sasl=…); see kproto.security.Sasl"
    )


def _module(given: ConfiguredByRow, mechanism: str) -> LoginModule | None:
    """Returns the login module of `sasl.jaas.config`; None if this property is not set.

    Raises ConfigurationError if the module is unknown, or not for `mechanism`.
    """
    jaas = given.get("jaas")
    if jaas is None:
        return None
    module = parse_jaas(jaas.value)
    if module.name.endswith(_KERBEROS):
        raise _no_kerberos(jaas.property)
    for name, mechanisms in _MODULES.items():
        if module.name == name or module.name.endswith(f".{name}"):
            if mechanism in mechanisms:
                return module
            raise ConfigurationError(
                f"sasl.jaas.config has {name.rpartition('.')[2]}, which is for "
                f"{' and '.join(mechanisms)}, and sasl.mechanism is {mechanism}"
            )
    class_text = f" {module.name}" if _CLASS.fullmatch(module.name) else ""
    raise ConfigurationError(
        f"sasl.jaas.config has a login module{class_text} that kproto does not support; it "
        f"supports {', '.join(name.rpartition('.')[2] for name in _MODULES)}"
    )


def _no_kerberos(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} asks for GSSAPI (Kerberos), which kproto does not have: use SCRAM, OAUTHBEARER or "
        "a client certificate, for which brokers can have another listener"
    )


def _from_both(given: ConfiguredByRow, row: str, module: LoginModule | None, option: str) -> str:
    """Returns the value of librdkafka's property `sasl.ROW`, or else the login module's `option`.

    Raises ConfigurationError if neither is set, if the value is empty, or if both are set and
    differ.
    """
    there = given.get(row)
    if module is not None and option in module.options:
        inside = ConfiguredProperty(
            f"the option {option} of sasl.jaas.config", module.options[option]
        )
        there = resolve_synonyms([there, inside])
    if there is None:
        origin = (
            f"sasl.{row}, or sasl.jaas.config" if module is None else f"the option {option} of it"
        )
        what = "sasl.jaas.config" if module is not None else "sasl.mechanism"
        raise ConfigurationError(f"{what} needs a {option}, and none is set: set {origin}")
    if not there.value:
        raise ConfigurationError(f"{there.property} is empty; set it")
    return str(there.value)


# OAUTHBEARER


def _bearer(given: ConfiguredByRow, options: Mapping[str, str]) -> Sasl:
    words, unsecured = _handler(given)
    extensions = _extensions(given, options)
    if words["token"] and words["token"] in options:
        token = fixed_token(options[words["token"]])
        return OAuthBearer(token, extensions)
    url = resolve_synonyms([given.get("token_url"), _option(options, words["url"])])
    if url is None or unsecured:
        claims = UnsecuredToken.from_options(options)
        if claims is not None:
            return OAuthBearer(claims, extensions)
    if url is None:
        raise ConfigurationError(
            "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url, with a client's id and secret; "
            "or pass a function for tokens: from_properties(…, sasl=kproto.OAuthBearer(function))"
        )
    if str(url.value).lower().startswith("file:"):
        return OAuthBearer(TokenFile.of_url(url.property, str(url.value)), extensions)
    return _client_credentials(given, options, words, url, extensions)


def _client_credentials(
    given: ConfiguredByRow,
    options: Mapping[str, str],
    words: Mapping[str, str],
    url: ConfiguredProperty,
    extensions: Mapping[str, str],
) -> Sasl:
    """Returns the client-credentials grant (RFC 6749, 4.4; KIP-768) with the token URL `url`.

    `words` has the JAAS option names for the id, secret and scope.
    """
    found: dict[str, Any] = {}
    for row, word in (("client_id", "id"), ("client_secret", "secret"), ("scope", "scope")):
        there = resolve_synonyms([given.get(row), _option(options, words[word])])
        if there is None and row != "scope":
            name = f"sasl.oauthbearer.client.credentials.{row.replace('_', '.')}"
            raise ConfigurationError(
                f"OAUTHBEARER needs {name}, or the option {words[word]} of sasl.jaas.config"
            )
        if there is not None and not there.value:
            raise ConfigurationError(f"{there.property} is empty; set it, or omit it")
        if there is not None:
            found[row] = there.value
    if extensions:
        found["extensions"] = extensions
    ca = resolve_synonyms([given.get("https_ca"), given.get("https_ca_pem")])
    if ca is not None:
        found["tls"] = Tls(ca=ca.value)
    if (encoded := given.get("url_encoded")) is not None:
        found["url_encoded"] = encoded.value
    from .oauth_grant import ClientCredentials  # here, because it loads an HTTP client

    try:
        return ClientCredentials(str(url.value), **found)
    except ConfigurationError as error:
        raise ConfigurationError(f"{url.property}: {error}") from None


def _handler(given: ConfiguredByRow) -> tuple[Mapping[str, str], bool]:
    """Returns the names of the JAAS options of the login callback handler, by purpose.

    Also returns True if the handler is Kafka's handler for unsecured tokens, otherwise False.
    Raises ConfigurationError for a handler, grant type or retriever that kproto does not support.
    """
    grant = given.get("grant")
    if grant is not None and grant.value != "client_credentials":
        raise ConfigurationError(f"{grant.property} must be client_credentials, the only one here")
    retriever = given.get("retriever")
    if retriever is not None and str(retriever.value).rpartition(".")[2] not in _RETRIEVERS:
        raise _no_class(retriever)
    handler = given.get("login_handler")
    if handler is None:
        return _GRANT, False
    for name, words in _HANDLERS.items():
        if handler.value == name or str(handler.value).endswith(f".{name}"):
            return words, name == _UNSECURED
    raise _no_class(handler)


def _no_class(given: ConfiguredProperty) -> ConfigurationError:
    value_text = f" is {given.value}," if _CLASS.fullmatch(given.value) else " is"
    return ConfigurationError(
        f"{given.property}{value_text} a Java class that kproto does not support: pass a "
        "function that gets a token, from_properties(…, sasl=kproto.OAuthBearer(function))"
    )


def _option(options: Mapping[str, str], name: str) -> ConfiguredProperty | None:
    if name not in options:
        return None
    return ConfiguredProperty(f"the option {name} of sasl.jaas.config", options[name])


def _extensions(given: ConfiguredByRow, options: Mapping[str, str]) -> dict[str, str]:
    """Returns the SASL extensions (KIP-342).

    Java's clients set extensions by JAAS options `extension_NAME`, librdkafka sets them by a
    property with `key=value,…`.
    """
    found = {
        key.removeprefix(_EXTENSION): value
        for key, value in options.items()
        if key.startswith(_EXTENSION)
    }
    there = given.get("extensions")
    if there is not None:
        pairs = [
            pair.strip().partition("=") for pair in str(there.value).split(",") if pair.strip()
        ]
        if not all(key and equals and value for key, equals, value in pairs):
            raise ConfigurationError(f"{there.property} must be key=value,key=value")
        extensions = {key: value for key, _, value in pairs}
        if found and extensions != found:
            raise ConfigurationError(
                f"{there.property} and the options {_EXTENSION}… of sasl.jaas.config differ: leave "
                "one of them out"
            )
        found = extensions
    return found
