"""Result of a study: one row per point, with units."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.io.formats import Table
from mbsfmu.io.formats.table_format import numbers
from mbsfmu.io.tables import optional
from mbsfmu.io.trajectory import Columns, Tabular, full_name
from mbsfmu.modelling import html_table
from mbsfmu.studies.point_run import KEY, Row
from mbsfmu.studies.points import SobolIndices, StudyPoint, sobol_indices

if TYPE_CHECKING:
    import xarray


_UNITS = {"wall_seconds": "s", "cpu_seconds": "s", "stop": "s", "step": "s", "energy_residual_max": "J"}
_UNITS |= {"energy_drift_max": "J", "actuator_work_max": "J", "actuator_work_min": "J"}


def study_table(
    points: Sequence[StudyPoint],
    rows: Mapping[str, Row],
    units: Mapping[str, str],
    outputs: Mapping[str, str],
) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return the columns of all rows and their units: parameters, settings, status, results.

    Parameters
    ----------
    points
        In the order of the rows.
    rows
        What was told of each point, by its key.
    units, outputs
        Units of the varied parameters, and of the outputs.
    """
    every = {**_UNITS, **units, **{f"final.{name}": unit for name, unit in outputs.items()}}
    whole = [{**point.values, **point.settings, **rows[point.key]} for point in points]
    first = [*points[0].values, *points[0].settings, "status", "message", "warnings"]
    told = {name: None for row in whole for name in row if name != KEY and name not in first}
    return {name: [row.get(name) for row in whole] for name in (*first, *told, KEY)}, every


class StudyResult(Tabular, Mapping[str, NDArray[Any]]):
    """Rows of a study, with columns for parameters, settings, status and results.

    A column is found by its full name, or by any trailing part of it that is unique; `final.` and `error.` of an output
    also by `final.system.variable`.

    Parameters
    ----------
    columns
        Values of each column, one a point in the order of the values, settings varying fastest; None where a run told
        nothing. The column `key` tells the points by their content.
    units
        Units of some columns.
    metadata
        On the whole: the version, and as `model` the model as JSON.
    axes
        Names of the parameters and settings whose combinations were run, with their values in order.
    sampled
        Names of the parameters whose values belong together.
    by_system
        Names of outputs by `system.variable`.

    Attributes
    ----------
    axes, sampled
        As given.
    """

    def __init__(
        self,
        columns: Mapping[str, Sequence[Any]],
        units: Mapping[str, str],
        metadata: Mapping[str, str],
        axes: Mapping[str, Sequence[Any]],
        sampled: tuple[str, ...] = (),
        by_system: Mapping[str, str] | None = None,
    ) -> None:
        self._described_columns = {name: list(values) for name, values in columns.items()}
        self._unit_by_name = {name: units[name] for name in columns if name in units}
        self._described_metadata = dict(metadata)
        self.axes = dict(axes)
        self.sampled = sampled
        self._by_system = {
            f"{result}.{reference}": f"{result}.{name}"
            for result in ("final", "error")
            for reference, name in (by_system or {}).items()
        }

    def __repr__(self) -> str:
        return f"<StudyResult: {self._summary_line()}>"

    def _summary_line(self) -> str:
        return f"{self.model}, {len(self._described_columns[KEY])} points over {', '.join(self.varied) or 'nothing'}"

    @property
    def varied(self) -> list[str]:
        """Names with more than one value: sampled parameters, then the axes."""
        return [*self.sampled, *(name for name, values in self.axes.items() if len(values) > 1)]

    def _repr_html_(self) -> str:
        names = [
            name
            for name in self
            if name in self.axes or name in self.sampled or name in ("status", "error", "wall_seconds")
        ]
        names += [name for name in self if name.startswith("final.")]
        heads = [f"{name} [{self.unit(name)}]" if self.unit(name) != "1" else name for name in names]
        rows = zip(*(self._described_columns[name] for name in names), strict=True)
        return html_table(heads, rows, f"StudyResult: {self._summary_line()}")

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column, shape (number of points,): numbers, with not-a-number for missing ones, or texts."""
        return self._arrays[self._full_name(name)]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._described_columns if name != KEY)

    def __len__(self) -> int:
        return len(self._described_columns) - 1

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._metadata()["model"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The points as plain data, one dictionary each; None for missing results."""
        columns = self._described_columns
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def unit(self, name: str) -> str:
        """Return the unit of a column; `1` without a unit."""
        return self._unit_by_name.get(self._full_name(name), "1")

    def _full_name(self, name: str) -> str:
        return full_name(name, self._described_columns, "column", by_system=self._by_system)

    @cached_property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: _array(values) for name, values in self._described_columns.items()}

    def _columns(self) -> Columns:
        return {name: self._arrays[name] for name in self}

    def _units(self) -> Mapping[str, str]:
        return self._unit_by_name

    def _metadata(self) -> dict[str, Any]:
        return {**self._described_metadata, "model": json.loads(self._described_metadata["model"])["name"]}

    def _table(self) -> Table:
        """Return the table with the column `key`, which identifies the points by their content, and the whole model."""
        return Table(self._described_columns, self._unit_by_name, self._described_metadata)

    def sobol_indices(self, *outputs: str) -> list[SobolIndices]:
        """Return the Sobol indices of columns, for samples of the method `saltelli` with one setting.

        Parameters
        ----------
        outputs
            Names of columns such as `final.boom.angle`; by default the final values of all outputs that vary.

        Raises
        ------
        InputError
            When the samples are others, too few runs came to the end, or SALib is not installed.
        UnknownNameError
            When there is no such column.
        """
        samples = {name: self._arrays[name].astype(float) for name in self.sampled}
        names = [self._full_name(name) for name in outputs] or [
            name for name in self if name.startswith("final.") and np.nanstd(self._numbers(name)) > 0.0
        ]
        return [sobol_indices(samples, name, self._numbers(name)) for name in names]

    def _numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as numbers, without those of points that did not run to the end."""
        values = np.array([np.nan if each is None else each for each in self._described_columns[name]], dtype=float)
        return np.where(np.array(self._described_columns["status"]) == "ok", values, np.nan)

    def to_xarray(self) -> xarray.Dataset:
        """Return a dataset over the parameters and settings; those with one value are coordinates without a dimension.

        Samples have one dimension together, `sample`, of which their parameters are variables. Units are in the
        attribute `units` of each variable.

        Raises
        ------
        InputError
            When xarray is not installed.
        """
        units = self._units()
        axes = {name: list(values) for name, values in self.axes.items() if len(values) > 1}
        points = len(self._described_columns[KEY])
        if self.sampled:
            axes = {"sample": list(range(points // math.prod(map(len, axes.values())))), **axes}
        shape = tuple(map(len, axes.values()))

        def attributes(name: str) -> dict[str, str]:
            return {"units": units[name]} if name in units else {}

        coordinates: dict[str, Any] = {name: (name, values, attributes(name)) for name, values in axes.items()}
        coordinates |= {
            name: ((), values[0], attributes(name)) for name, values in self.axes.items() if name not in axes
        }
        variables = {
            name: (tuple(axes), self._arrays[name].reshape(shape), attributes(name))
            for name in self
            if name not in self.axes and name not in self.sampled
        }
        variables |= {
            name: ("sample", self._arrays[name].reshape(shape[0], -1)[:, 0], attributes(name)) for name in self.sampled
        }
        return optional("xarray", "to_xarray").Dataset(variables, coordinates, self._metadata())


def _array(values: Sequence[Any]) -> NDArray[Any]:
    """Return a column as numbers, or as the objects in it."""
    found = numbers(values)
    return np.array(values, dtype=object) if found is None else found
