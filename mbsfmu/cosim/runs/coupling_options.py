"""Options of a co-simulation, and their compatibility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypedDict

from mbsfmu.base.errors import InputError
from mbsfmu.base.options import POSITIVE, Bounds, ChoiceOption, ListOption, Number, Option, Options, Switch
from mbsfmu.cosim.control.step_control import CONTROLS
from mbsfmu.cosim.coupling.algorithms import ALGORITHMS, CHOICES, ITERATED, algorithms_with, parted
from mbsfmu.cosim.coupling.extrapolation import Extrapolation
from mbsfmu.cosim.coupling.sweeps import AITKEN, JACOBIANS, Settings, names_of
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.cosim.fmus.model_exchange import SOLVERS

TOLERANCE = 1e-4
"""Default tolerance of step control."""
OF_COURSES = (
    *("isolate", "place", "scheduler", "time_limit"),
    *("start_time", "record", "record_every", "record_interval", "pace"),
)
"""Options without effect on the coupling."""
TIME_LIMIT = 60.0
"""Default time limit of a call of an isolated FMU in s of wall time."""
ALL = "all"
"""In the place of the names of FMUs: every one of them."""
_NAMED = {"algorithm", "extrapolation", "energy_correction", "linear_correction"}
"""Options with one of which inputs are held unless another extrapolation is named."""
_OF_ERROR_CONTROL = 1e-5  # of the tolerance of error control, for iterations
_SHARE = Bounds("must be between 0 and 1", lambda value: 0.0 < value < 1.0)
_COUNT = Bounds("must be at least 1", lambda value: value >= 1.0)


class _Relaxation(Number):
    """A number, or the word for finding it."""

    def taken(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            if value != AITKEN:
                raise InputError(f"the relaxation is '{value}'; it must be '{AITKEN}' or a number")
            return value
        return super().taken(name, value)


class _Units(ListOption):
    """Names of FMUs, or the word for all."""

    def taken(self, name: str, value: Any) -> tuple[Any, ...]:
        if isinstance(value, str) and value != ALL:
            raise InputError(f"the {self.words(name)} are {value!r}; they must be a list, or '{ALL}'")
        return super().taken(name, [value] if isinstance(value, str) else value)


class _Places(Option):
    """Names of workers by FMU."""

    def taken(self, name: str, value: Any) -> Mapping[str, str]:
        if not isinstance(value, Mapping):
            raise InputError(f"the {name} is {value!r}; it must be workers by FMU, such as {{'plant': 'host-1'}}")
        return {str(unit): str(worker) for unit, worker in value.items()}


class CouplingKeywords(TypedDict, total=False):
    """The options of a co-simulation as keywords, for editors and type checkers; `CouplingOptions` explains them."""

    algorithm: Literal["jacobi", "gauss-seidel", "fixed-point", "newton"] | str | None
    extrapolation: Literal["zero", "linear", "quadratic", "derivatives", "adaptive"] | str | None
    order: Sequence[str] | None
    rates: Mapping[str, int] | None
    step: float | None
    stop: float | None
    control: Literal["fixed", "error", "energy"] | None
    tolerance: float | None
    absolute_tolerance: float | None
    unit_tolerance: float | None
    smallest_step: float | None
    largest_step: float | None
    iteration_tolerance: float | None
    maximum_iterations: int | None
    relaxation: float | Literal["aitken"] | None
    jacobian: Literal["differences", "directional"] | None
    energy_correction: bool | None
    linear_correction: bool | None
    threads: int | None
    model_exchange: Sequence[str] | Literal["all"] | None
    unit_solver: Literal["radau", "dop853"] | None
    isolate: Sequence[str] | Literal["all"] | None
    place: Mapping[str, str] | None
    scheduler: str | None
    time_limit: float | None
    strict: bool | None
    start_time: float | None
    record: Sequence[str] | None
    record_every: int | None
    record_interval: float | None
    pace: float | None


class CouplingOptions(Options):
    """Options of a co-simulation.

    `jacobi`: all FMUs step with what is known at the beginning of a step; `gauss-seidel`: one after the other, later
    ones with the new outputs of earlier ones; `fixed-point` and `newton` repeat each step until inputs are what the
    outputs have become, and need FMUs that save their states. `gauss-seidel` by default: it costs what `jacobi` does
    and leaves less residual energy, wherever FMUs need not step at the same time.

    Inputs run over a step as `zero` (held), `linear`, `quadratic`, `derivatives` (straight, with the slopes that
    the FMUs give), or `adaptive` (linear where that has lately been better, in equal steps without iteration).
    Iterated algorithms interpolate with the same degree. An FMU that cannot interpolate holds the mean. Equal steps by
    `gauss-seidel` are `adaptive`, and controlled ones `linear`, where neither algorithm nor extrapolation is named; a
    named algorithm alone holds.

    Control `error` makes each step once as a whole and in two halves, and repeats it where the error is too large;
    a second run in whole steps beside shows what has become of the errors. `energy` goes by the residual power of the
    bonds; with `gauss-seidel` and `zero` it gains nothing over equal steps.
    Without saved states errors are estimated from the extrapolation and no step is repeated. Controlled steps end
    where an FMU tells its next event (a variable `next_event` in s, as ours have). What happens inside another FMU
    at rest, such as a jump of a signal of its own, is seen only where a step ends soon after: bound the steps by it.

    Raises
    ------
    InputError
        When a name is unknown, a value is out of range, or an option has no effect.
    """

    subject: ClassVar[str] = "a co-simulation"

    algorithm: Annotated[
        str,
        ChoiceOption(
            "Coupling algorithm; may name its extrapolation, as compare does: gauss-seidel-linear",
            among=lambda: ALGORITHMS,
        ),
    ] = "gauss-seidel"
    extrapolation: Annotated[
        Extrapolation,
        ChoiceOption(
            "Extrapolation of the inputs over a communication step; adaptive where no algorithm is named",
            among=lambda: tuple(Extrapolation),
        ),
    ] = Extrapolation.ZERO
    order: Annotated[
        tuple[str, ...] | None,
        Option("Order in which FMUs step one by one: a,b; that of the FMUs by default"),
    ] = None
    rates: Annotated[
        Mapping[str, float] | None,
        Option("Steps of FMUs in a communication step (multirate), inputs extrapolated inside it: a=4,b=1"),
    ] = None
    step: Annotated[
        float | None,
        Number("Communication step in s, with step control the first one; what the FMUs suggest by default", unit="s"),
    ] = None
    stop: Annotated[
        float | None, Number("Stop time in s; that of the package or the FMUs by default", unit="s", called="stop time")
    ] = None
    control: Annotated[str, ChoiceOption("Control of the communication step", among=lambda: CONTROLS)] = "fixed"
    tolerance: Annotated[
        float | None,
        Number(
            "Relative tolerance: with error control, of the sum of all errors of a variable; with energy control, of "
            f"the residual power; {TOLERANCE:g} by default. In systems that amplify errors, the run reports how large "
            "they have become",
            bounds=POSITIVE,
        ),
    ] = None
    absolute_tolerance: Annotated[
        float | None,
        Number(
            "Absolute tolerance, in nominal values (W for powers); same as the relative one by default. If given, a "
            "variable without a nominal value has 1; otherwise its magnitude counts, at least 1e-7",
            bounds=POSITIVE,
        ),
    ] = None
    unit_tolerance: Annotated[
        float | None,
        Number(
            "Relative tolerance of the solvers inside the FMUs, and of the one for model exchange; what each FMU "
            "suggests by default; solvers with equal steps have none",
            bounds=_SHARE,
            called="tolerance of the FMUs",
        ),
    ] = None
    smallest_step: Annotated[
        float | None, Number("Smallest controlled step in s; a thousandth of the first one by default", unit="s")
    ] = None
    largest_step: Annotated[
        float | None, Number("Largest controlled step in s; ten times the first one by default", unit="s")
    ] = None
    iteration_tolerance: Annotated[
        float | None,
        Number(
            "Tolerance of iterated steps, relative to the magnitude or nominal value of a variable; "
            f"{Settings.iteration_tolerance:g} by default, with error control {_OF_ERROR_CONTROL:g} of its tolerance "
            "if that is less",
            bounds=_SHARE,
        ),
    ] = None
    maximum_iterations: Annotated[
        int | None,
        Number(
            f"Iterations after which a step fails; {Settings.maximum_iterations} by default",
            bounds=_COUNT,
            whole=True,
            called="maximum number of iterations",
        ),
    ] = None
    relaxation: Annotated[
        float | str | None,
        _Relaxation(
            f"Relaxation factor of fixed-point, or {AITKEN}, the default",
            bounds=Bounds(f"must be '{AITKEN}' or a number in (0, 2]", lambda value: 0.0 < value <= 2.0),
        ),
    ] = None
    jacobian: Annotated[
        str | None,
        ChoiceOption(
            f"First Jacobian of newton; {JACOBIANS[0]} by default, or directional derivatives of the FMUs, if provided",
            among=lambda: JACOBIANS,
        ),
    ] = None
    energy_correction: Annotated[
        bool, Switch("Whether jacobi and gauss-seidel correct inputs by the integral error of the step before")
    ] = False
    linear_correction: Annotated[
        bool,
        Switch(
            "Whether jacobi and gauss-seidel correct outputs with direct feed-through by the FMUs' directional "
            "derivatives, which closes algebraic loops without repeated steps"
        ),
    ] = False
    threads: Annotated[
        int,
        Number(
            "Threads that step FMUs in parallel, with jacobi and newton",
            bounds=_COUNT,
            whole=True,
            called="number of threads",
        ),
    ] = 1
    model_exchange: Annotated[
        tuple[str, ...] | None,
        _Units(
            "FMUs to run by model exchange though they have co-simulation too: a,b, or all; none by default",
            called="model-exchange FMUs",
            each=Option("", called="unit by model exchange"),
        ),
    ] = None
    unit_solver: Annotated[
        str,
        ChoiceOption(
            "Solver of model exchange; radau is for stiff FMUs too",
            among=lambda: SOLVERS,
            called="FMU solver",
        ),
    ] = SOLVERS[0]
    isolate: Annotated[
        tuple[str, ...] | None,
        _Units(
            "FMUs to run in processes of their own: a,b, or all; none by default",
            called="isolated FMUs",
            each=Option("", called="isolated FMU"),
        ),
    ] = None
    place: Annotated[
        Mapping[str, str] | None,
        _Places("Workers of a Dask cluster to run FMUs on, by name or address: a=host-1,b=host-2, or all=host-1"),
    ] = None
    scheduler: Annotated[
        str | None,
        Option("Address of the scheduler of the Dask cluster that FMUs are placed on: tcp://host:8786"),
    ] = None
    time_limit: Annotated[
        float | None,
        Number(
            "Wall-clock time in s after which a call of an isolated or placed FMU is taken to hang; "
            f"{TIME_LIMIT:g} by default",
            unit="s",
            bounds=POSITIVE,
        ),
    ] = None
    strict: Annotated[
        bool,
        Switch(
            "Whether to refuse units of measurement that a package uses and does not define; otherwise values are "
            "not converted"
        ),
    ] = False
    start_time: Annotated[float | None, Number("Start time in s; that of the package by default, or 0", unit="s")] = (
        None
    )
    record: Annotated[
        tuple[str, ...] | None,
        ListOption(
            "Variables to record, by patterns: a.*,b.force; all outputs by default", each=Option("", called="pattern")
        ),
    ] = None
    record_every: Annotated[
        int, Number("Record one of so many communication points, and the last one", bounds=_COUNT, whole=True)
    ] = 1
    record_interval: Annotated[
        float | None,
        Number("Record at most one row in each interval of so many s", unit="s", bounds=POSITIVE),
    ] = None
    pace: Annotated[
        float | None,
        Number(
            "Simulated seconds per second of wall-clock time, for which the run waits; none by default", bounds=POSITIVE
        ),
    ] = None

    @classmethod
    def parted(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return given options with an algorithm apart from its extrapolation; errors as for `Options.parted`."""
        options, name = dict(given), given.get("algorithm")
        if name not in CHOICES or name in ALGORITHMS:
            return options
        algorithm, extrapolation = parted(name)
        if (other := given.get("extrapolation")) not in (None, extrapolation):
            raise InputError(f"the algorithm '{name}' extrapolates {extrapolation}; the extrapolation is '{other}' too")
        return {**options, "algorithm": algorithm, "extrapolation": extrapolation}

    def check(self) -> None:
        """Check that every option has an effect with the algorithm and the control."""
        if not {name for name in self.model_fields_set & _NAMED if getattr(self, name)}:  # it depends on others
            usual = Extrapolation.ADAPTIVE if self.control == "fixed" else Extrapolation.LINEAR
            object.__setattr__(self, "extrapolation", usual)
        for name, option in self.known().items():
            value = getattr(self, name)
            algorithms = algorithms_with(name)
            if value == self.default(name):
                continue
            if value is Extrapolation.ADAPTIVE and (self.algorithm in ITERATED or self.control != "fixed"):
                equal = ["jacobi", "gauss-seidel in equal steps"]
                raise option.without_effect(name, value, "iterated or controlled steps", equal)
            if algorithms and self.algorithm not in algorithms:
                raise option.without_effect(name, value, f"the algorithm '{self.algorithm}'", algorithms)
            if name in ("tolerance", "absolute_tolerance", "smallest_step", "largest_step") and self.control == "fixed":
                raise option.without_effect(name, value, "the control 'fixed'", CONTROLS[1:])
            if name == "time_limit" and self.isolate is None and self.scheduler is None:
                raise option.without_effect(name, value, "FMUs in the process of the master", ["isolate", "place"])
        if self.place is not None and self.scheduler is None:
            raise InputError(
                f"{names_of(list(self.place))} cannot be placed on workers without the address of their scheduler; "
                "give scheduler, such as tcp://host:8786"
            )
        placed, isolated = set(self.place or ()), set(self.isolate or ())
        if both := sorted(isolated if ALL in placed else placed if ALL in isolated else placed & isolated):
            raise InputError(f"{names_of(both)} cannot be isolated on this machine and placed on a worker; choose one")

    def settings(self, instances: Mapping[str, Instance]) -> Settings:
        """Return how steps of FMUs are made.

        Raises
        ------
        InputError
            When the order is none of all FMUs, or an FMU cannot do what the algorithm needs.
        """
        order = tuple(instances) if self.order is None else self.order
        if sorted(order) != sorted(instances):
            raise InputError(f"the order is {', '.join(order)}; it must name each FMU once: {', '.join(instances)}")
        iterates = self.algorithm in algorithms_with("iteration_tolerance")
        without = [name for name, instance in instances.items() if not instance.saves_state]
        if iterates and without:
            raise InputError(
                f"{names_of(without)} cannot save the state, which {self.algorithm} needs to repeat steps; "
                "choose jacobi or gauss-seidel"
            )
        if iterates and self.energy_correction:
            raise InputError(
                f"an energy correction is for jacobi and gauss-seidel; {self.algorithm} leaves nothing to correct"
            )
        given = {name: getattr(self, name) for name in Settings.__dataclass_fields__ if name != "order"}
        if self.control == "error" and self.iteration_tolerance is None:
            # What iterations leave open must be little beside what a short step may do wrong.
            wanted = TOLERANCE if self.tolerance is None else self.tolerance
            given["iteration_tolerance"] = min(Settings.iteration_tolerance, _OF_ERROR_CONTROL * wanted)
        return Settings(order=order, **{name: value for name, value in given.items() if value is not None})
