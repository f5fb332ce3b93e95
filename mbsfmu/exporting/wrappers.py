"""Wrappers beside FMUs: files of Modelica tools and of Simulink that add an FMU to their models.

Wrapper for Modelica tools: a package with the FMU's interface and blocks that connect it to what a tool imports.

OpenModelica's `importFMU` writes the model `<modelIdentifier>_me_FMU`, in which the characters `.[] ,()` of names are
`_` (`makeStringFMISafe` of its FMI import); Dymola's writes `<modelIdentifier>_fmu`, which keeps identifiers.

Wrapper for Simulink: a MATLAB function that adds an FMU block to a model and sets its parameters.

The block is that of MathWorks' documentation, *FMU*: `FMUName` is a file on the MATLAB path; structured names become
buses and struct parameters, as `struct('v1',0.5,'v2',0.5)`; names of parameters have at most 55 characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.variables import KEYWORDS, flat_name, flat_names


@dataclass(frozen=True)
class WrappedVariable:
    """An input, output or parameter.

    Attributes
    ----------
    name, unit, description
        As in the FMU; the description is one line.
    tunable
        Of a parameter: whether it may be set while the FMU runs.
    start, least, largest
        Start value and bounds, where there are any.
    """

    name: str
    unit: str
    description: str
    tunable: bool
    start: float | None
    least: float | None
    largest: float | None


@dataclass(frozen=True)
class WrappedFmu:
    """An FMU as a wrapper needs it.

    Attributes
    ----------
    file
        Name of its file.
    identifier
        `modelIdentifier`, from which tools name what they import.
    description
        One line.
    flat
        Whether names are flat.
    co_simulation, model_exchange
        What it is for.
    step_size
        Suggested communication step in s.
    inputs, outputs, parameters
        In the order of the description, which is that of ports.
    """

    file: str
    identifier: str
    description: str
    flat: bool
    co_simulation: bool
    model_exchange: bool
    step_size: float
    inputs: tuple[WrappedVariable, ...]
    outputs: tuple[WrappedVariable, ...]
    parameters: tuple[WrappedVariable, ...]

    @classmethod
    def of(cls, path: Path) -> WrappedFmu:
        """Return what an exported FMU says of itself."""
        from fmpy import read_model_description  # noqa: PLC0415 - exports without wrappers do without FMPy

        description = read_model_description(str(path))
        interface, experiment = description.coSimulation or description.modelExchange, description.defaultExperiment
        assert interface is not None, path
        assert interface.modelIdentifier is not None, path
        assert experiment is not None, path
        assert experiment.stepSize is not None, path
        found = {
            causality: tuple(_variable(each) for each in description.modelVariables if each.causality == causality)
            for causality in ("input", "output", "parameter")
        }
        return cls(
            path.name,
            interface.modelIdentifier,
            _one_line(description.description),
            description.variableNamingConvention == "flat",
            description.coSimulation is not None,
            description.modelExchange is not None,
            float(experiment.stepSize),
            found["input"],
            found["output"],
            found["parameter"],
        )


def _variable(each: Any) -> WrappedVariable:
    bounds = (None if bound is None else float(bound) for bound in (each.start, each.min, each.max))
    return WrappedVariable(
        each.name, each.unit or "", _one_line(each.description), each.variability == "tunable", *bounds
    )


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


_WORDS = (
    "algorithm and annotation block break class connect connector constant constrainedby der discrete each else elseif "
    "elsewhen encapsulated end enumeration equation expandable extends external false final flow for function if "
    "import impure in initial inner input loop model not operator or outer output package parameter partial protected "
    "public pure record redeclare replaceable return stream then true type when while within"
)
MODELICA_WORDS = frozenset(_WORDS.split())
"""Reserved words [Modelica 3.6, section 2.3.3]."""
_REPLACED = str.maketrans(dict.fromkeys(".[] ,()", "_"))


def modelica_file_name(stem: str) -> str:
    """Return the name of the wrapper of `<stem>.fmu`, which is that of its package."""
    name = flat_name(stem)
    return f"{name}_.mo" if name in {*MODELICA_WORDS, "Modelica"} else f"{name}.mo"


def modelica_text(fmu: WrappedFmu) -> str:
    """Return the Modelica package.

    Raises
    ------
    InputError
        When names of variables cannot be names of components.
    """
    _check_modelica(fmu)
    name = modelica_file_name(fmu.file.removesuffix(".fmu")).removesuffix(".mo")
    lines = ["within ;", f"package {name} {_string(f'Wrapper of {fmu.file}: {fmu.description}')}", *_interface(fmu)]
    if fmu.model_exchange:
        lines += _block(fmu, "InOpenModelica", f"{fmu.identifier}_me_FMU", ())
    if fmu.flat:
        step = (f"fmi_CommunicationStepSize = {fmu.step_size!r}",) if fmu.co_simulation else ()
        lines += _block(fmu, "InDymola", f"{fmu.identifier}_fmu", step)
    return "\n".join([*lines, f"end {name};", ""])


def _interface(fmu: WrappedFmu) -> Iterator[str]:
    """Yield the lines of the block without equations."""
    yield '  partial block Interface "Inputs, outputs and parameters of the FMU"'
    yield "    extends Modelica.Blocks.Icons.Block;"
    for each in fmu.parameters:
        yield f"    parameter Real {_declared(each)} = {each.start!r} {_string(each.description)};"
    for kind, place, variables in (("RealInput", -110, fmu.inputs), ("RealOutput", 110, fmu.outputs)):
        for index, each in enumerate(variables):
            height = round(100 - 200 * (index + 0.5) / len(variables))
            extent = f"{{{{{place - 10}, {height - 10}}}, {{{place + 10}, {height + 10}}}}}"
            start = [] if each.start is None else [f"start = {each.start!r}"]
            yield f"    Modelica.Blocks.Interfaces.{kind} {_declared(each, start)} {_string(each.description)}"
            yield f"      annotation (Placement(transformation(extent = {extent})));"
    yield "  end Interface;"


def _block(fmu: WrappedFmu, name: str, imported: str, settings: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a block that connects the interface to the FMU as a tool imports it."""
    variables = (*fmu.inputs, *fmu.outputs, *fmu.parameters)
    component = flat_names([*map(_component, variables), "fmu"])[-1]
    modified = [*settings, *(f"{_component(each)} = {_component(each)}" for each in fmu.parameters)]
    yield ""
    yield f"  block {name} {_string(f'With {imported}, which the tool makes of {fmu.file}')}"
    yield "    extends Interface;"
    yield f"    {imported} {component}({', '.join(modified)});" if modified else f"    {imported} {component};"
    yield "  equation"
    for each in fmu.inputs:
        yield f"    connect({_component(each)}, {component}.{_component(each)});"
    for each in fmu.outputs:
        yield f"    connect({component}.{_component(each)}, {_component(each)});"
    yield f"  end {name};"


def _declared(variable: WrappedVariable, more: Iterable[str] = ()) -> str:
    """Return name and attributes of a declaration."""
    attributes = [f"unit = {_string(variable.unit)}"] if variable.unit else []
    attributes += [] if variable.least is None else [f"min = {variable.least!r}"]
    attributes += [] if variable.largest is None else [f"max = {variable.largest!r}"]
    attributes += more
    return f"{_component(variable)}({', '.join(attributes)})" if attributes else _component(variable)


def _component(variable: WrappedVariable) -> str:
    return variable.name.translate(_REPLACED)


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _check_modelica(fmu: WrappedFmu) -> None:
    """Check that names can be those of components, each once."""
    owners: dict[str, str] = {}
    for each in (*fmu.inputs, *fmu.outputs, *fmu.parameters):
        name = _component(each)
        if name in MODELICA_WORDS:
            raise InputError(f"'{each.name}' of {fmu.file} is a reserved word of Modelica; rename its part")
        if name in owners:
            raise InputError(
                f"'{owners[name]}' and '{each.name}' of {fmu.file} would both be {name} in OpenModelica; "
                "export with naming flat"
            )
        owners[name] = each.name


LONGEST_PARAMETER = 55
"""Characters of a parameter's name that the FMU block takes."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TEXT = """\
function result = {function}(system, parameters, ports)
%{title} Add the FMU {file} to a Simulink model.
%   BLOCK = {title}(SYSTEM) adds an FMU block to SYSTEM, the path of a loaded
%   model or of a subsystem in it, and returns the path of the block.
%
%   START = {title}() returns the start values of the parameters as a struct.
%   Dots of names are fields: a.b is START.a.b.
%
%   BLOCK = {title}(SYSTEM, PARAMETERS) sets the parameters that the struct
%   PARAMETERS has, named as in START. The others keep their start values.
%
%   BLOCK = {title}(SYSTEM, PARAMETERS, PORTS) has one port for each variable
%   (PORTS = 'Flat', the default), or buses for names with dots (PORTS =
%   'Structured'; their bus objects are made in the base workspace).
%
%   The FMU must stay in the folder of this file.
%
{variables}
start = start_values();
if nargin == 0
    result = start;
    return
end
if nargin < 2
    parameters = struct();
end
if nargin < 3
    ports = 'Flat';
end
if ~any(strcmp(ports, {{'Flat', 'Structured'}}))
    error('{function}:ports', 'ports must be ''Flat'' or ''Structured''');
end
values = with_values(start, parameters, '');
addpath(fileparts(mfilename('fullpath')));  % where the block looks for the FMU
load_system('simulink_extras');
handle = add_block('simulink_extras/FMU Import/FMU', [system '/{block}'], 'MakeNameUnique', 'on');
result = getfullname(handle);
set_param(result, 'FMUName', '{file}', 'FMUMode', '{mode}');
set_param(result, 'FMUInputMapping', ports, 'FMUOutputMapping', ports);
{step}if strcmp(ports, 'Structured')
    fmudialog.createBusType(result);
end
names = fieldnames(values);
for k = 1:numel(names)
    if ~isequal(values.(names{{k}}), start.(names{{k}}))
        set_param(result, names{{k}}, as_text(values.(names{{k}})));
    end
end
end

function values = with_values(values, given, before)
% Return start values with given ones in their place.
if ~isstruct(given) || ~isscalar(given)
    error('{function}:parameters', 'parameters%s must be a struct', before);
end
names = fieldnames(given);
for k = 1:numel(names)
    name = names{{k}};
    value = given.(name);
    if ~isfield(values, name)
        known = strjoin(fieldnames(values)', ', ');
        error('{function}:parameters', 'parameters%s has no ''%s''; there are: %s', before, name, known);
    elseif isstruct(values.(name))
        values.(name) = with_values(values.(name), value, [before '.' name]);
    elseif ~isnumeric(value) || ~isreal(value) || ~isscalar(value) || ~isfinite(value)
        error('{function}:parameters', 'parameters%s.%s must be a finite number', before, name);
    else
        values.(name) = double(value);
    end
end
end

function text = as_text(value)
% Return the expression that a parameter of the block is set to.
if isstruct(value)
    names = fieldnames(value);
    parts = cell(1, numel(names));
    for k = 1:numel(names)
        parts{{k}} = sprintf('''%s'',%s', names{{k}}, as_text(value.(names{{k}})));
    end
    text = ['struct(' strjoin(parts, ',') ')'];
else
    text = sprintf('%.17g', value);
end
end

function start = start_values()
% Return the start values of the parameters.
start = struct();
{starts}end
"""


def simulink_file_name(stem: str) -> str:
    """Return the name of the wrapper of `<stem>.fmu`, which is that of its function."""
    return f"{flat_name(f'add_{stem}')}.m"


def simulink_text(fmu: WrappedFmu) -> str:
    """Return the MATLAB function.

    Raises
    ------
    InputError
        When a parameter cannot be a field of a struct.
    """
    _check_simulink(fmu)
    stem = fmu.file.removesuffix(".fmu")
    function = simulink_file_name(stem).removesuffix(".m")
    step = f"set_param(result, 'FMUSampleTime', '{fmu.step_size!r}');\n" if fmu.co_simulation else ""
    return _TEXT.format(
        function=function,
        title=function.upper(),
        file=fmu.file,
        block=flat_name(stem),
        mode="CoSimulation" if fmu.co_simulation else "ModelExchange",
        step=step,
        variables="\n".join(_listed(fmu)),
        starts="".join(f"start.{each.name} = {each.start!r};\n" for each in fmu.parameters),
    )


def _listed(fmu: WrappedFmu) -> Iterator[str]:
    """Yield lines of the help text on the variables."""
    yield from _section("Inputs, in the order of ports", fmu.inputs)
    yield from _section("Outputs, in the order of ports", fmu.outputs)
    yield from _section("Parameters", fmu.parameters)


def _section(title: str, variables: Iterable[WrappedVariable]) -> Iterator[str]:
    yield f"%   {title}:"
    for each in variables:
        words = [each.name, f"[{each.unit}]" if each.unit else "", "(tunable)" if each.tunable else ""]
        yield f"%     {' '.join(filter(None, [*words, each.description]))}"


def _check_simulink(fmu: WrappedFmu) -> None:
    """Check that parameters can be fields of structs."""
    names = {each.name for each in fmu.parameters}
    for name in names:
        parts = name.split(".")
        for part in parts:
            if not _NAME.fullmatch(part) or part in KEYWORDS:
                raise InputError(f"'{name}' of {fmu.file} cannot be a parameter in MATLAB; {_INSTEAD}")
            if len(part) > LONGEST_PARAMETER:
                raise InputError(
                    f"'{name}' of {fmu.file} cannot be a parameter in Simulink, which takes names of at most "
                    f"{LONGEST_PARAMETER} characters; rename its part"
                )
        for end in range(1, len(parts)):
            if ".".join(parts[:end]) in names:
                raise InputError(f"{fmu.file} has '{'.'.join(parts[:end])}' and '{name}', no struct both; {_INSTEAD}")


_INSTEAD = "export with naming flat"

Wrapper = Literal["simulink", "modelica"]
WRAPPERS: tuple[Wrapper, ...] = get_args(Wrapper)


@dataclass(frozen=True)
class _Kind:
    """How wrappers of a tool are called and written.

    Attributes
    ----------
    file_name
        Gives the name of the wrapper from the name of the FMU's file without its ending.
    text
        Gives its content.
    """

    file_name: Callable[[str], str]
    text: Callable[[WrappedFmu], str]


_KINDS: dict[Wrapper, _Kind] = {
    "simulink": _Kind(simulink_file_name, simulink_text),
    "modelica": _Kind(modelica_file_name, modelica_text),
}


def check_wrappers(wrappers: Iterable[str], *, naming: str, kind: Sequence[str], arrays: bool, clocks: str) -> None:
    """Check the choice of wrappers before FMUs are made.

    Raises
    ------
    InputError
        When there is no such wrapper, or it cannot be of such FMUs.
    """
    for each in wrappers:
        if each not in WRAPPERS:
            raise InputError(f"there is no wrapper '{each}'; {closest_match(each, WRAPPERS)}")
        if arrays:
            raise InputError("wrappers have scalar variables; with arrays there are none")
        if clocks != "none":
            raise InputError(f"wrappers set no clocks; with {each} clocks must be none")
        if each == "modelica" and naming != "flat" and "me" not in kind:
            raise InputError(
                "the wrapper modelica needs kind me, which OpenModelica imports, or naming flat, which Dymola keeps"
            )


def wrapper_files(fmus: Iterable[Path], wrappers: Sequence[Wrapper]) -> dict[Path, dict[Wrapper, Path]]:
    """Return the wrappers' files of each FMU.

    Raises
    ------
    InputError
        When two of them would be one file.
    """
    files: dict[Path, dict[Wrapper, Path]] = {
        fmu: {each: fmu.with_name(_KINDS[each].file_name(fmu.stem)) for each in wrappers} for fmu in fmus
    }
    owners: dict[Path, Path] = {}
    for fmu, beside in files.items():
        for path in beside.values():
            if path in owners:
                raise InputError(f"the wrappers of {owners[path].name} and {fmu.name} would both be {path.name}")
            owners[path] = fmu
    return files


def write_wrappers(fmu: Path, files: dict[Wrapper, Path]) -> Iterator[Path]:
    """Write the wrappers of an FMU and yield their files.

    Raises
    ------
    InputError
        When the tool cannot have the names of the FMU's variables.
    """
    if not files:
        return
    described = WrappedFmu.of(fmu)
    for wrapper, path in files.items():
        with complete_file(path) as partial:
            partial.write_text(_KINDS[wrapper].text(described), encoding="utf-8")
        yield path
