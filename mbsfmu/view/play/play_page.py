"""A model alive in a page or in a cell of a notebook: its compiled steps, its animation, inputs by hand."""

from __future__ import annotations

import base64
import gzip
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from markupsafe import Markup

from mbsfmu.base.errors import InputError
from mbsfmu.base.interruption import heeding_interruptions
from mbsfmu.compiling.compiler import compile_library
from mbsfmu.fmu.description import FmuDescription
from mbsfmu.integration.solvers import makes_equal_steps
from mbsfmu.io.checkpoints import RunError
from mbsfmu.io.part_files import UserParts
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine, model_remarks
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.variables import Causality, Variability, Variable, rated_names
from mbsfmu.native.c_sources import unit_files
from mbsfmu.native.native_package import described_sources
from mbsfmu.simulation.run_options import RunKeywords, RunOptions
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variable_table import STEP
from mbsfmu.system_model.coupled_model import CoupledModel
from mbsfmu.system_model.model_simulation import in_equal_steps, monolithic_simulation, run_options
from mbsfmu.view.circuit.circuit_diagram import circuit_diagrams, circuit_elements
from mbsfmu.view.pages.page import HtmlElement, data_block, filled, framed, page, text_of, write_page
from mbsfmu.view.play.coupled_machine import FILE, CoupledMachine, LivePoses
from mbsfmu.view.play.replay import (
    Replay,
    coupled_replay_by_command,
    coupled_replay_in_python,
    replay_by_command,
    replay_in_python,
    table_of,
)
from mbsfmu.view.scene.animation import scene_element
from mbsfmu.view.scene.payload import Uncoloured, motion, placements_of, pressure_sources
from mbsfmu.view.scene.poses import Recorded

_NOTEBOOK_HEIGHT = 1000
"""Pixels of the frame."""


def notebook_widget(
    title: str, page: str, inputs: Sequence[str], signals: Sequence[str], plotted: Sequence[str]
) -> Any:
    """Return a widget of a page in which a machine runs.

    Parameters
    ----------
    title, page
        The machine, and its page.
    inputs, signals, plotted
        Names of the inputs, of all signals, and of those that are plotted at first.

    Returns
    -------
    anywidget.AnyWidget
        With `time` in s, `values` of the plotted signals and `inputs` by their names, told five times a second; `set`
        sets inputs, `plot` chooses signals.

    Raises
    ------
    InputError
        When the package anywidget is missing.
    """
    try:
        import anywidget  # noqa: PLC0415 - an extra
        import traitlets  # noqa: PLC0415
    except ImportError:
        raise InputError(
            "a widget needs the package anywidget, extra 'notebook': pip install 'mbsfmu[notebook]'"
        ) from None

    class PlayWidget(anywidget.AnyWidget):
        """A running machine in a cell."""

        _esm = text_of("play/notebook.js")
        title = traitlets.Unicode("").tag(sync=True)
        page = traitlets.Unicode("").tag(sync=True)
        height = traitlets.Int(_NOTEBOOK_HEIGHT).tag(sync=True)
        time = traitlets.Float(0.0).tag(sync=True)
        values = traitlets.Dict().tag(sync=True)
        inputs = traitlets.Dict().tag(sync=True)
        wanted = traitlets.Dict().tag(sync=True)
        signals = traitlets.List().tag(sync=True)

        def set(self, values: Mapping[str, float]) -> None:
            """Set inputs by their names; refuse unknown ones."""
            for name in values:
                _known(name, inputs, "input")
            self.wanted = {name: float(value) for name, value in values.items()}
            self.wanted = {}  # the same values may be wanted again

        def plot(self, *names: str) -> None:
            """Choose the signals that are plotted, and whose values are told; refuse unknown ones."""
            for name in names:
                _known(name, signals, "signal")
            self.signals = list(names)

    return PlayWidget(title=title, page=page, signals=list(plotted))


def _known(name: str, names: Sequence[str], kind: str) -> None:
    if name not in names:
        raise InputError(f"there is no {kind} '{name}' in the page; {closest_match(name, names)}")


_PREVIEW = 10.0
"""Most s of the run that tells how far the machine goes: long enough for a cycle of a working machine."""
_FRAMES = 10.0
"""Frames for each second of that run, which only the camera looks at."""
_COMMUNICATION = 1e-2
"""Communication step in s of solvers that choose their own: a hundredth of a second is not felt by hands."""
_HEIGHT = 1000
"""Pixels of a frame in a notebook."""
_MONOLITHIC, _COUPLED = "monolithic", "coupled"
_MULTIPLES = (1, 2, 4)
"""Communication steps as multiples of the internal one, where none are named."""
_WORKER = ("play/fmu.js", "play/worker.js")
_SCRIPTS = (
    *("pages/quantities.js", "pages/download.js", "assets/uplot/uPlot.iife.min.js", "plots/data.js", "plots/panel.js"),
    *("play/inputs.js", "play/signals.js", "play/player.js"),
)
_STYLES = ("assets/uplot/uPlot.min.css", "plots/plot.css", "play/play.css")
_PLOTTED = (("Pa", 4), ("rad", 4), ("m", 4), ("rad/s", 4), ("m/s", 4))
"""Which outputs are plotted at first: up to so many of each unit, of the first two of these units that there are."""
_PANELS = 2
_LOADS = ("N", "N.m")
"""Units of inputs that stand behind the others."""


class PlayPage:
    """A page in which a model runs: notebooks show it, `save` writes it.

    Attributes
    ----------
    data
        What the page knows of the model, as plain data.
    title
        Name of the model.
    """

    def __init__(
        self, data: Mapping[str, Any], scene: Mapping[str, Any], title: str, circuits: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.data, self.title = data, title
        self._scene, self._circuits = scene, circuits

    def __repr__(self) -> str:
        inputs = len(self.data["inputs"])
        return f"<PlayPage: {self.title}, {inputs} input{'s' * (inputs != 1)}, steps of {self.data['step']:g} s>"

    def coupled_by(self, algorithm: str, step: float) -> PlayPage:
        """Return the page whose coupled FMUs begin with one of its algorithms and communication steps in s."""
        coupled = self.data["coupled"]
        place = [each["called"] for each in coupled["algorithms"]].index(algorithm)
        data = {**self.data, "coupled": {**coupled, "begin": {"algorithm": place, "step": step}}}
        return PlayPage(data, self._scene, self.title, self._circuits)

    @property
    def element(self) -> HtmlElement:
        """Content of the page."""
        return self._element(self.title, "h1", alone=True)

    @property
    def inside(self) -> HtmlElement:
        """The machine as a part of another page, where keys drive it while the pointer or the focus is there."""
        return self._element(f"{self.title}, live", "h2", alone=False)

    def _element(self, title: str, level: str, *, alone: bool) -> HtmlElement:
        return player_element(self.data, title, self._scene, level=level, alone=alone, circuits=self._circuits)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained page; it appears complete or not at all.

        Raises
        ------
        InputError
            When the file is not called `.html` or `.htm`.
        """
        write_page(self.title, self.element, path)

    def widget(self) -> Any:
        """Return the page as a widget of notebooks, whose values Python reads: `time`, `values`, `inputs`.

        `widget.set({"valve.command": 5.0})` sets inputs, `widget.plot("boom.angle")` chooses the signals that are
        plotted and told, five times a second.

        Raises
        ------
        InputError
            When the package anywidget is missing (the extra `notebook`).
        """
        inputs, signals = ([each["name"] for each in self.data[kind]] for kind in ("inputs", "signals"))
        return notebook_widget(self.title, page(self.title, self.element), inputs, signals, self.data["plotted"])

    def _repr_html_(self) -> str:
        """Return the page in a frame, where scripts of a notebook do not meet its own."""
        return framed(self.title, self.element, _HEIGHT)


def player_element(
    data: Mapping[str, Any],
    title: str,
    scene: Mapping[str, Any] | None,
    *,
    level: str = "h1",
    alone: bool = True,
    missing: Markup = Markup(""),  # noqa: B008 - it is frozen
    circuits: Sequence[Mapping[str, Any]] = (),
) -> HtmlElement:
    """Return what a running machine is driven by: its picture, inputs, plots, states and parameters.

    Parameters
    ----------
    data
        What the page knows of it; `remote` where it runs behind the page, and not in a worker.
    title, level
        The heading and its element.
    scene
        How it looks; where there is none, `missing` stands there.
    alone
        Whether it has the page for itself.
    missing
        What stands in place of the picture.
    circuits
        Schematics whose sources are indices of the `circuit` values of its pictures.
    """
    remote = bool(data.get("remote"))
    values = {"title": title, "level": level, "alone": alone, "data": data_block(data)}
    picture = None if scene is None else scene_element(scene, label=title, live=True)
    circuit = circuit_elements(circuits) if circuits else None
    markup = filled(
        "play/play.html",
        coupled=bool(data.get("coupled")),
        scene=missing if picture is None else picture.markup,
        circuit="" if circuit is None else circuit.markup,
        **values,
    )
    around = HtmlElement.around(markup, [each for each in (picture, circuit) if each is not None])
    scripts = (*around.scripts, *_SCRIPTS)
    return HtmlElement(markup, (*around.styles, *_STYLES), scripts, computes=not remote, connects=remote)


@heeding_interruptions()
def play(
    model: CoupledModel,
    *,
    options: RunOptions | None = None,
    values: Mapping[str, float | str] | None = None,
    source: str = "",
    algorithms: Sequence[str] = (),
    communication_steps: Sequence[float] = (),
    **given: Unpack[RunKeywords],
) -> PlayPage:
    """Return a page in which a model runs by its own compiled steps, with interactive inputs.

    Inputs that follow signals of the model are free in the page, but for those that prescribe a motion. They begin with
    the values of their signals.

    Parameters
    ----------
    model
        The model; it must have a mechanism.
    options, given
        Options, and those of them that are given by name, as for `CoupledModel.simulation`, of solvers that native
        FMUs have. Where neither solver nor tolerance is named, steps are equal by the trapezoidal rule.
    values
        Values of parameters and inputs to begin with, by their names; a text may have a unit, as `"200 bar"`.
    source
        The model on the command line; the page shows the call that repeats what was done, or without it a call in
        Python.
    algorithms
        With some of them, as `jacobi` or `gauss-seidel-linear`, the FMUs of the model's systems run coupled in the page
        as well, with the same inputs: as a ghost, in the plots, and as a table of differences. The page begins with the
        first one, and chooses among them.
    communication_steps
        Steps of this coupling in s, among which the page chooses, beginning with the first one; by default once, two
        times and four times the internal one.

    Raises
    ------
    InputError
        When an option or algorithm is refused, there is no mechanism, one system alone where FMUs are to be coupled, no
        cross-compiler (the extra `cross`), or the model cannot be initialized.
    """
    chosen = run_options(model, options, given)
    if chosen.check_error:
        raise InputError("check error has no effect in a page, whose runs are endless; it has in process")
    parts = UserParts.of(model)
    with parts.given():
        free, preview = _freed(model, chosen), _preview(model, chosen, values or {})
        equal = in_equal_steps(chosen) if free.signals != model.signals else chosen
        simulation = monolithic_simulation(free, equal, compiled=False)
        if simulation.undriven and simulation.solver.name != in_equal_steps(chosen).chosen_solver:
            equal = in_equal_steps(chosen)
            simulation = monolithic_simulation(free, equal, compiled=False)
        _set(simulation, values or {})
        made = _Made.of(simulation, preview, coupled=bool(algorithms))
        named = _named(equal, simulation)
        begun = {simulation.variable(name).name: value for name, value in (values or {}).items()}
        data = made.data(
            model.name,
            replay_by_command(model.name, source, equal, named, begun)
            if source
            else replay_in_python(model.name, equal, named, begun),
            model_remarks(model),
        )
        if algorithms:
            steps = communication_steps or [each * made.communication_step for each in _MULTIPLES]
            inner = equal.model_copy(update=named)
            coupled = CoupledMachine.of(free, inner, algorithms, steps, _machine_of(simulation))
            full = simulation.exposed.qualified
            by_system = {full[name]: value for name, value in begun.items()}
            own = {each.name: index for index, each in enumerate(simulation.variables)}
            told = (
                coupled_replay_by_command(model.name, source, equal, named, by_system, algorithms)
                if source
                else coupled_replay_in_python(model.name, equal, named, by_system, algorithms)
            )
            data["coupled"] = coupled.data(own, full, told, data["bodies"])
    return PlayPage(data, made.scene, model.name, made.circuits)


def _freed(model: CoupledModel, options: RunOptions) -> CoupledModel:
    """Return the model without the signals of its inputs, which begin with what these say."""
    system = model.system(absolute=options.kind.absolute)
    prescribed = rated_names(system.inputs)
    kept = {
        reference: signal for reference, signal in model.signals.items() if system.input_name(reference) in prescribed
    }
    starts = {name: signal.after(0.0) for name, signal in model.signals.items() if name not in kept}
    return model.model_copy(update={"signals": kept, "start": {**model.start, **starts}})


def _preview(model: CoupledModel, options: RunOptions, values: Mapping[str, float | str]) -> Trajectory:
    """Return a run of the unchanged model, which gives the ranges."""
    simulation = model.simulation(options=options)
    _set(simulation, values)
    for name in simulation.undriven:  # hands will drive them
        simulation.set(name, simulation.get(name))
    try:
        return simulation.run(min(model.stop_time, _PREVIEW))
    except RunError as ended:
        if len(ended.result.time) < 2:
            raise
        return ended.result


def _set(simulation: Simulation, values: Mapping[str, float | str]) -> None:
    """Set variables before the first step."""
    for name, value in values.items():
        simulation.set(name, value)


def _named(options: RunOptions, simulation: Simulation) -> dict[str, Any]:
    """Return what the model chose where the options leave it open."""
    steps = {"step": simulation.step_size} if makes_equal_steps(options.chosen_solver) else {}
    return {"formulation": simulation.formulation.name, "solver": options.chosen_solver, **steps}


@dataclass(frozen=True)
class _Made:
    """Parts of the page.

    Attributes
    ----------
    simulation, description
        What is compiled.
    module
        The WebAssembly module.
    poses
        What the poses follow from.
    preview, scene
        A run of the model, and how it looks.
    pressures
        Variables, or constants in Pa, of the nodes of cylinders.
    circuits, circuit
        Schematics, whose sources are indices of these variables.
    """

    simulation: Simulation
    description: FmuDescription
    module: bytes
    poses: LivePoses
    preview: Trajectory
    scene: Mapping[str, Any]
    pressures: Mapping[str, str | float]
    circuits: Sequence[Mapping[str, Any]]
    circuit: Sequence[str]

    @classmethod
    def of(cls, simulation: Simulation, preview: Trajectory, *, coupled: bool) -> _Made:
        """Compile a simulation, and draw a run of it; with a ghost where a coupled run is beside it."""
        assert simulation.machine is not None
        machine = _machine_of(simulation)
        ghosts = {_COUPLED: preview} if coupled else None
        scene = motion(machine, preview, ghosts, label=_MONOLITHIC, frame_rate=_FRAMES)
        scene = {**scene, "arrows": [], "notes": []}  # loads are those of the run; notes are about it
        recorded = Recorded(preview, preview.time[:1], machine.systems)
        names = {each.name for each in simulation.variables}
        parameters = {ref: name for ref, name in simulation.exposed.by_system.items() if name in names}
        poses = LivePoses.of(placements_of(machine), recorded, parameters)
        sources = pressure_sources(machine, recorded)
        pressures = {
            node: recorded.name(*source) or "" if isinstance(source, tuple) else source
            for node, source in sources.items()
            if not isinstance(source, Uncoloured)
        }
        circuit: dict[str, int] = {}

        def read(variable: str) -> dict[str, int] | None:
            return {"index": circuit.setdefault(variable, len(circuit))} if variable in names else None

        circuits = circuit_diagrams(machine, preview, read)
        description, texts = described_sources(simulation, 2)
        compiled = {**unit_files(2, texts), FILE: "-O2"}
        library = compile_library({**texts, FILE: poses.code}, compiled, "wasm32")
        module = library.read_bytes()
        return cls(simulation, description, module, poses, preview, scene, pressures, circuits, list(circuit))

    def data(self, name: str, replay: Replay, remarks: Iterable[str]) -> dict[str, Any]:
        """Return the data for scripts of the page, with remarks on the model."""
        variables = self.simulation.variables
        places = {each.name: index for index, each in enumerate(variables)}
        prescribed = rated_names([each for each in variables if each.causality is Causality.INPUT])
        inputs = [
            {**self._described(each, places), **self._range(each)}
            for each in variables
            if each.causality is Causality.INPUT and each.name not in prescribed
        ]
        inputs.sort(key=lambda each: each["unit"] in _LOADS)  # levers and set points come to hand first
        return {
            "name": name,
            "identity": self.description.identity,
            "module": base64.b64encode(gzip.compress(self.module, 9, mtime=0)).decode("ascii"),
            "worker": "".join(map(text_of, _WORKER)),
            "step": self.communication_step,
            "file": table_of(name),
            "replay": replay.data(),
            "inputs": inputs,
            "remarks": list(remarks),
            "parameters": [
                {**self._described(each, places), "fixed": each.variability is Variability.FIXED}
                for each in variables
                if each.causality is Causality.PARAMETER and each.name != STEP.name
            ],
            "signals": [
                {**self._described(each, places), "most": self._most(each.name)}
                for each in variables
                if each.causality in (Causality.OUTPUT, Causality.LOCAL, Causality.INPUT)
                and each.variability is not Variability.FIXED
            ],
            "poses": [places[each] for each in self.poses.names],
            "bodies": len(self.scene["bodies"]),
            "circuit": [places[each] for each in self.circuit],
            "pressures": {
                node: {"reference": places[source]} if isinstance(source, str) else source
                for node, source in self.pressures.items()
            },
            "plotted": self._plotted(variables),
        }

    @property
    def communication_step(self) -> float:
        """Length in s of the steps that the page makes."""
        simulation = self.simulation
        return simulation.step_size if makes_equal_steps(simulation.solver.name) else _COMMUNICATION

    def _described(self, variable: Variable, places: Mapping[str, int]) -> dict[str, Any]:
        """Return a variable as the page shows it."""
        start = self.simulation.get(variable.name) if variable.settable else variable.start
        return {
            "name": variable.name,
            "full": self.simulation.exposed.qualified.get(variable.name, variable.name),
            "reference": places[variable.name],
            "unit": variable.unit,
            "start": start,
            "least": variable.accepted[0],
            "greatest": variable.accepted[1],
            "description": variable.description,
        }

    def _most(self, name: str) -> float:
        """Return the magnitude that a variable had in the run."""
        return float(np.max(np.abs(self.preview[name]))) if name in self.preview.names else 0.0

    def _range(self, variable: Variable) -> dict[str, float]:
        """Return between which values the slider of an input goes: its bounds, or what its signal has had."""
        values = self.preview[variable.name] if variable.name in self.preview.names else np.zeros(1)
        low, high = float(values.min()), float(values.max())
        size = max(abs(low), abs(high)) or variable.nominal or 1.0
        usual = (-size, size) if low < 0.0 < high or low == high == 0.0 else (low, high)
        if usual[0] == usual[1]:
            usual = min(0.0, low), max(0.0, high)
        least, most = variable.minimum, variable.maximum
        return {"from": usual[0] if least is None else least, "to": usual[1] if most is None else most}

    def _plotted(self, variables: Sequence[Variable]) -> list[str]:
        """Return the names of the initial plots: the largest motions in two units, and inputs."""
        outputs = [each for each in variables if each.causality is Causality.OUTPUT]
        found: list[list[str]] = []
        for unit, most in _PLOTTED:
            moved = [
                each.name
                for each in outputs
                if each.unit == unit and each.name in self.preview.names and np.ptp(self.preview[each.name]) > 0.0
            ]
            if moved:
                found.append(moved[:most])
        return [name for names in found[:_PANELS] for name in names]


def _machine_of(simulation: Simulation) -> Machine:
    """Return the machine of a simulation with its parameter values."""
    machine = simulation.machine_as_run()
    assert machine is not None
    return machine
