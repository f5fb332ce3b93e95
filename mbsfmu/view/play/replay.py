"""Calls that repeat what was done in a page: on the command line, or in Python, with blanks that the page fills."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mbsfmu.base.options import Options
from mbsfmu.cosim.coupling.algorithms import flags_of, parted


@dataclass(frozen=True)
class Replay:
    """A call with blanks in braces.

    Attributes
    ----------
    call
        The whole call, with `{values}`, `{inputs}`, `{stop}`; of coupled FMUs also `{algorithm}` and `{step}`.
    inputs
        What stands for the inputs where a machine has some.
    values
        What stands before, between and behind values, where there are some.
    value
        One value, with `{name}` and `{value}`.
    given
        Values that the page was made with, by name, as `value` has them.
    algorithms
        What stands for each of the algorithms.
    """

    call: str
    inputs: str
    values: tuple[str, str, str]
    value: str
    given: Mapping[str, str] = field(default_factory=dict)
    algorithms: Sequence[str] = ()

    def data(self) -> dict[str, Any]:
        """Return the data for the page."""
        return asdict(self)


def table_of(name: str) -> str:
    """Return the name of the file with inputs that the page of a machine saves."""
    return f"{name}-inputs.csv"


def replay_by_command(
    name: str, source: str, options: Options, named: Mapping[str, Any], given: Mapping[str, float | str]
) -> Replay:
    """Return the call of `mbsfmu simulate`.

    Parameters
    ----------
    name, source
        Name of the model, and how it was typed.
    options, named
        Options of the steps, and what the model chose where they leave it open.
    given
        Values that the page was made with, by name.
    """
    call = (
        f"mbsfmu simulate {source} {shlex.join(flags(options, named))}{{values}}{{inputs}} --stop {{stop}} -o run.csv"
    )
    return Replay(call, f" --input {shlex.quote(table_of(name))}:steps", *_SET, _set_words(given))


def replay_in_python(name: str, options: Options, named: Mapping[str, Any], given: Mapping[str, float | str]) -> Replay:
    """Return the call of `CoupledModel.simulation`; parameters as for `replay_by_command`."""
    call = f"model{{values}}{{inputs}}.simulation({_keywords(options, named)}).run({{stop}})"
    inputs = f".driven_by({_literal(f'{table_of(name)}:steps')})"
    return Replay(call, inputs, (".with_values({", ", ", "})"), _ENTRY, _entries(given))


def coupled_replay_by_command(
    name: str,
    source: str,
    options: Options,
    named: Mapping[str, Any],
    given: Mapping[str, float | str],
    algorithms: Iterable[str],
) -> Replay:
    """Return the calls of `mbsfmu export` and `mbsfmu cosim`; `given` by `system.variable`."""
    export = f"mbsfmu export {source} -o fmus --layout separate {shlex.join(flags(options, named))}"
    run = f"mbsfmu cosim {shlex.quote(f'fmus/{name}.ssp')} {{algorithm}} --step {{step}}"
    return Replay(
        f"{export} && {run}{{values}}{{inputs}} --stop {{stop}} -o coupled.csv",
        f" --scenario {shlex.quote(table_of(name))}",
        *_SET,
        _set_words(given),
        [flags_of(each) for each in algorithms],
    )


def coupled_replay_in_python(
    name: str,
    options: Options,
    named: Mapping[str, Any],
    given: Mapping[str, float | str],
    algorithms: Iterable[str],
) -> Replay:
    """Return the calls of `export` and `cosimulate`; parameters as for `coupled_replay_by_command`."""
    export = f'package = mbsfmu.export(model, "fmus", layout="separate", {_keywords(options, named)})[-1]'
    return Replay(
        f"{export}; mbsfmu.cosimulate(package, {{algorithm}}, step={{step}}{{values}}{{inputs}}, stop={{stop}})",
        f", scenario={_literal(table_of(name))}",
        (", parameters={", ", ", "}"),
        _ENTRY,
        _entries(given),
        [
            f"algorithm={_literal(algorithm)}, extrapolation={_literal(str(extrapolation))}"
            for algorithm, extrapolation in map(parted, algorithms)
        ],
    )


def replay_of_fmus(
    name: str,
    files: Sequence[str],
    connections: Iterable[str],
    options: Options,
    without: Iterable[str],
    given: Mapping[str, Any],
) -> Replay:
    """Return the call of `mbsfmu cosim` for FMUs.

    Parameters
    ----------
    name
        Name of the page.
    files, connections
        Files as typed, and connections as `a.y=b.u`.
    options, without
        Options of the coupling, and names of those that the replay does not have.
    given
        Values of parameters, and start values, by `fmu.variable`.
    """
    words = ["mbsfmu", "cosim", *files, *(word for each in connections for word in ("--connect", each))]
    usual = (name for name, value in options.content("algorithm") if value == options.default(name))
    words += flags(options, {}, (*without, *usual))
    call = f"{shlex.join(words)}{{values}}{{inputs}} --stop {{stop}} -o run.csv"
    return Replay(call, f" --scenario {shlex.quote(table_of(name))}", *_SET, _set_words(given))


_SET = ("", "", ""), " --set {name}={value}"
_ENTRY = '"{name}": {value}'


def _set_words(given: Mapping[str, Any]) -> dict[str, str]:
    return {name: f" --set {shlex.quote(f'{name}={value}')}" for name, value in given.items()}


def _entries(given: Mapping[str, Any]) -> dict[str, str]:
    return {name: f"{_literal(name)}: {_literal(value)}" for name, value in given.items()}


def flags(options: Options, named: Mapping[str, Any], without: Iterable[str] = ()) -> list[str]:
    """Return options as the command line takes them; `named` are those that were chosen where they are left open."""
    return [
        word
        for name, value in _specified(options, named, without).items()
        for word in (
            options.known()[name].flag or f"--{name.replace('_', '-')}",
            *([] if value is True else [_word(value)]),
        )
    ]


def _keywords(options: Options, named: Mapping[str, Any]) -> str:
    """Return options as Python takes them."""
    return ", ".join(f"{name}={_literal(value)}" for name, value in _specified(options, named).items())


def _specified(options: Options, named: Mapping[str, Any], without: Iterable[str] = ()) -> dict[str, Any]:
    """Return what a call has to name: no switches that are off, nor what only Python's objects say."""
    known, left = options.known(), {"tolerances", *without}
    found = {**dict(options.content()), **named}
    return {name: value for name, value in found.items() if name in known and name not in left and value is not False}


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={each}" for name, each in value.items())
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _literal(value: Any) -> str:
    """Return a text or number as Python reads it."""
    if isinstance(value, bool | int):
        return repr(value)
    return repr(float(value)) if isinstance(value, float) else json.dumps(str(value))
