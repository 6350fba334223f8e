"""Reads and writes the four messages of SCRAM (RFC 5802, 5 and 7), between text and fields.

A message that client and server sign keeps its text, because they sign the exact characters. The
readers skip unknown extensions, as the RFC requires, but refuse `m=`, which marks a mandatory
extension. Errors quote no part of a message except the server's own error value.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ...wire.errors import AuthenticationError
from .text import decode_text, encode_text

__all__ = ["ClientFinal", "ClientFirst", "ServerFinal", "ServerFirst", "is_nonce"]

#: The extension with which Kafka's client marks a delegation token: the token's id is the name, and
#: its HMAC the password (KIP-48).
DELEGATION_EXTENSION: Final = "tokenauth"

#: Maximum number of characters of a server's error value that an error quotes.
MAX_ERROR_VALUE_CHARACTERS: Final = 100

#: The flags for no channel binding: the client does not support it (n), or assumes that the server
#: does not (y). The flag `p=…` demands channel binding, which only the -PLUS mechanisms have.
_NO_CHANNEL_BINDING: Final = ("n", "y")

# RFC 5802, 7: printable = %x21-2B / %x2D-7E, all visible ASCII characters except the comma.
_NONCE: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
# In the RFC the name of an attribute is one letter; Kafka's extensions have longer names.
_ATTRIBUTE: Final = re.compile(r"([A-Za-z]+)=([^\0]+)")
# posit-number, with at most the ten digits of an int32.
_ITERATIONS: Final = re.compile(r"[1-9][0-9]{0,9}")
_ESCAPE: Final = re.compile(r"=(2C|3D)?")

_Attributes: TypeAlias = list[tuple[str, str]]


def is_nonce(text: str) -> bool:
    """Returns True if SCRAM allows `text` as a nonce."""
    return _NONCE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """Holds `n,,n=user,r=nonce`: the user, and the client's nonce.

    `gs2_header` and `bare` are the two halves of the text. `authorization_id` is "" if the client
    sent none. `token_auth` is True if `username` is the id of a delegation token.
    """

    username: str
    nonce: str
    gs2_header: str
    bare: str
    authorization_id: str = ""
    token_auth: bool = False

    @classmethod
    def build(cls, username: str, nonce: str, *, token_auth: bool) -> ClientFirst:
        """Returns the message of a client without channel binding and authorization id."""
        bare = f"n={_escape(username)},r={nonce}"
        if token_auth:
            bare += f",{DELEGATION_EXTENSION}=true"
        return cls(username, nonce, "n,,", bare, token_auth=token_auth)

    @classmethod
    def parse(cls, token: bytes) -> ClientFirst:
        """Parses the message. Raises `AuthenticationError` if it is malformed."""
        where = "the client's first SCRAM message"
        flag, acting_for, bare = _split_gs2_header(decode_text(token, where), where)
        attributes = _attributes(bare, where)
        extensions = dict(_trailing_attributes(attributes, ("n", "r"), where))
        (_, name), (_, nonce) = attributes[:2]
        return cls(
            username=_unescape(name, where),
            nonce=_nonce(nonce, where),
            gs2_header=f"{flag},{acting_for},",
            bare=bare,
            authorization_id=_authorization_id(acting_for, where),
            token_auth=extensions.get(DELEGATION_EXTENSION, "").lower() == "true",
        )

    def encode(self) -> bytes:
        """Returns the message as sent."""
        return encode_text(self.gs2_header + self.bare, "user name")


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """Holds `r=nonce,s=salt,i=iterations`.

    `nonce` is the client's nonce, followed by the server's; `text` is the whole message.
    """

    nonce: str
    salt: bytes = field(repr=False)
    iterations: int
    text: str = field(repr=False)

    @classmethod
    def build(cls, nonce: str, salt: bytes, iterations: int) -> ServerFirst:
        """Returns a server's first message, without extensions."""
        text = f"r={nonce},s={_to_base64(salt)},i={iterations}"
        return cls(nonce, salt, iterations, text)

    @classmethod
    def parse(cls, token: bytes) -> ServerFirst:
        """Parses the message.

        Raises `AuthenticationError` if it is malformed or carries a server's error (`e=`).
        """
        where = "the server's first SCRAM message"
        text = decode_text(token, where)
        attributes = _attributes(text, where)
        _refuse_error(attributes)
        _trailing_attributes(attributes, ("r", "s", "i"), where)
        (_, nonce), (_, salt), (_, iterations) = attributes[:3]
        if not _ITERATIONS.fullmatch(iterations):
            raise AuthenticationError(f"{where} has an iteration count that is no number: i=")
        return cls(_nonce(nonce, where), _from_base64(salt, "s", where), int(iterations), text)

    def encode(self) -> bytes:
        """Returns the bytes of the message, which the server sends."""
        return self.text.encode()


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """Holds `c=binding,r=nonce,p=proof`, the proof that the client knows the password.

    `channel_binding` repeats the GS2 header. `without_proof` is the message without `,p=proof`.
    """

    channel_binding: bytes
    nonce: str
    without_proof: str
    proof: bytes = field(repr=False)

    @staticmethod
    def text_to_sign(gs2_header: str, nonce: str) -> str:
        """Returns the client's final message without its proof, as both sides sign it."""
        return f"c={_to_base64(gs2_header.encode())},r={nonce}"

    @classmethod
    def parse(cls, token: bytes) -> ClientFinal:
        """Parses the message. Raises `AuthenticationError` if it is malformed."""
        where = "the client's final SCRAM message"
        without_proof, comma, proof = decode_text(token, where).rpartition(",p=")
        if not comma:
            raise AuthenticationError(f"{where} does not end with a proof, p=")
        attributes = _attributes(without_proof, where)
        _trailing_attributes(attributes, ("c", "r"), where)
        (_, binding), (_, nonce) = attributes[:2]
        return cls(
            channel_binding=_from_base64(binding, "c", where),
            nonce=_nonce(nonce, where),
            without_proof=without_proof,
            proof=_from_base64(proof, "p", where),
        )

    @staticmethod
    def encode(without_proof: str, proof: bytes) -> bytes:
        """Returns the bytes of the message: `without_proof`, `,p=` and `proof` in base64."""
        return f"{without_proof},p={_to_base64(proof)}".encode()


@dataclass(frozen=True, slots=True)
class ServerFinal:
    """Holds `v=signature`, the proof that the server knows the user's keys."""

    signature: bytes = field(repr=False)

    @classmethod
    def parse(cls, token: bytes) -> ServerFinal:
        """Parses the message.

        Raises `AuthenticationError` if it is malformed or carries a server's error (`e=`).
        """
        where = "the server's final SCRAM message"
        attributes = _attributes(decode_text(token, where), where)
        _refuse_error(attributes)
        _trailing_attributes(attributes, ("v",), where)
        return cls(_from_base64(attributes[0][1], "v", where))

    def encode(self) -> bytes:
        """Returns the message as sent."""
        return f"v={_to_base64(self.signature)}".encode()


def _split_gs2_header(text: str, where: str) -> tuple[str, str, str]:
    """Returns the channel binding flag, the authorization id (`a=…` or ""), and the other text.

    The GS2 header (RFC 5802, 7: gs2-header) has the flag and the authorization id. Raises
    AuthenticationError if the header is missing or invalid, or requires channel binding.
    """
    parts = text.split(",", 2)
    if len(parts) < 3:
        raise AuthenticationError(f"{where} lacks its GS2 header, such as n,,")
    flag, acting_for, bare = parts
    if flag.startswith("p="):
        raise AuthenticationError(
            f"{where} requires channel binding, which only the -PLUS mechanisms have"
        )
    if flag not in _NO_CHANNEL_BINDING:
        raise AuthenticationError(f"{where} has no channel binding flag: it must begin with n or y")
    return flag, acting_for, bare


def _authorization_id(acting_for: str, where: str) -> str:
    """Returns the user in `a=saslname`, or "" if the client acts for its own user."""
    if not acting_for:
        return ""
    ((name, value),) = _attributes(acting_for, where)
    if name != "a":
        raise AuthenticationError(f"{where} has another attribute in place of a=")
    return _unescape(value, where)


def _attributes(text: str, where: str) -> _Attributes:
    """Returns `a=x,b=y` as pairs."""
    matches = [_ATTRIBUTE.fullmatch(part) for part in text.split(",")]
    pairs = [(match[1], match[2]) for match in matches if match]
    if len(pairs) != len(matches):
        raise AuthenticationError(f"{where} is not a list of attributes, name=value")
    return pairs


def _trailing_attributes(
    attributes: _Attributes, names: tuple[str, ...], where: str
) -> _Attributes:
    """Returns the attributes that follow those called `names`.

    `attributes` must begin with attributes of these names, in the order of `names`. Otherwise
    raises `AuthenticationError`. Also raises it for `m=`, which stands for a mandatory extension.
    """
    if attributes[0][0] == "m":
        raise AuthenticationError(f"{where} demands an extension that is not known here, m=")
    if tuple(name for name, _ in attributes[: len(names)]) != names:
        due = ", ".join(f"{name}=" for name in names)
        raise AuthenticationError(f"{where} does not begin with {due}")
    return attributes[len(names) :]


def _refuse_error(attributes: _Attributes) -> None:
    """Raises the server's error in `e=` (RFC 5802, 7: server-error)."""
    name, value = attributes[0]
    if name == "e":
        raise AuthenticationError(
            "the server refused the SCRAM exchange with"
            f" {value[:MAX_ERROR_VALUE_CHARACTERS]!r}: check user name, password and mechanism"
        )


def _nonce(text: str, where: str) -> str:
    if not is_nonce(text):
        raise AuthenticationError(f"{where} has a nonce of other than printable ASCII, r=")
    return text


def _to_base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _from_base64(text: str, name: str, where: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise AuthenticationError(f"{where} has something other than base64 in {name}=") from None


def _escape(name: str) -> str:
    """Returns a saslname (RFC 5802, 5.1): escapes `=` first, because the escapes contain `=`."""
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescape(name: str, where: str) -> str:
    """Returns the name in a saslname (RFC 5802, 5.1).

    Raises AuthenticationError if an equals sign begins neither `=2C` nor `=3D`.
    """

    def character(match: re.Match[str]) -> str:
        if match[1] is None:
            raise AuthenticationError(f"{where} has a name with = other than in =2C and =3D")
        return "," if match[1] == "2C" else "="

    return _ESCAPE.sub(character, name)
