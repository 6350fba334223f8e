"""Writes one module of the blocking client from the syntax tree of an asyncio class."""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tools.sync.classes import BY_NAME, SyncClass
from tools.sync.prose import sync_docstring
from tools.sync.types_of_sync import REPLACED, sync_type

__all__ = ["ROOT", "emitted", "emitted_path"]

ROOT: Final = Path(__file__).resolve().parents[2]

_HEAD: Final = '''\
"""`{name}` without `await`.

`python -m tools.sync` writes this module from `{module}`.
"""

from __future__ import annotations

'''

#: The names of special methods in the blocking client.
_RENAMED: Final = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}

#: The docstrings of the attributes, which become properties.
_ATTRIBUTES: Final = {
    "settings": "The settings.",
    "undelivered": "The records by topic that have failed, and whose error no call has raised.",
    "address": "The address of the broker.",
    "ranges": "The versions of each API that the broker supports, by API key.",
    "message_magic": "The newest record format that the broker accepts.",
    "finalized_features": "The level of each finalized feature by name (KIP-584).",
}

#: The statement by which `Producer[str, Order]` works in annotations that are evaluated.
_ALIAS: Final = "__class_getitem__ = classmethod(GenericAlias)"
_ALIAS_REASON: Final = "`typing.Generic` knows no defaults of type variables before Python 3.13"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def emitted_path(cls: SyncClass) -> Path:
    """Returns the path of the module with the blocking form of a class."""
    return ROOT / f"kproto/sync/{cls.target}.py"


def emitted(cls: SyncClass) -> str:
    """Returns the formatted module with the blocking form of a class.

    Raises LookupError for a name or an attribute that the tables must have, but do not.
    """
    return _Module(cls).text()


class _Module:
    """The asyncio modules of a class, and the text of the blocking module."""

    def __init__(self, cls: SyncClass) -> None:
        self.cls = cls
        self.alias = f"_{cls.name}"
        self.trees = {module: _tree(module) for module in [cls.module, *cls.inherited]}
        self.tree = self.trees[cls.module]
        self.imports: dict[str, str] = {}
        for module, tree in self.trees.items():
            self.imports.update(_imports(module, tree))
        self.class_node = _class_node(self.tree, cls.name)
        inherited = (
            _class_node(self.trees[module], name) for module, name in cls.inherited.items()
        )
        self.body = [each for node in (self.class_node, *inherited) for each in node.body]

    def text(self) -> str:
        code = "\n".join(self._class_lines())
        imports = [*self._import_lines(ast.parse(code))]
        module = f"kproto/client/{self.cls.module}.py"
        head = _HEAD.format(name=self.cls.name, module=module)
        exported = f'__all__ = ["{self.cls.name}"]\n'
        text = "\n".join([head, *imports, "", exported, *self._type_variables(code), "", code, ""])
        return _formatted(text)

    # The class

    def _class_lines(self) -> Iterator[str]:
        cls, node = self.cls, self.class_node
        bases = cls.bases.format(wrapped=self.alias)
        yield f"class {cls.name}({bases}):"
        yield from _docstring_lines(ast.get_docstring(node, clean=False) or "", 4)
        yield ""
        yield "    __slots__ = ()"
        if any(isinstance(each, ast.If) and _is_alias(each) for each in node.body):
            yield f"\n    if not TYPE_CHECKING:  # {_ALIAS_REASON}"
            yield f"        {_ALIAS}"
        for name in self._public_attributes():
            yield f"\n    @property\n    def {name}(self) -> {cls.attributes[name]}:"
            yield f'        """{_ATTRIBUTES[name]}"""\n        return self._wrapped.{name}'
        for each in self.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and self._is_public(each):
                yield ""
                yield from self._method_lines(each)

    def _is_public(self, method: Function) -> bool:
        name = method.name
        if self.cls.bodies.get(name) == "":
            return False
        if name.startswith("__") or self.cls.only is not None:
            return name in {*self.cls.bodies, *(self.cls.only or _RENAMED)}
        return not name.startswith("_")

    def _public_attributes(self) -> list[str]:
        """Returns the public attributes that `__init__` sets.

        Raises LookupError if the table of the class lacks the type of one.
        """
        found: dict[str, None] = {}
        for method in self.class_node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                for node in ast.walk(method):
                    if (
                        isinstance(node, ast.Attribute)
                        and isinstance(node.ctx, ast.Store)
                        and isinstance(node.value, ast.Name)
                        and node.value.id == "self"
                        and not node.attr.startswith("_")
                    ):
                        found[node.attr] = None
        if self.cls.only is not None:
            return [*self.cls.attributes]
        missing = [name for name in found if name not in self.cls.attributes]
        if missing:
            raise LookupError(
                f"{self.cls.name}.{missing[0]}: add its type to `attributes` in tools/sync/classes"
            )
        return [*found]

    def _method_lines(self, method: Function) -> Iterator[str]:
        decorators = {ast.unparse(each) for each in method.decorator_list}
        for each in method.decorator_list:
            name = ast.unparse(each)
            name = {"cached_property": "property", "abstractmethod": ""}.get(name, name)
            if name:
                yield f"    @{name}"
        name = _RENAMED.get(method.name, method.name)
        arguments = _sync_arguments(method.args)
        returns = "None" if method.returns is None else ast.unparse(sync_type(method.returns))
        yield f"    def {name}({ast.unparse(arguments)}) -> {returns}:"
        if "overload" in decorators:
            yield "        ..."
            return
        self._check_result(method)
        docstring = ast.get_docstring(method, clean=False)
        if docstring is not None:
            yield from _docstring_lines(docstring, 8)
        body = self._body(method, decorators, returns)
        yield from (f"        {line}" if line else "" for line in body.splitlines())

    def _body(self, method: Function, decorators: set[str], returns: str) -> str:
        name = method.name
        passed, items = _passed(method.args), _items(method.args)
        if name in self.cls.bodies:
            return self.cls.bodies[name].replace("{args}", passed).replace("{items}", items)
        target = f"self._wrapped.{name}"
        call = f"{target}, {passed}" if passed else target
        if name == "__aenter__":
            return f"self._call({target})\nreturn self"
        has_close = any(isinstance(e, Function) and e.name == "close" for e in self.class_node.body)
        if name in {"close", "__aexit__"} and has_close:
            return f"self._end(lambda: {target}({passed}))"
        if decorators & {"property", "cached_property"}:
            return f"return self._read(lambda: {target})"
        how = "_call" if isinstance(method, ast.AsyncFunctionDef) else "_call_plain"
        returned = "" if returns == "None" else "return "
        return f"{returned}self.{how}({call})"

    def _check_result(self, method: Function) -> None:
        """Raises LookupError if a method returns an asyncio object, and no code wraps it."""
        if method.returns is None or method.name in self.cls.bodies:
            return
        for node in ast.walk(method.returns):
            if not isinstance(node, ast.Name) or node.id == self.cls.name:
                continue
            where = f"{self.cls.name}.{method.name} returns {node.id}"
            if node.id in BY_NAME or node.id in REPLACED:
                raise LookupError(
                    f"{where}: add code that wraps it to `bodies`, in tools/sync/classes"
                )
            if _is_awaitable_class(self.imports.get(node.id, "")):
                raise LookupError(f"{where}: add the class to CLASSES, in tools/sync/classes")

    # Names

    def _import_lines(self, code: ast.Module) -> Iterator[str]:
        """Yields the imports of the names in `code`. Raises LookupError for an unknown name."""
        local = _local_names(code)
        type_only = []
        variables = "\n".join(self._type_variables(ast.unparse(code)))
        nodes = [*ast.walk(code), *ast.walk(ast.parse(variables))]
        for name in sorted({each.id for each in nodes if isinstance(each, ast.Name)}):
            if name in local or hasattr(builtins, name) or name == self.cls.name:
                continue
            if self._type_variable(name):
                continue
            where = self._where(name)
            if where.startswith("type:"):
                type_only.append(f"    {_import_line(name, where[5:], self._target_package())}")
            else:
                yield _import_line(name, where, self._target_package())
        if type_only:
            yield "from typing import TYPE_CHECKING"
            yield from ["", "if TYPE_CHECKING:", *type_only]

    def _target_package(self) -> list[str]:
        return ["kproto", "sync", *self.cls.target.split("/")[:-1]]

    def _where(self, name: str) -> str:
        cls = self.cls
        if name in cls.imports:
            return cls.imports[name]
        if name == self.alias:
            return f"kproto.client.{cls.module.replace('/', '.')}:{cls.name}"
        if name == "Wrapper":
            return "kproto.sync.wrapper:Wrapper"
        for new, module in REPLACED.values():
            if name == new:
                return f"kproto.sync.{module}:{name}"
        if name in BY_NAME:
            return f"kproto.sync.{BY_NAME[name].target.replace('/', '.')}:{name}"
        if name in self.imports:
            return self.imports[name]
        for node in self.tree.body:
            if name in _defined(node):
                return f"kproto.client.{cls.module.replace('/', '.')}:{name}"
        raise LookupError(f"{cls.name}: {name}: add its module to `imports` in tools/sync/classes")

    def _type_variable(self, name: str) -> str | None:
        """Returns the definition of a type variable in an asyncio module; None if it is none."""
        for node in (each for tree in self.trees.values() for each in tree.body):
            if (
                name in _defined(node)
                and isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func) == "TypeVar"
            ):
                return ast.unparse(node)
        return None

    def _type_variables(self, code: str) -> list[str]:
        names = {each.id for each in ast.walk(ast.parse(code)) if isinstance(each, ast.Name)}
        return [text for name in sorted(names) if (text := self._type_variable(name))]


def _tree(module: str) -> ast.Module:
    """Returns the syntax tree of a module, whose path is below `kproto/client`."""
    return ast.parse((ROOT / f"kproto/client/{module}.py").read_text(encoding="utf-8"))


def _class_node(tree: ast.Module, name: str) -> ast.ClassDef:
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def _imports(path: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yields the names that an asyncio module imports, as `module:name`."""
    package = ["kproto", "client", *path.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            parts = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*parts, *([node.module] if node.module else [])])
            for each in node.names:
                yield each.asname or each.name, f"{module}:{each.name}"
        elif isinstance(node, ast.Import):
            for each in node.names:
                yield each.asname or each.name, each.name


@cache
def _is_awaitable_class(where: str) -> bool:
    """Returns True if a class has public coroutine functions, or can be awaited.

    `where` is its module and name, as `module:name`.
    """
    module, _, name = where.partition(":")
    path = ROOT / f"{module.replace('.', '/')}.py"
    if not module.startswith("kproto.client") or not path.exists():
        return False
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            methods = [each for each in node.body if isinstance(each, Function)]
            return any(
                each.name == "__await__"
                or (isinstance(each, ast.AsyncFunctionDef) and not each.name.startswith("_"))
                for each in methods
            )
    return False


def _is_alias(statement: ast.If) -> bool:
    """Returns True for the statement of a generic class that makes its subscripts."""
    return [ast.unparse(each) for each in statement.body] == [_ALIAS]


def _sync_arguments(arguments: ast.arguments) -> ast.arguments:
    copied = ast.parse(f"def f({ast.unparse(arguments)}): ...").body[0]
    assert isinstance(copied, ast.FunctionDef), "it is one"
    for each in ast.walk(copied.args):
        if isinstance(each, ast.arg) and each.annotation is not None:
            each.annotation = sync_type(each.annotation)
    return copied.args


def _passed(arguments: ast.arguments) -> str:
    """Returns the arguments of a call that passes on all arguments but the first."""
    plain = [each.arg for each in [*arguments.posonlyargs, *arguments.args][1:]]
    if arguments.vararg is not None:
        plain.append(f"*{arguments.vararg.arg}")
    plain += [f"{each.arg}={each.arg}" for each in arguments.kwonlyargs]
    if arguments.kwarg is not None:
        plain.append(f"**{arguments.kwarg.arg}")
    return ", ".join(plain)


def _items(arguments: ast.arguments) -> str:
    """Returns the items of a dict with all arguments but the first."""
    names = [each.arg for each in [*arguments.args[1:], *arguments.kwonlyargs]]
    items = [f'"{name}": {name}' for name in names]
    if arguments.kwarg is not None:
        items.append(f"**{arguments.kwarg.arg}")
    return ", ".join(items)


def _docstring_lines(docstring: str, indent: int) -> Iterator[str]:
    space = " " * indent
    lines = sync_docstring(docstring, indent).splitlines()
    if len(lines) == 1 and len(lines[0]) + indent + 6 <= 100:
        yield f'{space}"""{lines[0]}"""'
        return
    yield f'{space}"""{lines[0]}'
    yield from (f"{space}{line}" if line else "" for line in lines[1:])
    yield f'{space}"""'


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Assign):
        return {each.id for each in node.targets if isinstance(each, ast.Name)}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    return set()


def _local_names(code: ast.Module) -> set[str]:
    """Returns arguments and variables of the methods in `code`."""
    found = {each.arg for each in ast.walk(code) if isinstance(each, ast.arg)}
    for node in ast.walk(code):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return found - {"Admin"}


def _import_line(name: str, where: str, package: list[str]) -> str:
    module, _, original = where.partition(":")
    original = original or name
    renamed = original if original == name else f"{original} as {name}"
    if module == name:
        return f"import {name}"
    if module.startswith("kproto."):
        module = _relative(module.split("."), package)
    return f"from {module} import {renamed}"


def _relative(module: list[str], package: list[str]) -> str:
    common = 0
    while common < min(len(module), len(package)) and module[common] == package[common]:
        common += 1
    return "." * (len(package) - common + 1) + ".".join(module[common:])


def _formatted(text: str) -> str:
    """Returns the text with sorted imports, formatted by ruff."""
    ruff = str(Path(sys.executable).parent / "ruff")
    for command in (
        ["check", "--fix-only", "--quiet", "--select", "I,F401,UP"],
        ["format", "--quiet"],
    ):
        text = subprocess.run(
            [ruff, *command, "--stdin-filename", "kproto/sync/generated.py", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        ).stdout
    return text
