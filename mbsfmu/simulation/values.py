"""Reading, checking and setting of a simulation's variables by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.io.tabular import full_name
from mbsfmu.modelling.variables import Causality, Variability, Variable
from mbsfmu.simulation.energy_watch import EnergyWatch
from mbsfmu.simulation.run_loop import RunLoop
from mbsfmu.simulation.variable_table import VariableTable, check_value
from mbsfmu.stepping.state import State


class VariableAccess:
    """Reads and sets variables of a simulation.

    Parameters
    ----------
    owner
        Name of the simulation.
    table
        Its variables.
    by_system
        Names of variables by `system.variable`.
    run_loop
        Where it is.
    energy_watch
        Looks at what is read.
    started
        Returns the state, and finds the start where there is none yet.
    """

    def __init__(
        self,
        owner: str,
        table: VariableTable,
        by_system: Mapping[str, str],
        run_loop: RunLoop,
        energy_watch: EnergyWatch,
        started: Callable[[], State],
    ) -> None:
        self._owner = owner
        self._by_system = by_system
        self._run_loop = run_loop
        self._energy_watch = energy_watch
        self._started = started
        self._variable_by_name = {variable.name: variable for variable in table.ordered}
        kinds = ("continuous", "parameters", "settings", "calculated", "timing", "estimates")
        self._places = {
            variable.name: (kind, index) for kind in kinds for index, variable in enumerate(getattr(table, kind))
        }

    def variable(self, name: str) -> Variable:
        """Return the variable of a name.

        Raises
        ------
        InputError
            When there is no such variable.
        """
        return self._variable_by_name[self._full_name(name)]

    def _full_name(self, name: str) -> str:
        """Return the full name of a variable; errors as for `variable`."""
        return full_name(name, self._places, "variable", f" in {self._owner}", self._by_system)

    def _place(self, name: str) -> tuple[str, int]:
        """Return the group of a variable and its index in it."""
        return self._places[self._full_name(name)]

    def get(self, name: str) -> float:
        """Return the present value of a variable; errors as for `Simulation.get`."""
        run_loop, (kind, index) = self._run_loop, self._place(name)
        if kind in ("continuous", "calculated"):
            self._started()
        if kind == "continuous":
            anew = not run_loop.is_read
            row = run_loop.readings()
            if anew and run_loop.stepped:
                self.follow_energy()  # looked at anyway
            return float(row[index])
        if kind == "settings":
            return run_loop.threads if index else run_loop.solver.step
        if kind == "timing":
            return run_loop.next_event
        if kind == "estimates":
            solver, state = run_loop.solver, run_loop.state
            record = solver.error_record
            return 0.0 if record is None or state is None else record.share(state, solver.step)
        return float((run_loop.calculated if kind == "calculated" else run_loop.parameters)[index])

    def set(self, name: str, value: float) -> None:
        """Set a variable; errors as for `Simulation.set`."""
        number = self.check(name, value)
        run_loop, (kind, index) = self._run_loop, self._place(name)
        if kind == "continuous":
            if not (run_loop.inputs.held[index] and number == run_loop.inputs.values[index]):
                run_loop.touch()
            run_loop.inputs.set(index, number)
            run_loop.forget_readings()
            if run_loop.inputs.decides_start(index) and not run_loop.stepped:
                run_loop.restart_run(run_loop.parameters)
        elif kind == "settings":
            if index:
                run_loop.threads = number
            else:
                run_loop.solver.step = number
        elif number != run_loop.parameters[index]:
            self._set_parameter(index, number)

    def _set_parameter(self, index: int, number: float) -> None:
        run_loop = self._run_loop
        parameters = run_loop.parameters.copy()
        parameters[index] = number
        if not run_loop.stepped:
            run_loop.restart_run(parameters)
            return
        if run_loop.contradiction is None:
            self._energy_watch.shift(run_loop.readings(), -1.0)
        run_loop.change(parameters)
        if run_loop.contradiction is None:
            self._energy_watch.shift(run_loop.readings(), 1.0)

    def check(self, name: str, value: float) -> float:
        """Return a value as a float if it may be set now; errors as for `Simulation.check`."""
        variable = self.variable(name)
        if not variable.settable:
            start = f"{variable.name}_start"
            told = f"; its value at the start is {start}" if start in self._places else ""
            raise InputError(f"{name} is computed and cannot be set{told}")
        number = check_value(variable, value)
        fixed = variable.causality is not Causality.INPUT and variable.variability is not Variability.TUNABLE
        if fixed and self._run_loop.stepped and number != self.get(name):
            raise InputError(f"{name} is a parameter that counts at initialization; it cannot be set after it")
        return number

    def follow_energy(self) -> None:
        """Check the present energies, without effect on the next step."""
        row = self._run_loop.readings_before_events()
        self._energy_watch.follow(np.array([self._run_loop.time]), row[np.newaxis])
