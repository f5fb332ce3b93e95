"""C files of FMUs and of runs in process, generated and by hand, also as one translation unit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, get_args

from mbsfmu.compiling.compiler import CLOCKS, VERSIONS, Clocks, Fmi
from mbsfmu.compiling.transpiler import Source
from mbsfmu.modelling.variables import ModelExchangeData
from mbsfmu.native.model_code import FILE, LEVEL, ModelCode
from mbsfmu.native.operations import Operations, filled, operations_header
from mbsfmu.native.shared import CONSTANTS
from mbsfmu.native.traced_code import string
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.stepping import adaptive, newton, rosenbrock

_INCLUDE = re.compile(r'^#include (?:"(\w+\.[ch])"|(\w+))\s*(?:/\*.*)?$')
_DIRECTIVE = re.compile(r"^#\s*(\w+)\s*(\w*)")
_GUARD = re.compile(r"^#ifndef (MBSFMU_\w+)\n#define \1\n", re.MULTILINE)
_TOKEN = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|((?:->|\.)\s*)?\b([A-Za-z_]\w*)", re.DOTALL)
_STATIC = re.compile(r"^(?:static|typedef)\b[^(\[;={]*?\b(\w+)\s*(?=[(\[;=])", re.MULTILINE)
_FUNCTION_TYPE = re.compile(r"^typedef\b[^;{]*?\(\*(\w+)\)", re.MULTILINE)
_TYPE = re.compile(r"^\} (\w+);", re.MULTILINE)
_ENUMERATION = re.compile(r"^(?:typedef )?enum \{(.*?)\}", re.MULTILINE | re.DOTALL)
_ENUMERATOR = re.compile(r"(?:^|,)\s*(\w+)")
_FUNCTION = re.compile(
    r"^(?:/\*(?:(?!\*/).)*\*/\n)?static [^;{}#=]*?\b(\w+)\([^;{}]*\) \{(?:[^\n]*\}\n|\n.*?^\}\n)\n?",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TYPES = {"void", "int", "double", "size_t"}
_LAST = "flow.c"
"""Equations for the solver of a host replace functions by macros, so nothing comes behind them."""


def single_source(texts: Mapping[str, str], mains: Sequence[str]) -> str:
    """Return one C file that is compiled to the same as several.

    Each header is in it once. Names and macros that several of the files define for themselves are kept apart by an
    ending.

    Parameters
    ----------
    texts
        Files by name, those that are included among them.
    mains
        Names of the files that are compiled.
    """
    order = sorted(mains, key=lambda name: name == _LAST)
    formulation = re.search(r'#define FORMULATION_FILE "(\w+\.c)"', texts["model.h"])
    macros = {"FORMULATION_FILE": formulation.group(1)} if formulation else {}
    seen: set[str] = set()
    parts = [_joined(_expanded(main, texts, macros, seen, 0)) for main in order]
    own = [_defined("".join(text for text, shared in part if not shared)) for part in parts]
    times = Counter(name for names in own for name in names)
    written = ["/* All of the model in one file. */\n"]
    for main, part, names in zip(order, parts, own, strict=True):
        ending = f"_in_{main.removesuffix('.c')}"
        again = {name for name in names if times[name] > 1}
        written += [f"\n/* -- {main} -- */\n"]
        written += [text if shared else _renamed(text, again, ending) for text, shared in part]
        if main == _LAST:
            continue
        own_macros = dict.fromkeys(
            found.group(2)
            for text, shared in part
            if not shared
            for line in text.splitlines()
            if (found := _DIRECTIVE.match(line)) and found.group(1) == "define"
        )
        written += [f"#undef {name}\n" for name in own_macros]
    return _without_unused("".join(written))


def _expanded(
    name: str, texts: Mapping[str, str], macros: Mapping[str, str], seen: set[str], depth: int
) -> Iterator[tuple[str, bool]]:
    """Give the lines of a file with what it includes, and whether they are of a header, which all parts share.

    A header that is included under a condition may not be there for the next part: it is written again, and its guard
    decides.
    """
    text = texts[name]
    shared = name.endswith(".h")
    guarded = bool(_GUARD.search(text))
    for line in text.splitlines(keepends=True):
        found = _INCLUDE.match(line.rstrip("\n"))
        if found is None:
            directive = _DIRECTIVE.match(line)
            word = directive.group(1) if directive else ""
            depth += word in ("if", "ifdef", "ifndef")
            depth -= word == "endif"
            yield line, shared
            continue
        included = found.group(1) or macros[found.group(2)]
        if included in seen or included not in texts:  # what an FMU lacks stands under a condition that is false
            continue
        if included.endswith(".h") and depth - guarded == 0:
            seen.add(included)
        yield from _expanded(included, texts, macros, seen, depth - guarded)


def _joined(lines: Iterator[tuple[str, bool]]) -> list[tuple[str, bool]]:
    return [("".join(text for text, _ in those), shared) for shared, those in groupby(lines, lambda line: line[1])]


def _defined(text: str) -> set[str]:
    """Return the names that a text defines for itself at file scope."""
    bare = _COMMENT.sub(" ", text)
    names = {*_STATIC.findall(bare), *_FUNCTION_TYPE.findall(bare), *_TYPE.findall(bare)}
    for inside in _ENUMERATION.findall(bare):
        names |= set(_ENUMERATOR.findall(inside))
    return names - _TYPES  # which stand before the bracket of a pointer to a function


def _without_unused(text: str) -> str:
    """Return a text without unused static functions, about which compilers would warn."""
    times = Counter(re.findall(r"\b[A-Za-z_]\w*", _COMMENT.sub(" ", text)))
    kept = _FUNCTION.sub(lambda found: found.group() if times[found.group(1)] > 1 else "", text)
    return text if kept == text else _without_unused(kept)


def _renamed(text: str, names: set[str], ending: str) -> str:
    """Return a text with an ending for some names, where these are no members."""

    def replaced(match: re.Match[str]) -> str:
        member, name = match.group(1), match.group(2)
        return f"{name}{ending}" if name in names and not member else match.group()

    return _TOKEN.sub(replaced, text)


Sources = Literal["several", "single"]
"""How many C files an FMU is compiled from."""
SOURCES: tuple[Sources, ...] = get_args(Sources)
_CORE = {"steps.c": "-O2", "unit.c": "-O1"}
FLOW = {"flow.c": "-O2"}
"""What an FMU for both kinds of use has beside: the equations for the solver of its host."""
UNIT: dict[Fmi, dict[str, str]] = {fmi: {**_CORE, f"fmi{fmi}.c": "-O1"} for fmi in VERSIONS}
"""The source files of an FMU that are compiled, by the version of the FMI, and how much they are optimized: steps most;
at the start of a run and between steps nothing takes long, and compilers are sooner done with it."""
QUICK = {"steps.c": "-O0", "loop.c": "-O0", "operations.c": "-O2"}
"""The same of a loop with tables of operations, which is soon made."""
LOOP = {"steps.c": "-O2", "loop.c": "-O2"}
"""The same of the loop for runs in process, which reads all variables at every output."""

ENSEMBLE = {"steps.c": "-O2", "ensemble.c": "-O2"}
"""The same of runs of many machines at once."""

_TABLES = '#include "operations.h"\n'
"""What tables need, and functions in C do not: with these, the files of steps are those of FMUs."""
_RUNTIME = Path(__file__).parent / "runtime"
_STEPS = (newton, adaptive, rosenbrock)
"""Modules in the language of steps."""
_EXCHANGE = ("flow", "exchange", "fmi2_exchange", "fmi3_exchange")
"""How the names of files begin that are for model exchange alone."""
_OF_ENSEMBLES = ("ensemble", "lane")
"""How the names of files begin that are for ensembles alone."""
_LAYERS = ("fmi", "component")
"""How the names of files begin that are for units alone, whatever the version of the FMI."""


@dataclass(frozen=True)
class StepSources:
    """C files of steps and readings, sufficient for runs in process.

    Attributes
    ----------
    files
        Files by name, with places for functions.
    functions
        The functions, by name.
    length
        How many operations there are in all of the code, these functions included.
    """

    files: Mapping[str, str]
    functions: Mapping[str, Operations]
    length: int

    @classmethod
    def of(cls, simulation: Simulation) -> StepSources:
        """Return the sources of a simulation."""
        functions: dict[str, Operations] = {}
        code = ModelCode(simulation, held=functions)
        files = _sources(code, lambda name: not name.startswith((*_LAYERS, *_EXCHANGE, *_OF_ENSEMBLES)))
        own = {"operations.h": operations_header(), **interface_source(exchange=None)}
        return cls({**files, **own}, functions, code.length)

    @classmethod
    def kept(cls, to_dict: dict[str, Any]) -> StepSources:
        """Return the sources from `to_dict`."""
        functions = {name: Operations(**each) for name, each in to_dict["functions"].items()}
        return cls(to_dict["files"], functions, to_dict["length"])

    def to_dict(self) -> dict[str, Any]:
        """Return the sources as data for the cache."""
        return asdict(self)

    def code(self) -> dict[str, str]:
        """Return the files with all functions as C."""
        return filled(self.files, {name: each.code() for name, each in self.functions.items()})

    def tables(self) -> dict[str, str]:
        """Return the files with operation tables in place of functions."""
        return filled(self.files, {name: f"{_TABLES}{each.table()}" for name, each in self.functions.items()})


def runtime_files() -> dict[str, Path]:
    """Return the C files of the runtime by name that are written by hand; all are compiled in one folder."""
    return {file.name: file for file in sorted(_RUNTIME.rglob("*.[ch]"), key=lambda file: file.name)}


@cache
def step_files() -> dict[str, str]:
    """Return the C files by name that are made of steps in Python, of one machine and of lanes."""
    places = {(module.__name__, attribute): name for name, (module, attribute) in CONSTANTS.items()}
    made: dict[str, str] = {}
    for module in _STEPS:
        source = Source(module, places)
        for lanes in (False, True):
            name = ("lane_" if lanes else "") + module.__name__.rpartition(".")[2]
            made |= {f"{name}.h": source.header(lanes=lanes), f"{name}.c": source.code(lanes=lanes)}
    return made


def runtime_texts() -> dict[str, str]:
    """Return all C files of the runtime by name."""
    return {name: file.read_text("utf-8") for name, file in runtime_files().items()} | step_files()


def unit_files(fmi: Fmi, texts: Collection[str]) -> dict[str, str]:
    """Return the source files of an FMU that are compiled, with how much each is optimized.

    Parameters
    ----------
    fmi
        The version of the FMI.
    texts
        The names of all its files.
    """
    apart = {name: LEVEL for name in texts if name.startswith(FILE)}
    return UNIT[fmi] | {name: level for name, level in FLOW.items() if name in texts} | apart


def fmu_sources(
    simulation: Simulation,
    identity: str,
    fmi: Fmi = 2,
    exchange: ModelExchangeData | None = None,
    clocks: Clocks = "none",
) -> dict[str, str]:
    """Return the C files of an FMU by name: the generated model and the runtime.

    Parameters
    ----------
    simulation
        The simulation; its formulation decides which equations are written.
    identity
        What the FMU is instantiated with.
    fmi
        The version of the FMI; what it generates of a description comes beside.
    exchange
        What it has for model exchange; None where it is for co-simulation alone.
    clocks
        Whether hosts make the updates of sampled blocks by clocks, and by which kind of them.
    """
    code = ModelCode(simulation, exchange)
    others = {f"fmi{each}" for each in VERSIONS if each != fmi} | (set() if exchange else set(_EXCHANGE))
    left_out = (LOOP.keys() | QUICK.keys()) - _CORE.keys()
    if exchange is None or not exchange.beside_steps:
        left_out = left_out | FLOW.keys()

    def chosen(name: str) -> bool:
        return name not in left_out and not name.startswith((*others, *_OF_ENSEMBLES))

    both = exchange is not None and exchange.beside_steps
    more = {**({"model_flow.c": code.flow} if both else {}), "model_rest.c": code.rest}
    return {**_sources(code, chosen, more), **interface_source(exchange, clocks), **identity_source(identity)}


def ensemble_sources(simulation: Simulation, lanes: int, *, vector_mathematics: bool, errors: bool) -> dict[str, str]:
    """Return the C files of runs of many machines at once by name; they lack `identity_source`.

    Parameters
    ----------
    simulation
        A simulation of double-step with the trapezoidal rule.
    lanes
        How many machines run at once.
    vector_mathematics
        Whether the vector library of mathematics is there.
    errors
        Whether errors are estimated.

    Raises
    ------
    InputError
        When a function of the model cannot be written for several machines at once.
    """
    code = ModelCode(simulation, ensemble=True, errors=errors)
    files = _sources(
        code,
        lambda name: not name.startswith((*_LAYERS, *_EXCHANGE)),
        {"model_rest.c": code.rest, "model_lanes.c": code.lanes},
    )
    width = lane_width_source(lanes, vector_mathematics=vector_mathematics)
    return {**files, **width, **interface_source(exchange=None)}


def lane_width_source(lanes: int, *, vector_mathematics: bool) -> dict[str, str]:
    """Return the file, by its name, that says how many machines run at once, and with which library."""
    text = f"#define LANES {lanes}\n#define VECTOR_MATHEMATICS {int(vector_mathematics)}\n"
    return {"lane_width.h": text}


def interface_source(exchange: ModelExchangeData | None, clocks: Clocks = "none") -> dict[str, str]:
    """Return the file, by its name, that says what an FMU is for."""
    co_simulation = exchange is None or exchange.beside_steps
    says = {"CO_SIMULATION": int(co_simulation), "MODEL_EXCHANGE": int(exchange is not None)}
    says |= {f"{each.upper()}_CLOCKS": int(each == clocks) for each in CLOCKS if each != "none"}
    return {"interfaces.h": "".join(f"#define {name} {value}\n" for name, value in says.items())}


def identity_source(identity: str) -> dict[str, str]:
    """Return the file with the identity of compiled code, which depends on all others."""
    return {"identity.h": f"#define IDENTITY {string(identity)}\n"}


def prefix_source(fmi: Fmi, identifier: str) -> dict[str, str]:
    """Return the file, by its name, that begins the names of an FMU's functions with its model identifier.

    The standard asks for it where FMUs come as sources, because several of them may be linked into one program
    [FMI 2.0.4, 2.1.1; FMI 3.0, 2.2.1]. The functions of a shared library have no prefix. Its importer defines
    `FMI2_OVERRIDE_FUNCTION_PREFIX`, as the standard says, or compiles with CMake, which defines `identifier_EXPORTS`
    (FMPy does only the latter).

    Parameters
    ----------
    fmi
        The version of the FMI.
    identifier
        The model identifier.
    """
    name = f"FMI{fmi}_FUNCTION_PREFIX"
    asked = (f"FMI{fmi}_OVERRIDE_FUNCTION_PREFIX", f"{identifier}_EXPORTS", name)
    return {
        "prefix.h": f"/* Functions begin with the model identifier, unless a shared library is made of them. */\n"
        f"#if {' && '.join(f'!defined({each})' for each in asked)}\n"
        f"#define {name} {identifier}_\n"
        f"#endif\n"
    }


def _sources(
    code: ModelCode, chosen: Callable[[str], bool], more: Mapping[str, Callable[[], str]] | None = None
) -> dict[str, str]:
    """Return the selected runtime files and the model's files, the fastest to write first."""
    runtime = {name: text for name, text in runtime_texts().items() if chosen(name)}
    makers = {"model_steps.c": code.steps, "model_readings.c": code.readings, **(more or {})}
    written = {name: made() for name, made in makers.items()}
    written |= code.apart()
    return {"model.h": code.header(), **written, **runtime}  # the header knows how much room they need
