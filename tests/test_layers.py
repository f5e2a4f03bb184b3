"""Imports point down, the core touches nothing, and the start loads exactly what it needs (DESIGN "Rules")."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import ctxkit

ROOT = Path(ctxkit.__file__).parent
VALUES = {"errors", "entry"}
EDGE = {"process", "files", "spill", "child", "vocabularies", "folders", "sessionfile"}
PLUG_IN_FOLDERS = {"agents", "strategies"}  # adapters: pure, above the core

# What `ctx truncate` may load beyond a bare interpreter. Nothing heavy: no typer, re, json, typing, enum, pathlib.
START = {
    "__future__",
    "ctxkit",
    "ctxkit.__main__",
    "ctxkit.clean",
    "ctxkit.cli",
    "ctxkit.cli._table",
    "ctxkit.cli.commands",
    "ctxkit.cli.cutting",
    "ctxkit.cli.fast",
    "ctxkit.cli.truncate",
    "ctxkit.cli.values",
    "ctxkit.ends",
    "ctxkit.errors",
    "ctxkit.process",
    "ctxkit.spill",
    "ctxkit.truncate",
    "ctxkit.width",
    "errno",
    "importlib",
    "importlib._bootstrap",
    "importlib._bootstrap_external",
    "select",
    "warnings",
}


def layer(name: str) -> int:
    """Return the height: 0 values, 1 core, 2 adapters, 3 edge, 4 summarizers and plug-ins, 5 face and tools of ours."""
    top = name.split(".")[0]
    if top in VALUES:
        return 0
    if top in PLUG_IN_FOLDERS:
        return 2
    if top in EDGE:
        return 3
    if top in {"summarizers", "plugins"}:
        return 4
    if top in {"cli", "__main__", "data"}:
        return 5
    return 1


def modules() -> dict[str, ast.Module]:
    """Return every module of the package by its name below ctxkit."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text("utf-8"))
    return found


def imports(tree: ast.Module) -> set[str]:
    """Return the modules of ctxkit that a module imports, for types or for use."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ctxkit":
            inside = node.module.removeprefix("ctxkit").removeprefix(".")
            for alias in node.names:
                path = ROOT.joinpath(*inside.split("."), alias.name) if inside else ROOT / alias.name
                is_module = path.with_suffix(".py").exists() or path.is_dir()
                found.add(f"{inside}.{alias.name}".strip(".") if is_module else inside)
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("ctxkit.") for a in node.names if a.name.startswith("ctxkit.")}
    return found - {""}


def test_imports_point_down() -> None:
    bad = [
        f"{name} imports {other}"
        for name, tree in modules().items()
        if name != "__init__"
        for other in imports(tree)
        if layer(other) > layer(name)
    ]
    assert bad == []


def test_the_core_calls_nothing_that_touches_the_world() -> None:
    bad = []
    for name, tree in modules().items():
        if layer(name) > 2 or name == "__init__":
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in {"open", "print", "input", "__import__", "exec", "eval"}:
                bad.append(f"{name}:{node.lineno}: {node.func.id}")
    assert bad == []


def test_errors_are_caught_in_one_place() -> None:
    """Only `__main__` catches everything; `process.each` reports an input and goes on with the next."""
    broad = {"Exception", "BaseException", "CtxError"}
    # cutting removes a half-written spill and raises on; tiktoken's panic is a BaseException
    allowed = {"__main__", "cli.cutting", "tokens"}
    bad = []
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler) and name not in allowed:
                caught = (
                    {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} if node.type else {"BaseException"}
                )
                if caught & broad and not isinstance(node.body[-1], ast.Raise):
                    bad.append(f"{name}:{node.lineno}")
    assert bad == []


def loaded(*statements: str) -> set[str]:
    """Return the modules that a fresh interpreter has after the statements."""
    code = "\n".join(("import sys", *statements, "print(*sys.modules)"))
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_start_of_truncate_loads_exactly_this() -> None:
    bare = loaded()
    got = loaded("from ctxkit.__main__ import run", "assert run(['truncate', '/dev/null']) == 0")
    assert got - bare - START == set(), "the start got heavier"
    assert START - got == set(), "the list is out of date"


def test_start_of_version_loads_no_command() -> None:
    got = loaded("from ctxkit.__main__ import run", "sys.stdout.flush()", "run(['--version'])")
    assert got & {"typer", "re", "json", "typing", "enum", "ctxkit.truncate"} == set()


def test_public_names() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text("utf-8"))
    typed: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ctxkit."):
            typed.setdefault((node.module or "").removeprefix("ctxkit."), set()).update(a.name for a in node.names)
    table: dict[str, set[str]] = {}
    for name, module in ctxkit.NAMES.items():
        table.setdefault(module, set()).add(name)
        assert getattr(ctxkit, name).__module__.startswith("ctxkit.")
        assert not (ROOT / f"{name}.py").exists(), "a public name must not hide a module"
    assert typed == table
    assert sorted(ctxkit.NAMES) == list(ctxkit.NAMES)
