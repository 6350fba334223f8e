"""The client without `await`, for scripts, notebooks, and services such as Flask and Django.

`kproto.sync.Client` has the names, arguments and results of `kproto.Client`; its methods block the
calling thread. All clients of a process share one event loop in one thread, and any thread may call
them. `python -m tools.sync` writes the classes from those of the asyncio client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .admin.admin import Admin
    from .broker_connection import BrokerConnection
    from .client import Client
    from .consumer import Consumer
    from .deliveries import BatchDelivery, Delivery
    from .group_consumer import GroupConsumer
    from .handler_transaction import HandlerTransaction
    from .producer import Producer
    from .share_consumer import ShareConsumer
    from .transaction import Transaction

__all__ = [
    "Admin",
    "BatchDelivery",
    "BrokerConnection",
    "Client",
    "Consumer",
    "Delivery",
    "GroupConsumer",
    "HandlerTransaction",
    "Producer",
    "ShareConsumer",
    "Transaction",
]

#: The module of each public name.
_MODULES: Final = {
    "Admin": ".admin.admin",
    "BatchDelivery": ".deliveries",
    "BrokerConnection": ".broker_connection",
    "Client": ".client",
    "Consumer": ".consumer",
    "Delivery": ".deliveries",
    "GroupConsumer": ".group_consumer",
    "HandlerTransaction": ".handler_transaction",
    "Producer": ".producer",
    "ShareConsumer": ".share_consumer",
    "Transaction": ".transaction",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"{__name__} has no public name {name!r}")
    found = getattr(import_module(_MODULES[name], __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
