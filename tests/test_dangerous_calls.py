"""Nothing that comes in is ever run: no pickle, no eval, no shell, no loader that makes objects of what it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("codec_core", "server", "deploy")
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "torch"}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "tempfile.mktemp", "subprocess.getoutput"}
ARGUMENTS = {"shell", "allow_pickle"}
"""Those that must not be true."""
EXCEPTIONS = {"codec_core/corpus/ray_run.py": {"pickle"}}
"""Ray moves its own work between its own processes so; nothing that comes from outside."""


def sources() -> list[Path]:
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(found) > 100
    return found


def dangers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            yield str(node.module)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in CALLS:
                yield name
            for keyword in node.keywords:
                is_false = isinstance(keyword.value, ast.Constant) and keyword.value.value in (False, None)
                if keyword.arg in ARGUMENTS and not is_false:
                    yield f"{name}({keyword.arg}={ast.unparse(keyword.value)})"


def test_no_source_runs_what_it_reads():
    found = {}
    for path in sources():
        name = str(path.relative_to(ROOT))
        found[name] = {danger.split(".")[0] for danger in dangers(ast.parse(path.read_text()))} - EXCEPTIONS.get(name, set())
    assert not {name: kinds for name, kinds in found.items() if kinds}


def test_the_check_finds_what_it_looks_for():
    text = (
        "import pickle\nfrom yaml import load\neval('1')\nrun(a, shell=True)\nnp.load(f, allow_pickle=x)\nrun(b, shell=False)"
    )
    assert len(list(dangers(ast.parse(text)))) == 5
