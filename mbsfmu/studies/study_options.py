"""Options of a study: shared settings of its runs, and their compatibility."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self, TypedDict, cast

from mbsfmu.base.errors import InputError
from mbsfmu.base.options import POSITIVE, ChoiceOption, Number, Option, Options, Switch
from mbsfmu.cosim.coupling.algorithms import parted
from mbsfmu.cosim.runs.coupling_options import OF_COURSES, CouplingKeywords, CouplingOptions
from mbsfmu.exporting.fmu_export import BACKENDS, Backend
from mbsfmu.integration.solvers import find_solver
from mbsfmu.modelling import closest_match
from mbsfmu.simulation.run_options import RunKeywords, RunOptions
from mbsfmu.system_model.coupled_model import CoupledModel
from mbsfmu.system_model.model_simulation import formulation_of

_NO_SETTINGS = {"extrapolation", "stop", "tolerances", *OF_COURSES}
_STEP = Number("Of a run.", unit="s", bounds=POSITIVE)


class _Lists(Option):
    """Lists of values by name."""

    def taken(self, name: str, value: Any) -> dict[str, tuple[Any, ...]]:
        given = value.values() if isinstance(value, Mapping) else [None]
        if any(isinstance(each, str) or not isinstance(each, Iterable) for each in given):
            raise InputError(f"the {self.words(name)} are {value!r}; they must be lists of values by name")
        return {each: tuple(values) for each, values in value.items()}


class StudyKeywords(TypedDict, total=False):
    """The options of a study as keywords, for editors and type checkers; `StudyOptions` explains them."""

    settings: Mapping[str, Sequence[Any]] | None
    stop: float | None
    errors: bool | None
    backend: Backend | None
    internal_step: float | None
    newton_tolerance: float | None


class StudyOptions(Options):
    """Options of a study, except the varied parameters.

    Runs are monolithic if `settings` has no algorithm. Otherwise each system is exported once as an FMU, for all
    points, and the FMUs are run coupled.

    Raises
    ------
    InputError
        When a name or word is unknown, a number is out of range, or an option has no effect.
    """

    subject: ClassVar[str] = "a study"

    settings: Annotated[
        Mapping[str, tuple[object, ...]] | None,
        _Lists(
            "Values of settings by name. Monolithic: those of `CoupledModel.simulation`, as `formulation`, `solver`, "
            "`step`. Coupled: `algorithm`, any of `mbsfmu.comparison.CHOICES`; `formulation`; and those of "
            "`cosimulate`, as `step`"
        ),
    ] = None
    stop: Annotated[
        float | None, Number("End in s; the model's by default", unit="s", bounds=POSITIVE, called="stop time")
    ] = None
    errors: Annotated[
        bool, Switch("Whether to compare each coupled run with the monolithic one of the same parameters")
    ] = False
    backend: Annotated[
        str | None, ChoiceOption(f"Backend of coupled FMUs; {BACKENDS[0]} by default", among=lambda: BACKENDS)
    ] = None
    internal_step: Annotated[
        float | None,
        Number(
            "Largest internal step in s of coupled FMUs, and of the monolithic runs they are compared with; the "
            "smallest communication step by default",
            unit="s",
            bounds=POSITIVE,
        ),
    ] = None
    newton_tolerance: Annotated[float | None, RunOptions.known()["newton_tolerance"]] = None

    @property
    def coupled(self) -> bool:
        """Whether FMUs are run coupled."""
        return "algorithm" in (self.settings or {})

    def check(self) -> None:
        """Check names and words, and that every option has an effect."""
        settings = self.settings or {}
        for algorithm in settings.get("algorithm", ()):
            parted(str(algorithm))
        for word in settings.get("formulation", ()):
            RunOptions.known()["formulation"].taken("formulation", word)
        for solver in settings.get("solver", ()):
            find_solver(str(solver))
        for step in settings.get("step", ()):
            _STEP.taken("step", step)
        if self.newton_tolerance is not None and "newton_tolerance" in settings:
            raise InputError("the Newton tolerance is given twice, for all runs and as a setting")

    def _check_settings(self, known: Iterable[str]) -> None:
        """Check that all settings are known ones."""
        for name in self.settings or {}:
            if name not in known:
                raise InputError(f"there is no setting '{name}'; {closest_match(name, sorted(known))}")

    def _refuse_of_coupled_runs(self) -> None:
        if self.errors:
            raise InputError("errors are those of coupled runs; name at least one algorithm")
        for name in ("backend", "internal_step"):
            if (value := getattr(self, name)) is not None:
                called = self.known()[name].words(name)
                raise InputError(f"{called} = {value} has no effect on monolithic runs; name at least one algorithm")

    def of_model(self, model: CoupledModel) -> Self:
        """Return the options with the default formulation of a model, if none is a setting.

        Raises
        ------
        InputError
            When a setting is not one of its runs, an option has no effect on them, or FMUs of one system are coupled.
        """
        coupled = {*CouplingOptions.known(), "formulation"}
        self._check_settings((coupled if self.coupled else {*RunOptions.known()}) - _NO_SETTINGS)
        if not self.coupled:
            self._refuse_of_coupled_runs()
        if self.coupled and len(model.systems) < 2:
            raise InputError("the model has one system; there is nothing to couple, so no algorithm")
        # The first of all settings, whether given or not.
        made = self.model_copy(update={"settings": {"formulation": [formulation_of(model)], **(self.settings or {})}})
        made._check_combinations()
        return made

    def _check_combinations(self) -> None:
        """Check the settings of each run of a model, before anything is compiled."""
        for chosen in itertools.product(*self.lists.values()):
            settings = dict(zip(self.lists, chosen, strict=True))
            if self.coupled:
                del settings["formulation"]
                CouplingOptions.of(None, cast(CouplingKeywords, settings))
            else:
                RunOptions.of(None, cast(RunKeywords, settings)).completed()

    def of_fmus(self) -> Self:
        """Return the options for FMUs that are there; what is no setting is as in `cosimulate`.

        Raises
        ------
        InputError
            When a setting is not one of `cosimulate` or has no such value, or an option has no effect on FMUs.
        """
        self._check_settings({*CouplingOptions.known()} - _NO_SETTINGS)
        for name in ("errors", "backend", "internal_step", "newton_tolerance"):
            if value := getattr(self, name):
                raise InputError(
                    f"{self.known()[name].words(name)} = {value} has no effect on FMUs; it is for studies of models"
                )
        for name, values in (self.settings or {}).items():
            for value in values if name != "algorithm" else ():
                CouplingOptions.known()[name].taken(name, value)
        return self

    @property
    def lists(self) -> dict[str, list[Any]]:
        """Values of all settings by name."""
        lists = {name: list(values) for name, values in (self.settings or {}).items()}
        if self.newton_tolerance is not None and not self.coupled:
            lists["newton_tolerance"] = [self.newton_tolerance]
        return lists

    def inner(self, step: float) -> dict[str, float]:
        """Return the options of the FMUs and of the monolithic reference; `step` of the model in s."""
        internal = self.internal_step
        if internal is None:
            internal = min(_STEP.taken("step", each) for each in (self.settings or {}).get("step", [step]))
        return {"step": internal} | (
            {} if self.newton_tolerance is None else {"newton_tolerance": self.newton_tolerance}
        )
