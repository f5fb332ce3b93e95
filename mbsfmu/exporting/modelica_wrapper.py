"""Wrapper for Modelica tools: a package with the FMU's interface and blocks that connect it to what a tool imports.

OpenModelica's `importFMU` writes the model `<modelIdentifier>_me_FMU`, in which the characters `.[] ,()` of names are
`_` (`makeStringFMISafe` of its FMI import); Dymola's writes `<modelIdentifier>_fmu`, which keeps identifiers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mbsfmu.base.errors import InputError
from mbsfmu.exporting.wrapped_fmu import WrappedFmu, WrappedVariable
from mbsfmu.modelling.variable_names import flat_name, flat_names

_WORDS = (
    "algorithm and annotation block break class connect connector constant constrainedby der discrete each else elseif "
    "elsewhen encapsulated end enumeration equation expandable extends external false final flow for function if "
    "import impure in initial inner input loop model not operator or outer output package parameter partial protected "
    "public pure record redeclare replaceable return stream then true type when while within"
)
KEYWORDS = frozenset(_WORDS.split())
"""Reserved words [Modelica 3.6, section 2.3.3]."""
_REPLACED = str.maketrans(dict.fromkeys(".[] ,()", "_"))


def file_name(stem: str) -> str:
    """Return the name of the wrapper of `<stem>.fmu`, which is that of its package."""
    name = flat_name(stem)
    return f"{name}_.mo" if name in {*KEYWORDS, "Modelica"} else f"{name}.mo"


def text(fmu: WrappedFmu) -> str:
    """Return the Modelica package.

    Raises
    ------
    InputError
        When names of variables cannot be names of components.
    """
    _check(fmu)
    name = file_name(fmu.file.removesuffix(".fmu")).removesuffix(".mo")
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


def _check(fmu: WrappedFmu) -> None:
    """Check that names can be those of components, each once."""
    owners: dict[str, str] = {}
    for each in (*fmu.inputs, *fmu.outputs, *fmu.parameters):
        name = _component(each)
        if name in KEYWORDS:
            raise InputError(f"'{each.name}' of {fmu.file} is a reserved word of Modelica; rename its part")
        if name in owners:
            raise InputError(
                f"'{owners[name]}' and '{each.name}' of {fmu.file} would both be {name} in OpenModelica; "
                "export with naming flat"
            )
        owners[name] = each.name
