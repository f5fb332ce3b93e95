"""Studies whose points are asked for one by one, as optimizers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Unpack

from mbsfmu.base.errors import InputError
from mbsfmu.base.executors import InlineExecutor
from mbsfmu.io.signals import AnySignal
from mbsfmu.studies.journal import KEY, Row
from mbsfmu.studies.points import StudyPoint, make_points
from mbsfmu.studies.study_options import StudyKeywords, StudyOptions
from mbsfmu.studies.study_result import StudyResult
from mbsfmu.studies.study_table import study_table
from mbsfmu.studies.subjects import Given, subject_of


class OpenStudy:
    """A study whose points are asked for one by one; a point that was asked for before is not run again.

    Parameters
    ----------
    model
        A model or FMUs, as for `sweep`.
    parameters
        Names of parameters and of inputs that nothing drives, as for `sweep`.
    connections, inputs, options, given
        As for `sweep`, with one value of each setting.

    Raises
    ------
    InputError
        When a name means nothing, or a setting has several values.
    """

    def __init__(
        self,
        model: Given,
        *parameters: str,
        connections: Sequence[str | tuple[str, str]] = (),
        inputs: Mapping[str, AnySignal] | None = None,
        options: StudyOptions | None = None,
        **given: Unpack[StudyKeywords],
    ) -> None:
        subject = subject_of(model, connections, inputs)
        chosen = subject.options(StudyOptions.of(options, given, ("parameters", "connections", "inputs")))
        for name, values in chosen.lists.items():
            if len(values) != 1:
                raise InputError(f"the setting {name} has {len(values)} values; an open study has one of each")
        self._names = subject.resolved(parameters)
        if not self._names:
            raise InputError("an open study needs the name of a parameter")
        self._content, self._lists = subject.content(chosen, InlineExecutor()), chosen.lists
        settings = {name: values[0] for name, values in chosen.lists.items()}
        self._study = subject.prepared(chosen, settings, [StudyPoint({}, settings, "")])
        self._units = {name: subject.units[name].name or "1" for name in self._names.values()}
        self._subject = subject
        self._points: list[StudyPoint] = []
        self._rows: dict[str, Row] = {}

    def __repr__(self) -> str:
        return f"<OpenStudy: {len(self._points)} points over {', '.join(self._names.values())}>"

    def ask(self, *values: float | str) -> dict[str, Any]:
        """Run a point, and return its row: `status`, `message`, `warnings`, `final.<output>` and the like.

        Parameters
        ----------
        values
            Of the parameters, in their order; a text may have a unit of its own, as `200 bar`.

        Raises
        ------
        InputError
            When there are more or fewer values than parameters, or one is not finite.
        """
        if len(values) != len(self._names):
            raise InputError(f"the point has {len(values)} values; the study has {', '.join(self._names.values())}")
        asked = {
            name: self._subject.converted(name, [value])
            for name, value in zip(self._names.values(), values, strict=True)
        }
        (point,) = make_points({}, self._lists, self._content, asked)
        if point.key not in self._rows:
            (row,) = self._study.run((point,))
            self._rows[point.key] = {KEY: point.key, **row}
            self._points.append(point)
        return {name: value for name, value in self._rows[point.key].items() if name != KEY}

    def result(self) -> StudyResult:
        """Return the points that were run, as a sweep over samples does.

        Raises
        ------
        InputError
            When there is none.
        """
        if not self._points:
            raise InputError("no point of the study was asked for")
        metadata = {"mbsfmu": version("mbsfmu"), "model": self._subject.data}
        columns, units = study_table(self._points, self._rows, self._units, self._study.units)
        sampled = tuple(self._names.values())
        return StudyResult(columns, units, metadata, self._lists, sampled, self._study.by_system)
