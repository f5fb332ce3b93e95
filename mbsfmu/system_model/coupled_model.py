"""`CoupledModel`, the root object of users: a model's data with methods for simulation, analysis and export."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, Unpack

from pydantic import model_validator

from mbsfmu.analysis.derivative_steps import DerivativeSteps
from mbsfmu.analysis.fitting import FitResult
from mbsfmu.analysis.gradient import Gradient, Measure, gradient
from mbsfmu.analysis.linear_system import LinearSystem
from mbsfmu.analysis.linearization import FORMULATION, linearize, modal_analysis
from mbsfmu.analysis.modal_analysis import ModalAnalysis, RootLocus, root_locus
from mbsfmu.analysis.model_functions import ModelFunctions, model_functions
from mbsfmu.analysis.optimization import OptimizationResult, optimize
from mbsfmu.analysis.residuals import Loss, Measured
from mbsfmu.analysis.sensitivities import SensitivityResult, sensitivities
from mbsfmu.base.errors import InputError
from mbsfmu.base.higher_functions import provided
from mbsfmu.base.interruption import heeding_interruptions
from mbsfmu.base.repeated_warnings import each_once
from mbsfmu.base.times import time_in_s
from mbsfmu.equilibrium.model_equilibrium import Equilibrium, find_equilibrium
from mbsfmu.integration.rosenbrock import Rosenbrock
from mbsfmu.io.signals import AnySignal, read_signals
from mbsfmu.model.model_data import ModelData
from mbsfmu.model.system_kinds import ModelConnections, kind_of
from mbsfmu.modelling.measurement_units import Bounds
from mbsfmu.rules.implicit_rules import Trapezoidal
from mbsfmu.simulation.run_options import RunKeywords, RunOptions
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.system_model.ensemble import Driving, Ensemble
from mbsfmu.system_model.ensemble_simulation import Values
from mbsfmu.system_model.model_simulation import (
    ensemble_simulation,
    fit_model,
    monolithic_simulation,
    run_options,
    simulation_of_system,
    starts_of,
    with_parameters,
    with_values,
)
from mbsfmu.systems.concatenated_system import CoupledSystem
from mbsfmu.systems.model_systems import check_variables, coupled_system, starting_variables, systems_of

_SOLVERS = (Trapezoidal.name, *Rosenbrock.names)
"""Of runs that are differentiated, and of ensembles."""


class CoupledModel(ModelData):
    """Systems and the connections between their variables: written once, simulated, exported, co-simulated.

    The fields are those of `ModelData`: `name`, `description`, `systems`, `connections`, `signals`, `outputs`,
    `stop_time` and `step` in s, `version`, `author`, `copyright`, `license`.

    Raises
    ------
    DataError
        When the parts do not fit together; the message is one sentence.
    """

    @model_validator(mode="before")
    @classmethod
    def _start_in_units(cls, data: Any) -> Any:
        """Convert start values that are texts with units; what their variables are in, the model without them knows."""
        start = data.get("start") if isinstance(data, Mapping) else None
        if not isinstance(start, Mapping) or not any(isinstance(each, str) for each in start.values()):
            return data
        known = starting_variables(systems_of(cls(**{**data, "start": {}}), absolute=False))
        found = dict(start)
        for name, value in start.items():
            if isinstance(value, str):
                try:  # what is not known is refused by its name behind this
                    found[name] = known[name].number(value, f"start.{name}") if name in known else 0.0
                except InputError as error:
                    raise ValueError(str(error)) from None
        return {**data, "start": found}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        check_variables(self)
        given = ModelConnections(self.systems, self.connections, self.signals, self.stop_time)
        for name, data in self.systems.items():
            kind_of(data).check_connections(name, data, given)
        return self

    def system(self, *, absolute: bool = False) -> CoupledSystem:
        """Return the equations of the whole model.

        Parameters
        ----------
        absolute
            Whether mechanisms are in absolute coordinates, for `dca-alm`.

        Raises
        ------
        DataError
            If connections close a nonlinear algebraic loop, or one with acceleration feed-through.
        """
        return coupled_system(self, absolute=absolute)[0]

    @heeding_interruptions()
    def simulation(
        self, *, options: RunOptions | None = None, compiled: bool = True, **given: Unpack[RunKeywords]
    ) -> Simulation:
        """Return a monolithic simulation in process.

        Parameters
        ----------
        options, given
            Options, and those of them that are given by name; `RunOptions` says what they are.
        compiled
            Whether solvers of native FMUs run in compiled code if this machine has a C compiler; results are the same
            to round-off. Compiled code is cached.

        Raises
        ------
        InputError
            When an option is wrong or the mechanism cannot be assembled.
        """
        chosen = run_options(self, options, given, ("compiled",))
        return monolithic_simulation(self, chosen, compiled=compiled)

    def play(self, **given: Any) -> Any:
        """Return a page in which the model runs by its own compiled steps, as `mbsfmu.play` does.

        The page is the `PlayPage` of that function, which explains the options and what is refused.
        """
        return provided("play")(self, **given)

    def driven_by(self, *tables: str) -> Self:
        """Return the model whose inputs follow the columns of files, in place of their signals.

        Parameters
        ----------
        tables
            `recorded.csv`, or a file of another format; columns are called as inputs, and values run straight between
            the times. With `:steps` behind it, each value holds until the next time, as in files that pages of
            `mbsfmu.play` save. Or `input=recorded.csv:column`, of one input.

        Raises
        ------
        InputError
            When there is no such file or input, no column is called as an input, or an input is given twice.
        """
        system = self.system()
        inputs = {each.name for each in system.inputs}
        names = [name for name, each in system.settable().items() if each.name in inputs]
        signals: dict[str, AnySignal] = {}
        for table in tables:
            for name, signal in read_signals(table, names).items():
                if name in signals:
                    raise InputError(f"{name} is given two signals, the second one by {table}")
                signals[name] = signal
        start = {name: value for name, value in self.start.items() if name not in signals}
        return self.model_copy(update={"signals": {**self.signals, **signals}, "start": start})

    def starts(self, *, options: RunOptions | None = None, **given: Unpack[RunKeywords]) -> dict[str, dict[str, float]]:
        """Return the initial values of each system's connected inputs and parameters, by system.

        Options and errors as for `simulation`.
        """
        return starts_of(self, run_options(self, options, given))

    @heeding_interruptions()
    def with_values(self, values: Mapping[str, float | str]) -> Self:
        """Return the model with other values of parameters, start values among them, and of inputs.

        An input that follows a signal is held at the value instead.

        Parameters
        ----------
        values
            By name, as `Simulation.set` takes it; a text may have a unit of its own, as `200 bar`.

        Raises
        ------
        InputError
            When there is no such variable, one is given twice, or a value is not allowed.
        """
        return with_values(self, self.simulation(compiled=False), values)

    @heeding_interruptions()
    def equilibrium(
        self,
        hold: str | Iterable[str] | Mapping[str, float | str | None] = (),
        find: Iterable[str] | Mapping[str, float | str] = (),
        *,
        horizon: float | None = None,
    ) -> Equilibrium[Self]:
        """Return a static equilibrium of the model, with optional fixed and free variables.

        All loads balance and no state changes, with inputs at their start values. The search starts from the model's
        start; a variable that the conditions leave undetermined is chosen close to where a run from there would end.

        Parameters
        ----------
        hold
            Fixed variables: coordinates, states and outputs as `system.variable`, with `*`, `?` and `[]` as in shells;
            by default at their start values, else at numbers or texts with units. `"position"` fixes all coordinates of
            mechanisms.
        find
            Free variables: inputs and parameters without a connection or signal, as `system.variable`, whose values are
            computed; optionally with initial guesses.
        horizon
            Time in s: slower changes, such as pressures by leakage, count as constant. By default nothing may change.

        Raises
        ------
        InputError
            When there is no such variable, or the model cannot be assembled.
        SimulationError
            If no equilibrium is found; the message names the unbalanced equation and its residual.
        """
        return find_equilibrium(self, hold, find, horizon)

    @heeding_interruptions()
    def linearize(
        self, *, at: float = 0.0, inputs: Sequence[str] = (), outputs: Sequence[str] = (), **given: Unpack[RunKeywords]
    ) -> LinearSystem:
        """Return the linear system about the state of a run at a time: δẋ = A δx + B δu, δy = C δx + D δu.

        States are independent coordinates, their velocities, and states of circuits and blocks. For the linear system
        at an equilibrium, linearize the model that starts there: `model.equilibrium().model.linearize()`.

        Parameters
        ----------
        at
            Time in s.
        inputs, outputs
            Patterns such as `circuit.valve.*`, by the names of variables; all inputs that nothing but signals drives,
            and all outputs, by default. Coordinates, velocities, accelerations and states that are
            no outputs can be outputs too.
        given
            Options of the run to that time, as for `simulation`, but for the formulation: the motion is that of all.

        Raises
        ------
        InputError
            When a pattern means nothing, the time is negative, an input prescribes a motion, or a formulation is named.
        SimulationError
            When the run to the time fails.
        """
        at = time_in_s(at, "time")
        simulation = self._analysed("linearization", given, compiled=at > 0.0)
        return linearize(simulation, at, inputs, outputs)

    @heeding_interruptions()
    def modal_analysis(
        self, *, at: float = 0.0, inputs: Sequence[str] = (), outputs: Sequence[str] = (), **given: Unpack[RunKeywords]
    ) -> ModalAnalysis:
        """Find the modes about where a run is at a time: eigenvalues, damping, participation, shapes, animations.

        Parameters and errors as for `linearize`, whose linear system is `system` of the result.
        """
        at = time_in_s(at, "time")
        simulation = self._analysed("modal analysis", given, compiled=at > 0.0)
        return modal_analysis(simulation, at, inputs, outputs)

    @heeding_interruptions()
    def root_locus(
        self,
        parameter: str,
        values: Sequence[float | str],
        *,
        at: float = 0.0,
        equilibrium: bool = False,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        **given: Unpack[RunKeywords],
    ) -> RootLocus:
        """Linearize the model for several values of a parameter or an input: how its modes change.

        Parameters
        ----------
        parameter
            Its name.
        values
            Values in SI units or texts with units, two at least.
        at
            Time in s of the run that leads to the operating point of each value.
        equilibrium
            Whether the operating point of each value is the static equilibrium for it instead.
        inputs, outputs, given
            As for `linearize`.

        Raises
        ------
        InputError
            As `linearize`; when there is no such parameter, or the number of states changes with it.
        SimulationError
            When a run fails or an equilibrium is not found.
        """
        if equilibrium and at:
            raise InputError("a time and an equilibrium name two operating points; give one")
        at = time_in_s(at, "time")
        simulation = self._analysed("a root locus", given, compiled=at > 0.0)
        variable = simulation.variable(parameter)

        def system(value: float) -> LinearSystem:
            if equilibrium:
                model = self.with_values({parameter: value}).equilibrium().model
                return model.linearize(inputs=inputs, outputs=outputs, **given)
            simulation.reset()
            simulation.set(parameter, value)
            return linearize(simulation, at, inputs, outputs)

        return root_locus(variable.name, variable.unit, variable.numbers(values, parameter), system)

    def _analysed(self, subject: str, given: RunKeywords, *, compiled: bool) -> Simulation:
        """Return a simulation for an analysis in independent coordinates."""
        return self.simulation(compiled=compiled, **_in_independent_coordinates(subject, given))

    def differentiated_steps(self, subject: str, given: RunKeywords) -> DerivativeSteps:
        """Return the steps of runs that can be differentiated, with options as for `simulation`.

        Parameters
        ----------
        subject
            What differentiates, for sentences.
        given
            The options; where they say nothing of steps, these are chosen by the error of derivatives.

        Raises
        ------
        InputError
            When an option is wrong, or the steps of formulation or solver cannot be differentiated.
        """
        chosen = _in_independent_coordinates(subject, given, _SOLVERS)
        options = run_options(self, None, chosen)
        if options.names_steps:
            return DerivativeSteps(self.simulation(**{**chosen, "solver": options.chosen_solver}))
        return DerivativeSteps(
            None, lambda: self.simulation(**{**chosen, "solver": Trapezoidal.name}), lambda: self.simulation(**chosen)
        )

    @heeding_interruptions()
    def ensemble(
        self,
        parameters: Mapping[str, Values] | None = None,
        inputs: Mapping[str, Driving] | None = None,
        starts: Mapping[str, Values] | None = None,
        *,
        lanes: int | None = None,
        errors: bool | None = None,
        **given: Unpack[RunKeywords],
    ) -> Ensemble:
        """Return many machines of the model that run at once, each in a lane of the processor's vectors.

        Steps are those of double-step that single runs make: by `rodas5p` those that each machine's own error asks for,
        and where a step is named and no tolerance, equal ones by the trapezoidal rule. Results are those of single runs
        but for what is left of Newton's iteration, and round-off.

        Parameters
        ----------
        parameters
            Values of parameters by their names: an array with a number for each machine, or a number for all.
        inputs
            The same of inputs, which keep it; or a signal for all machines, or a sequence with one for each.
        starts
            The same of the start values of coordinates and velocities, by their names.
        lanes
            Machines that are computed at once: 2, 4 with AVX2, 8 with AVX-512; as many as the processor can by default.
        errors
            Whether the error of equal steps is estimated for each machine, as in single runs, which takes 1.5 to 3
            times as long. By default runs do it, and machines that are started (`Ensemble.start`) do not.
        given
            Options as for `simulation`, but for the formulation.

        Raises
        ------
        InputError
            When a name means nothing, arrays have different lengths, a value is not allowed, or an option has no
            effect.
        """
        for name in ("iterations", "jacobian", "check_error"):
            if given.get(name):
                raise InputError(f"{name} has no effect in an ensemble; leave it out, or run machines one by one")
        own = run_options(self, None, _in_independent_coordinates("an ensemble", given, _SOLVERS))
        options = RunOptions.of(own, {"solver": own.chosen_solver})
        if errors and options.solver != Trapezoidal.name:
            raise InputError(
                f"errors has no effect with the solver '{options.solver}', which controls its errors by tolerances; "
                "leave it out, or take the trapezoidal rule"
            )
        simulation, key = ensemble_simulation(self, options)
        return Ensemble(simulation, key, parameters or {}, inputs or {}, starts or {}, lanes, errors=errors)

    @heeding_interruptions()
    def casadi(self, **given: Unpack[RunKeywords]) -> ModelFunctions:
        """Return the equations as CasADi functions with names, units and start values, for other tools.

        Parameters
        ----------
        given
            Options as for `simulation`, but for the formulation.

        Raises
        ------
        InputError
            When the model has sampled blocks or an algebraic loop that is solved by iteration, or a formulation is
            named.
        """
        return model_functions(self._analysed("casadi", given, compiled=False))

    @heeding_interruptions()
    def sensitivities(
        self,
        parameters: Sequence[str],
        outputs: Sequence[str] = (),
        *,
        stop: float | None = None,
        **given: Unpack[RunKeywords],
    ) -> SensitivityResult:
        """Run the model and return derivatives of its results with respect to parameters, for the steps made.

        Parameters
        ----------
        parameters
            Names such as `circuit.valve.flow_coefficient`; start values are parameters, too.
        outputs
            Patterns such as `cylinder.*`; all outputs by default. Coordinates, velocities, accelerations, states and
            integrals that are no outputs can be named, too.
        stop
            End of the run in s; the model's own by default.
        given
            Options as for `simulation`. Where neither a solver nor a step nor a tolerance is named, steps are chosen
            by the estimated error of the derivatives, 1e-4 of the largest one: equal ones by the trapezoidal rule, or
            those of `rodas5p`. Solvers are these and other Rosenbrock methods; formulations are `double-step` by
            default, `dca` and `hdca`, and with the trapezoidal rule `penalty`.

        Raises
        ------
        InputError
            When a name means nothing, or the model has what is not differentiated, as sampled blocks.
        SimulationError
            When the run fails, or steps that are named are halved.
        """
        steps = self.differentiated_steps("sensitivities", given)
        stop = time_in_s(self.stop_time if stop is None else stop, "stop time")
        with each_once():
            return sensitivities(steps, parameters, outputs, stop)

    @heeding_interruptions()
    def gradient(
        self,
        of: str | Measure,
        parameters: Sequence[str] = (),
        inputs: Sequence[str] = (),
        *,
        stop: float | None = None,
        **given: Unpack[RunKeywords],
    ) -> Gradient:
        """Run the model and return the derivative of a scalar with respect to parameters and input samples.

        Parameters
        ----------
        of
            The scalar: `end(output)`, `integral(output)`, `mean(output)`, `rms(output)`, `max(output)`,
            `min(output)`, or a measure such as `LeastSquares`.
        parameters
            Names of parameters.
        inputs
            Patterns of inputs, by whose values at the ends of steps the scalar is differentiated.
        stop, given
            As for `sensitivities`.

        Raises
        ------
        InputError
            As `sensitivities`.
        SimulationError
            As `sensitivities`.
        """
        steps = self.differentiated_steps("gradient", given)
        stop = time_in_s(self.stop_time if stop is None else stop, "stop time")
        with each_once():
            return gradient(steps, of, parameters, inputs, stop)

    @heeding_interruptions()
    def fit(
        self,
        measured: Measured | Sequence[Measured],
        free: Mapping[str, Bounds],
        *,
        noise: Mapping[str, float | str] | None = None,
        delays: Mapping[str, Bounds] | None = None,
        loss: Loss = "linear",
        progress: Callable[[int], None] | None = None,
        **given: Unpack[RunKeywords],
    ) -> FitResult:
        """Fit parameters to measured signals with exact sensitivities.

        Parameters
        ----------
        measured
            One experiment or several: files of signals with a column `time`, trajectories, or arrays by name.
            Columns named as inputs are given to the model, interpolated linearly; others are outputs that were
            measured. Units are those of the file; without one, SI.
        free
            Least and greatest values of the parameters to be fitted, by their names: numbers, or texts with units.
        noise
            Standard deviations of measured outputs in SI units or with a unit; what the fit leaves, where they are not
            given.
        delays
            Least and greatest delay in s of outputs whose sensors lag: y(t − delay) was measured.
        loss
            `linear`, or for data with outliers `soft_l1`, `huber` or `cauchy`.
        progress
            Called with the number of runs so far.
        given
            Options as for `sensitivities`.

        Returns
        -------
        result
            Values, 95 % intervals, correlation, what the data do not tell, and the fitted model.

        Raises
        ------
        InputError
            When a name means nothing, bounds are none, or there are fewer measured values than parameters.
        SimulationError
            When the run with the first values fails.
        """
        with each_once():
            return fit_model(self, measured, free, noise or {}, delays or {}, loss, progress, given)

    @heeding_interruptions()
    def optimize(
        self,
        minimize: str | Measure,
        free: Mapping[str, Bounds],
        *,
        subject_to: Sequence[str] = (),
        stop: float | None = None,
        **given: Unpack[RunKeywords],
    ) -> OptimizationResult:
        """Return parameters that minimise a scalar of a run under constraints, with exact gradients.

        Parameters
        ----------
        minimize
            The scalar, as for `gradient`.
        free
            Least and greatest values of the parameters, by their names: numbers, or texts with units such as `140 bar`;
            the search begins at the model's.
        subject_to
            Constraints such as `max(cylinder.pressure_piston)<=200 bar`; without a unit, in SI units.
        stop, given
            As for `sensitivities`.

        Returns
        -------
        result
            A local minimum, with the model that has its values.

        Raises
        ------
        InputError
            When a name means nothing, bounds are none, or a constraint cannot be read.
        SimulationError
            When a run of the search fails.
        """
        steps = self.differentiated_steps("optimize", given)
        stop = time_in_s(self.stop_time if stop is None else stop, "stop time")
        with each_once():
            found = optimize(steps, minimize, free, subject_to, stop)
        return replace(found, model=with_parameters(self, steps.any, found.names, found.values))

    @heeding_interruptions()
    def simulation_of(
        self,
        name: str,
        *,
        options: RunOptions | None = None,
        starts: Mapping[str, float] | None = None,
        **given: Unpack[RunKeywords],
    ) -> Simulation:
        """Return a simulation of one system alone, for coupling from outside.

        Parameters
        ----------
        name
            Name of the system.
        options, given
            As for `simulation`.
        starts
            Start values of connected inputs and parameters; what the other systems give at the start by default.

        Raises
        ------
        InputError
            When there is no such system, an option is wrong, or the mechanism cannot be assembled.
        """
        return simulation_of_system(self, name, run_options(self, options, given, ("starts",)), starts)


def _in_independent_coordinates(subject: str, given: RunKeywords, solvers: Sequence[str] = ()) -> RunKeywords:
    """Return options of runs in independent coordinates, by `double-step`.

    Raises
    ------
    InputError
        When they name another formulation, or another solver than those that the subject has; all of them by default.
    """
    formulation, solver = given.get("formulation"), given.get("solver")
    if formulation not in (None, FORMULATION):
        raise InputError(
            f"{subject} takes the independent coordinates of '{FORMULATION}', whose motion is that of all; leave out "
            f"the formulation '{formulation}'"
        )
    if solvers and solver not in (None, *solvers):
        raise InputError(
            f"{subject} takes steps of the solvers {', '.join(solvers)}, and not of '{solver}'; leave it out, or name "
            "one of these"
        )
    return {**given, "formulation": FORMULATION}
