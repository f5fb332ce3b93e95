"""Models in Python files: loaded by path, under names that meet no other module."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import content_key
from mbsfmu.modelling import DataError


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
