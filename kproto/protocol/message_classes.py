"""Maps api keys to classes of requests and responses: Kafka's, and those of a user's own packages.

kproto-codegen generates these packages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final

from .. import messages
from ..messages.base import Request, Response
from ..wire.errors import ConfigurationError

__all__ = ["KAFKA_MESSAGES", "MessageClasses", "missing_half", "response_of"]


class MessageClasses:
    """Holds the requests and responses that one side of a connection can read, by api key.

    They are Kafka's, those of `packages`, and `requests` with their responses. If several have the
    same api key, one of `requests` overrides one of `packages`, a later package overrides an
    earlier one, and each overrides Kafka's. Raises ConfigurationError if a package is not generated
    by kproto-codegen, if a request has no response, or if a response has no request.
    """

    def __init__(self, *packages: ModuleType, requests: Iterable[type[Request[Any]]] = ()) -> None:
        self._packages: dict[int, ModuleType] = {}
        for package in (messages, *packages):
            keys = getattr(package, "API_KEYS", None)
            if not isinstance(keys, dict):
                raise ConfigurationError(
                    f"{package!r} is no package of messages, as kproto-codegen generates them"
                )
            if package is not messages:  # Kafka's own has both; a check would load its lazy modules
                _check_pairs(package)
            self._packages.update(dict.fromkeys(keys, package))
        self._requests: dict[int, type[Request[Response]]] = {}
        for cls in requests:
            if response_of(cls) is None:
                raise ConfigurationError(f"{cls.__name__}: {missing_half(cls)}")
            self._requests[cls.API_KEY] = cls

    def request(self, api_key: int) -> type[Request[Response]] | None:
        """Returns the request class with this api key; None if there is none."""
        return self._requests.get(api_key) or self._of_package(api_key, 0)

    def response(self, api_key: int) -> type[Response] | None:
        """Returns the response class with this api key; None if there is none."""
        request = self._requests.get(api_key)
        found: type[Response] | None = (
            self._of_package(api_key, 1) if request is None else response_of(request)
        )
        return found

    def _of_package(self, api_key: int, place: int) -> Any:
        package = self._packages.get(api_key)
        return package and getattr(package, package.API_KEYS[api_key][place])


def missing_half(cls: type[Request[Any] | Response]) -> str:
    """Returns the error text for a request class that has no response class, or the reverse.

    `cls` is the class that exists.
    """
    other = "response" if issubclass(cls, Request) else "request"
    return (
        f"its package has no {other} of api key {cls.API_KEY}; define one and generate the "
        "package again"
    )


def _check_pairs(package: ModuleType) -> None:
    """Raises ConfigurationError if `package` has a request or a response without the other."""
    paired = {name for names in package.API_KEYS.values() for name in names}
    for name in getattr(package, "MODULES", ()):
        if name not in paired and name.removesuffix("_").endswith(("Request", "Response")):
            cls = getattr(package, name)
            if issubclass(cls, Request | Response):  # else it is data with such a name
                raise ConfigurationError(f"{package.__name__}.{name}: {missing_half(cls)}")


#: Only the classes of `kproto.messages`.
KAFKA_MESSAGES: Final = MessageClasses()


def response_of(request: type[Request[Any]]) -> type[Response] | None:
    """Returns the response class of a request class, from the package of the request.

    Returns None if the package has no response with the api key of the request.
    """
    try:
        return _response_classes[request]
    except KeyError:
        answer = _response_classes[request] = _response_in_package(request)
        return answer


#: The results of `response_of`, cached by request class: every sent request needs one.
_response_classes: Final[dict[Any, type[Response] | None]] = {}


def _response_in_package(request: type[Request[Any]]) -> type[Response] | None:
    made = request._generated()
    package = sys.modules.get(made.__module__.rpartition(".")[0])
    names = getattr(package, "API_KEYS", {}).get(made.API_KEY)
    if names is None or names[0] != made.__name__:
        return None
    found: type[Response] = getattr(package, names[1])
    return found
