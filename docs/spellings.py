"""Tables of what the options of commands are in Python, made from the commands and the signatures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import click

import mbsfmu
from mbsfmu.base.options import ListOption, Number, Option, Options, StringOption, Switch
from mbsfmu.cli.commands import COMMANDS, cli
from mbsfmu.cli.compare import SHARED
from mbsfmu.comparison import ComparisonOptions
from mbsfmu.simulation.run_options import RunOptions

OF_THE_LOG = {"quiet": "`logging`, as any library", "debug": "the traceback is there anyway"}
"""What all commands have that Python has otherwise."""
USUAL = {"tolerance": ["1e-6"], "stop": ["3.0"], "start_time": ["0.5"], "time_limit": ["10.0"], "pace": ["1.0"]}
USUAL |= {"penalty": ["1e9"], "accuracy": ["0.05"]}
"""Numbers as they are usual, by how the names of options end."""
PARTS = '`with mbsfmu.load_parts(["own.py"]).given():` around it; where the model is made in Python, `import own`'


@dataclass(frozen=True)
class Call:
    """What a command is in Python.

    Attributes
    ----------
    code
        The call.
    functions
        Whose parameters its keywords are.
    options
        The classes of options that it takes as keywords.
    otherwise
        What the parameters of the command are that are none of these keywords.
    """

    code: str
    functions: tuple[Callable[..., Any], ...]
    options: tuple[type[Options], ...] = ()
    otherwise: Mapping[str, str] = field(default_factory=dict)

    def keywords(self) -> set[str]:
        """Return the names that the call takes."""
        taken = {name for function in self.functions for name in inspect.signature(function).parameters}
        return taken | {name for kind in self.options for name in kind.known()}


SET = '`simulation.set("boom.mass", 310.0)` before `.run()`'
REPORT = '`mbsfmu.write_report(result, "page.html")`'
LIVE = '`mbsfmu.write_report(result, "page.html", mbsfmu.Circumstances(live=mbsfmu.play(model)))`'
CALLS = {
    "models": Call("mbsfmu.models.four_bar()", (), (), {}),
    "new": Call(
        "mbsfmu.models.write_starting_file(\"tipper\")",
        (mbsfmu.models.write_starting_file,),
        (),
        {"output": "`folder=\"machines\"`"},
    ),
    "show": Call(
        "mbsfmu.overview(model)",
        (mbsfmu.CoupledModel.simulation, mbsfmu.Simulation.run),
        (RunOptions,),
        {
            "contents": "`mbsfmu.overview(model)[\"parts\"]`, and `[\"topology\"]`; a notebook shows the model "
            "of a cell's last line",
            "variables": "`mbsfmu.overview(model)[\"variables\"]`",
            "page": "`model.simulation().run(stop=2.0).animate().save(\"page.html\")`",
            "gltf": "`….animate().save(\"motion.glb\")`",
            "stop": "`.run(stop=2.0)`",
            "assignments": SET,
            "live": "`mbsfmu.play(model).save(\"live.html\")`, a page of its own",
            "json_file": "`json.dumps(mbsfmu.overview(model))`",
        },
    ),
    "schema": Call(
        "mbsfmu.model_schema()", (), (), {"output": "`json.dumps(mbsfmu.model_schema())`"}
    ),
    "simulate": Call(
        "result = model.simulation(step=1e-3).run(stop=3.0)",
        (mbsfmu.CoupledModel.simulation,),
        (RunOptions,),
        {
            "inputs": "`model.driven_by(\"recorded.csv:steps\")`",
            "stop": "`.run(stop=3.0)`",
            "output_step": "`.run(stop=3.0, output_step=0.01)`",
            "assignments": SET,
            "output": "`result.to_file(\"run.csv\")`",
            "checkpoint": "`.run(stop=3.0, checkpoint=mbsfmu.Checkpoint(\"run.checkpoint\", seconds=60))`",
            "report": REPORT,
            "live": LIVE,
            "json_file": "`json.dumps(result.summary())`",
        },
    ),
    "equilibrium": Call(
        "found = model.equilibrium(hold, find)",
        (mbsfmu.CoupledModel.equilibrium,),
        (),
        {
            "hold": "`hold={\"crane.boom.angle\": 0.6}`, or `hold=\"position\"`",
            "find": "`find={\"crane.ram.force\": 0.0}`: the names with their guesses",
            "output": "`found.model.to_file(\"resting.json\")`",
            "json_file": "`found.values`, `found.units`, `found.stable`, …",
        },
    ),
    "linearize": Call(
        "system = model.linearize(at=0.0, inputs=[\"valve.*\"], outputs=[\"boom.angle\"])",
        (mbsfmu.CoupledModel.linearize,),
        (RunOptions,),
        {
            "model": "of FMUs `system = mbsfmu.linearize(\"four-bar.ssp\", at=0.0)`",
            "assignments": "`model.with_values({\"boom.mass\": 310.0})` before it; of FMUs `parameters={…}`",
            "equilibrium": "`model.equilibrium().model.linearize()`",
            "output": "`system.to_file(\"four-bar.mat\")`",
            "vary": "`model.root_locus(\"boom.mass\", [100.0, 200.0, 300.0])`; of FMUs `mbsfmu.root_locus_of_fmus(…)`",
            "report": "`mbsfmu.write_report(model.modal_analysis(), \"page.html\")`",
            "json_file": "`json.dumps(system.to_dict())`, with modes `json.dumps(model.modal_analysis().to_dict())`",
        },
    ),
    "fit": Call(
        "found = model.fit([\"log.csv\"], {\"valve.flow_coefficient\": (1e-8, 1e-7)})",
        (mbsfmu.CoupledModel.fit,),
        (RunOptions,),
        {
            "model": "of FMUs `found = mbsfmu.fit_fmu(\"their.fmu\", [\"log.csv\"], {\"damping\": (0.1, 2.0)})`",
            "delay": "`delays={\"boom.angle\": (0.0, 0.05)}`",
            "output": "`found.model.to_file(\"fitted.json\")`",
            "report": "`mbsfmu.write_report(found, \"page.html\")`",
            "json_file": "`json.dumps(found.to_dict())`",
        },
    ),
    "optimize": Call(
        "found = model.optimize(\"max(cylinder.force)\", {\"boom.C.along\": (0.2, 0.5)})",
        (mbsfmu.CoupledModel.optimize,),
        (RunOptions,),
        {
            "output": "`found.model.to_file(\"best.json\")`",
            "json_file": "`json.dumps(found.to_dict())`",
        },
    ),
    "export": Call(
        "paths = mbsfmu.export(model, \"out\", layout=\"separate\")",
        (mbsfmu.export, mbsfmu.export_coupled),
        (RunOptions, mbsfmu.CouplingOptions),
        {
            "model": "of an SSP package `path = mbsfmu.export_coupled(\"four-bar.ssp\", \"one.fmu\")`, which has the "
            "options of packages",
            "output": "`directory`, the second argument; of a package `path`",
            "order": "`order=[\"a\", \"b\"]`",
            "rates": "`rates={\"a\": 4}`",
            "platforms": "`platforms=[\"linux64\", \"win64\"]`",
            "outputs": "`outputs=[\"boom.angle\", \"cylinder.*\"]`",
            "no_execution_tool": "`needs_execution_tool=False`",
            "wrapper": "`wrapper=(\"simulink\", \"modelica\")`",
        },
    ),
    "live": Call(
        "mbsfmu.live(\"out/four-bar.ssp\", step=1e-3)",
        (mbsfmu.live,),
        (mbsfmu.CouplingOptions,),
        {
            "connect": "`connections=[\"a.y=b.u\"]`",
            "parameters": "`parameters={\"unit.mass\": 2.0}`",
            "starts": "`parameters={\"unit.u\": 1.0}`: start values are among them",
        },
    ),
    "play": Call(
        "mbsfmu.play(model, solver=\"trapezoidal\").save(\"page.html\")",
        (mbsfmu.play,),
        (RunOptions,),
        {
            "assignments": "`values={\"boom.mass\": 310.0, \"pump.pressure\": \"200 bar\"}`",
            "output": "`.save(\"page.html\")`",
        },
    ),
    "cosim": Call(
        "run = mbsfmu.cosimulate(\"out/four-bar.ssp\", step=1e-3, stop=3.0)",
        (mbsfmu.cosimulate,),
        (mbsfmu.CouplingOptions,),
        {
            "connect": "`connections=[\"a.y=b.u\"]`",
            "order": "`order=[\"a\", \"b\"]`",
            "rates": "`rates={\"a\": 4}`",
            "relaxation": "`relaxation=0.7`, or `relaxation=\"aitken\"`",
            "parameters": "`parameters={\"unit.mass\": 2.0}`",
            "starts": "`parameters={\"unit.u\": 1.0}`: start values are among them",
            "tables": "`inputs={\"unit.u\": mbsfmu.read_signal(\"table.csv:column\")}`, or any signal",
            "scenario": "`scenario=\"scenario.csv\"`, or a `mbsfmu.Table`",
            "bonds": "`bonds=[\"a.effort,b.flow\"]`",
            "joints": "`joints=[\"spherical:a.pin=b.pin\"]`",
            "output": "`output=\"run.parquet\"` writes as it runs; `run.to_file(\"run.parquet\")` afterwards",
            "checkpoint": "`checkpoint=mbsfmu.Checkpoint(\"run.checkpoint\", seconds=60)`, with `output`",
            "report": REPORT,
            "json_file": "`json.dumps(run.summary())`",
        },
    ),
    "compare": Call(
        "comparison = mbsfmu.compare(model, steps=[2e-3, 1e-3])",
        (mbsfmu.compare,),
        (ComparisonOptions,),
        {
            "connect": "`connections=[\"a.y=b.u\"]`",
            "assignments": "`parameters={\"unit.mass\": 2.0}`",
            "tables": "`inputs={\"unit.u\": mbsfmu.read_signal(\"table.csv:column\")}`, or any signal",
            "advises": "`mbsfmu.recommend(\"system.ssp\", accuracy=0.01)`",
            **{name: f"`coupling={{\"{name}\": …}}`" for name in SHARED},
            "report": REPORT,
            "live": LIVE,
            "json_file": "`json.dumps(comparison.to_dict())`",
        },
    ),
    "sweep": Call(
        "study = mbsfmu.sweep(model, {\"boom.mass\": [100.0, 200.0]}, output=\"masses.parquet\")",
        (mbsfmu.sweep,),
        (mbsfmu.StudyOptions,),
        {
            "model": "of FMUs `mbsfmu.sweep(\"system.ssp\", …)`, or `mbsfmu.sweep([\"a.fmu\", \"b.fmu\"], …)`",
            "connect": "`connections=[\"a.y=b.u\"]`",
            "tables": "`inputs={\"a.u\": mbsfmu.read_signal(\"table.csv:column\")}`",
            "vary": "`vary={\"boom.mass\": [100.0, 200.0]}`, the second argument",
            "points": "`samples=mbsfmu.studies.read_samples(\"samples.csv\")`",
            "sample": "`samples=mbsfmu.studies.draw({\"boom.mass\": (100.0, 400.0)}, 100, method=\"sobol\")`",
            "seed": "`draw(…, seed=1)`",
            "formulation": "`settings={\"formulation\": [\"dca\", \"penalty\"]}`",
            "algorithm": "`settings={\"algorithm\": [\"jacobi\"]}`",
            "step": "`settings={\"step\": [1e-3, 5e-4]}`",
            "assignments": "`settings={\"penalty\": [1e7, 1e9]}`",
            "scheduler": "`executor=Client(\"tcp://host:8786\").get_executor()` of Dask, or any executor",
            "report": "`mbsfmu.write_report(study, \"page.html\")`",
            "json_file": "`json.dumps(study.rows)`",
        },
    ),
    "validate": Call(
        "findings = mbsfmu.validate(\"unit.fmu\")",
        (mbsfmu.validate,),
        (),
        {"reference": "`mbsfmu.check_reference(\"unit.fmu\")`", "reference_tolerance": "look at `each.share` of it",
         "strict": "look at `finding.severity` of each", "json_file": "the list it returns"},
    ),
}  # fmt: skip
"""Each command as a call."""


def spellings() -> str:
    """Return a section for each command: the call, and a table of its options."""
    return "\n".join(line for name in COMMANDS for line in _section(name))


def _section(name: str) -> Iterator[str]:
    call = CALLS[name]
    yield f"### `mbsfmu {name}`\n"
    yield f"`{call.code}`\n"
    rows = [(flag, spelled) for flag, spelled in spelled_options(name) if flag not in ("--quiet", "--debug")]
    if rows:
        yield "| command line | Python |\n| --- | --- |"
        yield from (f"| `{flag}` | {spelled.replace('|', '&#124;')} |" for flag, spelled in rows)
        yield ""


def spelled_options(name: str) -> Iterator[tuple[str, str]]:
    """Yield the flags of a command with what they are in Python.

    Raises
    ------
    KeyError
        When an option is neither a keyword of the call nor told otherwise.
    """
    command, call = cli.get_command(click.Context(cli), name), CALLS[name]
    assert command is not None
    known = {each: option for kind in call.options for each, option in kind.known().items()}
    for parameter in command.params:
        if not isinstance(parameter, click.Option) or parameter.name is None:
            continue
        flag = next(each for each in parameter.opts if each.startswith("--"))
        if parameter.name in call.otherwise:
            yield flag, call.otherwise[parameter.name]
        elif parameter.name == "parts":
            yield flag, PARTS
        elif parameter.name in OF_THE_LOG:
            yield flag, OF_THE_LOG[parameter.name]
        elif parameter.name in call.keywords():
            yield flag, f"`{parameter.name}={_sample(parameter, known.get(parameter.name))}`"
        else:
            raise KeyError(f"mbsfmu {name} {flag} is neither a keyword of {call.code} nor said to be anything else")


def _sample(parameter: click.Option, option: Option | None) -> str:
    """Return a value as Python takes it."""
    if isinstance(option, ListOption):
        return f"[{', '.join(_values(option.each))}]"
    if option is not None:
        return _values(option, parameter.name or "")[0]
    if parameter.is_flag:
        return "True"
    if isinstance(parameter.default, str | int):
        return str(parameter.default) if isinstance(parameter.default, int) else f'"{parameter.default}"'
    return {"integer": "4", "float": "0.5"}.get(parameter.type.name, '"…"')


def _values(option: Option, name: str = "") -> list[str]:
    """Return one or two values that an option takes."""
    if isinstance(option, Switch):
        return ["True"]
    if isinstance(option, Number):
        usual = next((values for ending, values in USUAL.items() if name.endswith(ending)), ["1e-3", "5e-4"])
        return ["4", "2"] if option.whole else usual
    if isinstance(option, StringOption):
        return [f'"{word}"' for word in _some(option.among())]
    return ['"…"']


def _some(words: Iterable[str]) -> list[str]:
    return list(words)[:2]
