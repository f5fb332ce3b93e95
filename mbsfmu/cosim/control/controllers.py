"""Choice of the step controller from user options and FMU capabilities."""

from __future__ import annotations

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.control.energy_control import EnergyControl
from mbsfmu.cosim.control.prediction_control import PredictionControl
from mbsfmu.cosim.control.richardson_control import RichardsonControl
from mbsfmu.cosim.control.run_statistics import RunStatistics
from mbsfmu.cosim.control.step_control import Controller
from mbsfmu.cosim.control.tolerances import CouplingTolerances
from mbsfmu.cosim.coupling.extrapolation import Extrapolation, OutputHistory
from mbsfmu.cosim.coupling.stepping import Stepping
from mbsfmu.cosim.coupling.sweeps import names_of


def make_controller(
    control: str,
    stepping: Stepping,
    tolerances: CouplingTolerances,
    history: OutputHistory,
    statistics: RunStatistics,
    start: float,
    stop: float,
) -> Controller | None:
    """Return the step controller; warn of features that FMUs lack."""
    if control == "fixed":
        return None
    without = stepping.exchange.without_states()
    if control == "energy":
        if not stepping.bonds:
            raise InputError(
                "no power bond was found between the FMUs, so control energy has nothing to go by: two connections "
                "in opposite directions whose units make a power (N and m/s, N.m and rad/s, Pa and m3/s)"
            )
        if without:
            statistics.warn(f"{names_of(without)} cannot save the state: steps with too much residual energy stay")
        if statistics.algorithm == "gauss-seidel" and statistics.extrapolation == Extrapolation.ZERO:
            statistics.warn(
                "with inputs that are held in turn, errors of both directions cancel in equal steps, which control "
                "energy loses: equal steps of the same cost may be nearer; take linear extrapolation with it",
            )
        return EnergyControl(stepping, tolerances, returns=not without)
    if without:
        statistics.warn(
            f"{names_of(without)} cannot save the state: errors are estimated from the extrapolation of what is "
            "exchanged, and no step is made again",
        )
        return PredictionControl(stepping, tolerances, history)
    return RichardsonControl(stepping, tolerances, history, start, stop)
