"""MODEL on the command line: a built-in name, a file, or a factory; and words that a shell completes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from mbsfmu.base.errors import InputError
from mbsfmu.io.part_files import load_parts
from mbsfmu.model.mechanism import Mechanism, read_json
from mbsfmu.model.system_kinds import system_kind
from mbsfmu.modelling import DataError, closest_match
from mbsfmu.models import built_in
from mbsfmu.models.examples import load_module, reason_of
from mbsfmu.system_model.coupled_model import CoupledModel


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


Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_FILES = ("*.json", "*.py", "*.urdf", "*.fmu", "*.ssp")
_KINDS = {
    "settable": ("input", "parameter", "state"),
    "parameter": ("parameter",),
    "input": ("input",),
    "output": ("output", "local", "state"),
}


def complete_models(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Complete MODEL: built-in names, files, and functions of Python files."""
    from mbsfmu.models import BUILT_IN, CIRCUITS, EXAMPLES  # noqa: PLC0415 - commands load it when they run

    file, colon, _ = incomplete.rpartition(":")
    if colon and file.endswith(".py"):
        return starting([f"{file}:{name}" for name in _functions(Path(file))], incomplete)
    folder, _, begin = incomplete.rpartition("/")
    found = [
        str(path) for pattern in _FILES for path in sorted(Path(folder or ".").glob(f"{_literal(begin)}{pattern}"))
    ]
    found = [f"{path}:" if path.endswith(".py") else path for path in found]
    circuits = [f"{name}-{circuit}" for name in ("four-bar", "quick-return") for circuit in CIRCUITS]
    return starting([*BUILT_IN, *circuits, *EXAMPLES, "pendulum-3", "ladder-3", *found], incomplete)


def complete_words(among: Callable[[], Iterable[str]]) -> Completion:
    """Return the completion of an option that takes one of some words, or several between commas."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        return [CompletionItem(f"{before}{comma}{each}") for each in among() if each.startswith(last)]

    return complete


def complete_variables(kind: str, ending: str = "") -> Completion:
    """Return the completion of a variable of MODEL.

    Parameters
    ----------
    kind
        `settable`, `parameter`, `input` or `output`.
    ending
        What follows the name, as `=`.
    """

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = [each["name"] for each in _variables(context) if each["kind"] in _KINDS[kind]]
        short = [name.partition(".")[2] for name in names]
        unique = [name for name in short if name and short.count(name) == 1]
        return starting([f"{name}{ending}" for name in (*unique, *names)], incomplete)

    return complete


def starting(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Return the words that begin as what was typed."""
    return [CompletionItem(each) for each in words if each.startswith(incomplete)]


def _variables(context: click.Context) -> list[dict[str, Any]]:
    """Return the variables of the model that was typed; none where it cannot be read."""
    from mbsfmu.cosim.runs.load_fmus import is_source  # noqa: PLC0415
    from mbsfmu.system_model.model_overview import overview  # noqa: PLC0415

    model = context.params.get("model")
    if isinstance(model, tuple) and len(model) == 1:
        (model,) = model
    if not isinstance(model, str):
        return []
    try:
        content = overview(model if is_source(model) else find_model(model, context.params.get("parts") or ()))
    except (ValueError, OSError, DataError):  # a shell shows no reason
        return []
    return content.get("variables", [])


def _functions(file: Path) -> list[str]:
    """Return the public functions of a Python file that need no arguments; it is not run."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return []
    return [
        each.name
        for each in tree.body
        if isinstance(each, ast.FunctionDef)
        and not each.name.startswith("_")
        and len(each.args.args) == len(each.args.defaults)
    ]


def _literal(text: str) -> str:
    """Return a text as a pattern of files that means it alone."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in text)
