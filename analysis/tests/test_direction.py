"""The direction of imports: data, figures, plots, report, comparison, and the commands last."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "vignette_analysis"
# A folder imports itself and those before it. The package itself has the commands, and comes last.
ORDER = ("data", "figures", "plots", "report", "comparison", "")


def name_of(path: Path) -> str:
    """The name of a module below the package; empty for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(path): path for path in PACKAGE.rglob("*.py")}


def folder(module: str) -> str:
    """The folder of a module; empty for those beside the folders."""
    first = module.partition(".")[0]
    return first if first in ORDER else ""


def imports(module: str, text: str) -> set[str]:
    """Modules of the package that the text of a module imports, also inside functions."""
    path, found = MODULES[module], set()
    package = ("vignette_analysis", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])]) if node.level else node.module
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, _, below = name.partition(".")
            if top == "vignette_analysis":
                found.add(below if below in MODULES else below.rpartition(".")[0])
    return found


IMPORTS = {module: imports(module, path.read_text()) for module, path in MODULES.items()}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_folder_imports_only_those_before_it(module):
    later = {name for name in IMPORTS[module] if ORDER.index(folder(name)) > ORDER.index(folder(module))}
    assert not later, f"{module or 'the package'} is in {folder(module) or 'the package itself'} and imports {later}; want the order {ORDER}"


def test_no_module_imports_one_that_imports_it():
    try:
        TopologicalSorter(IMPORTS).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' <- '.join(error.args[1])}")


def test_every_folder_is_known():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders == set(ORDER) - {""}


def test_imports_are_found_wherever_they_stand():
    text = "import os, vignette_analysis.outputs\nfrom . import deliveries\nfrom ..data.run import Run\n"
    text += "def f():\n    from .. import outputs, plots\n    from ..report import charts\n"
    assert imports("figures.analysis", text) == {"outputs", "figures.deliveries", "data.run", "plots", "report.charts"}
    assert imports("comparison", "from .comparison import compare\nfrom vignette_analysis import load") == {"comparison.comparison", ""}
