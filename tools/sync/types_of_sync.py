"""Changes types of the asyncio client to those of the blocking client."""

from __future__ import annotations

import ast
from typing import Final

__all__ = ["REPLACED", "sync_type"]

#: The types that have another name in the blocking client, and the module of each below
#: `kproto.sync`; classes of `classes` keep their names.
REPLACED: Final = {
    "Delivery": ("Delivery", "deliveries"),
    "BatchDelivery": ("BatchDelivery", "deliveries"),
    "RawBatchIteration": ("RawBatchIteration", "iterations"),
    "RecordIteration": ("RecordIteration", "iterations"),
    "RecordListIteration": ("RecordListIteration", "iterations"),
    "ShareIteration": ("ShareIteration", "iterations"),
    "ShareListIteration": ("ShareListIteration", "iterations"),
    "ValueIteration": ("ValueIteration", "iterations"),
    "RebalanceCallback": ("RebalanceCallback", "threaded_functions"),
    "TransactionalOffsetSource": ("GroupConsumer", "group_consumer"),
}

#: The arguments of replaced types that are generic, if the asyncio type is not.
_ARGUMENTS: Final = {"TransactionalOffsetSource": "Any, Any, Any"}


def sync_type(annotation: ast.expr) -> ast.expr:
    """Returns the type of the blocking client: `T` for `Awaitable[T]`, for example."""
    changed = _Changes().visit(annotation)
    assert isinstance(changed, ast.expr), "it stays an expression"
    return changed


class _Changes(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "Awaitable":
            return self.visit(node.slice)  # type: ignore[no-any-return]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in REPLACED:
            name = REPLACED[node.id][0]
            arguments = _ARGUMENTS.get(node.id)
            text = name if arguments is None else f"{name}[{arguments}]"
            return ast.parse(text, mode="eval").body
        return node
