"""Subject of a study: what its points run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measured_numbers import numbers_in
from mbsfmu.modelling.measurement_units import UnitOfMeasurement
from mbsfmu.studies.journal import Row
from mbsfmu.studies.points import StudyPoint
from mbsfmu.studies.study_options import StudyOptions

RunTask = Callable[[Sequence[StudyPoint]], Sequence[Row]]


@dataclass(frozen=True)
class PreparedStudy:
    """A subject with the options of a study.

    Attributes
    ----------
    run
        Returns the rows of points; it can be sent to other processes, and needs no files of this one.
    tasks
        Points that are run in one call.
    units
        Units of the outputs, by the names in the rows.
    by_system
        Names of outputs in the rows by `system.variable`.
    """

    run: RunTask
    tasks: Iterable[tuple[StudyPoint, ...]]
    units: Mapping[str, str]
    by_system: Mapping[str, str] = field(default_factory=dict)


class Subject(ABC):
    """A model, or FMUs.

    Attributes
    ----------
    name
        Its name.
    data
        It as JSON, with `name`; result files have it.
    units
        Units of the variables that a study can vary, by full name.
    """

    name: str
    data: str
    units: Mapping[str, UnitOfMeasurement]

    @abstractmethod
    def options(self, given: StudyOptions) -> StudyOptions:
        """Return options completed with the defaults of the subject.

        Raises
        ------
        InputError
            When one has no effect on it.
        """

    def refusals(self) -> Mapping[str, str]:
        """Return why a study cannot vary other variables, by full name."""
        return {}

    def known_name(self, name: str) -> str:
        """Return the full name of a variable that may be called otherwise."""
        return name

    @abstractmethod
    def content(self, chosen: StudyOptions, executor: Executor | None) -> dict[str, Any]:
        """Return the data that determine the results of all points; the executor is what runs them.

        Raises
        ------
        InputError
            When other processes cannot have the subject.
        """

    @abstractmethod
    def prepared(self, chosen: StudyOptions, first: Mapping[str, Any], points: Sequence[StudyPoint]) -> PreparedStudy:
        """Return the study of points; `first` are the settings of the first point, also where none is left to run."""

    def converted(self, name: str, values: Sequence[float | str]) -> list[float]:
        """Return values of a variable in its unit, from that of their column or those that texts have.

        Raises
        ------
        InputError
            When a unit cannot be converted; the sentence names the variable.
        """
        try:
            return numbers_in(values, self.units[name])
        except InputError as error:
            raise InputError(f"{name}: {error}") from None

    def resolved(self, given: Collection[str]) -> dict[str, str]:
        """Return the full name `system.variable` of each given name.

        Raises
        ------
        InputError
            When it means no variable, more than one, or one that cannot be varied.
        """
        result: dict[str, str] = {}
        for each in given:
            found = meant(self.known_name(each), self.units)
            if not found:
                refused = self.refusals()
                for other in meant(self.known_name(each), refused):
                    raise InputError(f"{other} cannot be varied: {refused[other]}")
                raise InputError(f"{self.name} has no parameter '{each}'; {closest_match(each, sorted(self.units))}")
            if len(found) > 1:
                raise InputError(f"the parameter '{each}' is ambiguous: it may be {' or '.join(found)}")
            if found[0] in result.values():
                raise InputError(f"the parameter {found[0]} is varied twice")
            result[each] = found[0]
        return result


def meant(given: str, names: Collection[str]) -> list[str]:
    """Return the full names that a name may mean: itself, that of a system's variable, or the end of one."""
    if given in names:
        return [given]
    of_systems = [name for name in names if name.partition(".")[2] == given]
    return of_systems or [name for name in names if name.endswith("." + given)]
