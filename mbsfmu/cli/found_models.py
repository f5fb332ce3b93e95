"""MODEL on the command line: a built-in name, a file, or a factory in a Python file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.io.part_files import load_parts
from mbsfmu.model.mechanism import Mechanism, read_json
from mbsfmu.model.system_kinds import system_kind
from mbsfmu.modelling import closest_match
from mbsfmu.models import built_in
from mbsfmu.models.python_files import load_module, reason_of


def find_model(argument: str, parts: Sequence[str] = ()) -> CoupledModel:
    """Return the model of an argument.

    Parameters
    ----------
    argument
        A built-in name, `model.json`, `robot.urdf`, or `file.py:factory`. A file may hold one system alone.
    parts
        Files that define parts.

    Raises
    ------
    InputError, DataError
        When there is no such thing, or it is no model.
    """
    with load_parts(parts).given():
        if argument.endswith(".json"):
            if not Path(argument).is_file():
                raise InputError(f"there is no file {argument}")
            return _as_model(read_json(argument), Path(argument).stem)
        if argument.lower().endswith((".urdf", ".xacro", ".sdf")):
            from mbsfmu.urdf import mechanism_from_urdf  # noqa: PLC0415 - few models are URDF files

            if not Path(argument).is_file():
                raise InputError(f"there is no file {argument}")
            mechanism = mechanism_from_urdf(argument)
            return CoupledModel(name=mechanism.name, systems={"robot": mechanism})
        if ".py" in argument:
            return _from_factory(argument)
        if argument.lower().endswith((".fmu", ".ssp", ".ssd")):
            raise InputError(
                f"{argument} is refused: the model cannot be read from an FMU; "
                "`mbsfmu show` lists what it holds, `mbsfmu cosim` runs it"
            )
        return built_in(argument)


def _as_model(data: Any, name: str) -> CoupledModel:
    kind = system_kind(data)
    if kind is None:
        return CoupledModel.from_dict(data)
    return CoupledModel.from_dict({"name": name, "systems": {kind.name: data}})


def _from_factory(argument: str) -> CoupledModel:
    path, _, factory = argument.rpartition(":")
    file = path if path.endswith(".py") else argument.rstrip(":")
    if not Path(file).is_file():
        raise InputError(f"'{argument}' is refused: there is no file {file}; a model in a file is file.py:factory")
    if file != path or not factory:
        raise InputError(
            f"'{argument}' is refused: it must name a function of the file that returns the model, as {file}:FUNCTION"
        )
    module = load_module(path)
    made = getattr(module, factory, None)
    if not callable(made):
        known = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise InputError(f"{path} has no function '{factory}'; {closest_match(factory, known)}")
    try:
        model = made()
    except (Exception, SystemExit) as error:  # whatever a user's function raises
        raise InputError(f"{factory} of {path} gives no model: {reason_of(error)}") from error
    if isinstance(model, Mechanism):
        return CoupledModel(name=factory, systems={"mechanism": model})
    if not isinstance(model, CoupledModel):
        raise InputError(
            f"{factory} of {path} gives a {type(model).__name__}; it must give a CoupledModel or a Mechanism"
        )
    return model
