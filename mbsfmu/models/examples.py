"""Machines to run and to copy, and models in Python files."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterable
from keyword import iskeyword
from pathlib import Path
from types import ModuleType

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file
from mbsfmu.base.identity import content_key
from mbsfmu.modelling import DataError, closest_match
from mbsfmu.system_model.coupled_model import CoupledModel


def load_module(path: str | Path) -> ModuleType:
    """Return the module of a Python file, which may import others of its folder.

    Raises
    ------
    InputError
        When running it raises anything.
    """
    file = Path(path).resolve()
    # Under a name of its own, for it may have that of another module; classes look there for what annotations name.
    name = f"model_{content_key(str(file))[:16]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever a user's file raises
        raise InputError(f"{path} cannot be loaded: {reason_of(error)}") from error
    finally:
        sys.path.pop(0)
    return module


def reason_of(error: BaseException) -> str:
    """Return an error in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, (InputError, DataError)) else f"{type(error).__name__}: {text}"


EXAMPLES = ("excavator", "log-crane", "press", "stewart-platform", "robot-arm", "crane")
"""Names of the examples; the file and its function have underscores for hyphens."""
_BESIDE = {"excavator": ("excavator_looks.py",), "robot-arm": ("arm.urdf",)}
"""Files that an example reads."""
_PLACES = (Path(__file__).parents[1] / "examples", Path(__file__).parents[2] / "examples")
"""The folder of an installed package, and that of a clone."""
_STARTING = Path(__file__).with_name("starting_file.txt")


def example(name: str) -> CoupledModel:
    """Return the model of an example.

    Raises
    ------
    InputError
        When its file needs a package that is not installed.
    """
    return getattr(load_module(_file(_identifier(name))), _identifier(name))()


def example_description(name: str) -> str:
    """Return what an example is, in a sentence; it is not run."""
    text = ast.get_docstring(ast.parse(_file(_identifier(name)).read_text(encoding="utf-8"))) or ""
    return text.partition("\n\n")[0].removesuffix(".")


def write_starting_file(
    name: str, folder: str | Path = ".", *, like: str | None = None, force: bool = False
) -> tuple[str, list[Path]]:
    """Write a Python file with a machine to change into one's own: a bed that a hydraulic cylinder tips.

    Parameters
    ----------
    name
        What the machine is called, as `my-machine`; the file and its function have underscores for hyphens.
    folder
        Where the file goes.
    like
        The example of `EXAMPLES` that is copied instead, with all files that it needs.
    force
        Whether files that are there are overwritten.

    Returns
    -------
    tuple
        The model for commands, as `my_machine.py:my_machine`, and the files.

    Raises
    ------
    InputError
        When the name is none of a Python function, there is no such example or no such folder, or a file is there.
    """
    word = _identifier(name.removesuffix(".py"))
    if not re.fullmatch(r"[a-z][a-z0-9_]*", word) or iskeyword(word):
        raise InputError(
            f"'{name}' is refused as the name of a machine: it must be small letters, digits, - and _, as my-machine, "
            "and no word of Python"
        )
    module = importlib.util.find_spec(word)
    if module is not None and Path(module.origin or "").parent != Path(folder).resolve():
        raise InputError(f"'{name}' is refused as the name of a machine: a module of Python is called so")
    if like is not None and like not in EXAMPLES:
        raise InputError(f"there is no example '{like}' to copy; {closest_match(like, EXAMPLES)}")
    if not Path(folder).is_dir():
        raise InputError(f"there is no folder {folder}")
    texts = _texts(word, like)
    there = [name for name in texts if (Path(folder) / name).exists()]
    if there and not force:
        raise InputError(f"{Path(folder) / there[0]} is there already; --force, in Python force=True, overwrites it")
    for file, text in texts.items():
        with complete_file(Path(folder) / file) as partial:
            partial.write_text(text, encoding="utf-8")
    function = word if like is None else _identifier(like)
    return f"{Path(folder) / word}.py:{function}", [Path(folder) / file for file in texts]


def _texts(word: str, like: str | None) -> dict[str, str]:
    """Return the texts of a new machine by the names of its files."""
    if like is None:
        text = _STARTING.read_text(encoding="utf-8")
        return {f"{word}.py": text.replace("MACHINE", word).replace("NAME", word.replace("_", "-"))}
    text = _file(_identifier(like)).read_text(encoding="utf-8")
    text = text.replace(f"examples/{_identifier(like)}.py", f"{word}.py")
    others = {name: _file(name).read_text(encoding="utf-8") for name in _BESIDE.get(like, ())}
    return {f"{word}.py": text, **others}


def _identifier(name: str) -> str:
    return name.replace("-", "_")


def _file(name: str, places: Iterable[Path] = _PLACES) -> Path:
    """Return the file of an example."""
    name = name if "." in name else f"{name}.py"
    found = next((place / name for place in places if (place / name).is_file()), None)
    if found is None:
        raise InputError(f"{name} of the examples is missing: the package is installed without them")
    return found
