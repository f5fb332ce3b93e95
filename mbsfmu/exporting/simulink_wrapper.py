"""Wrapper for Simulink: a MATLAB function that adds an FMU block to a model and sets its parameters.

The block is that of MathWorks' documentation, *FMU*: `FMUName` is a file on the MATLAB path; structured names become
buses and struct parameters, as `struct('v1',0.5,'v2',0.5)`; names of parameters have at most 55 characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mbsfmu.base.errors import InputError
from mbsfmu.exporting.wrapped_fmu import WrappedFmu, WrappedVariable
from mbsfmu.modelling.variable_names import KEYWORDS, flat_name

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


def file_name(stem: str) -> str:
    """Return the name of the wrapper of `<stem>.fmu`, which is that of its function."""
    return f"{flat_name(f'add_{stem}')}.m"


def text(fmu: WrappedFmu) -> str:
    """Return the MATLAB function.

    Raises
    ------
    InputError
        When a parameter cannot be a field of a struct.
    """
    _check(fmu)
    stem = fmu.file.removesuffix(".fmu")
    function = file_name(stem).removesuffix(".m")
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


def _check(fmu: WrappedFmu) -> None:
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
