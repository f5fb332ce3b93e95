"""Coupling of FMUs for model exchange by joints: one integrator for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.coupling_data import CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.sweeps import Settings
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.cosim.fmus.model_exchange.model import ModelExchangeInstance
from mbsfmu.cosim.joints.bound_joints import BoundJoint
from mbsfmu.cosim.joints.joined_models import JoinedModels
from mbsfmu.cosim.joints.joint_algorithm import Advance, JointAlgorithm


class JointIntegration(JointAlgorithm):
    """Integrates FMUs for model exchange together, with the joints closed in every evaluation.

    Parameters
    ----------
    exchange, settings, joints
        As for `JointAlgorithm`.

    Raises
    ------
    InputError
        When an FMU gives no accelerations.
    """

    CHANGES = (*JointAlgorithm.CHANGES, "_models")

    def __init__(self, exchange: CouplingData, settings: Settings, joints: Sequence[BoundJoint]) -> None:
        super().__init__(exchange, settings, joints)
        models = [each.instance for each in self.together if isinstance(each.instance, ModelExchangeInstance)]
        self._models = JoinedModels(joints, models)

    def history(self) -> OutputHistory:
        """Return a history that starts with the present outputs, at closed joints with their reactions."""
        for joint in self.joints:
            joint.begin()
        self._models.begin()
        self.reactions = self._models.reactions()
        return super().history()

    def _step_together(
        self, polynomials: Floats, advance: Advance, correction: Floats | None, time: float, step: float
    ) -> None:
        del advance
        self.sweeps += 1
        for member in self.together:
            missed = None if correction is None else correction[member.entry_place] / step
            member.take(polynomials, missed)
            member.set_inputs(step)
        self._models.step(time, step)
        self.reactions = self._models.reactions()


def check_rates(joints: Sequence[BoundJoint], rates: Mapping[str, int]) -> None:
    """Check that no FMU of joints has steps of its own in a communication step.

    Raises
    ------
    InputError
        When one has.
    """
    for name in (handle.instance.name for joint in joints for handle in joint.handles):
        if rates.get(name, 1) != 1:
            raise InputError(
                f"the rate of {name} is {rates[name]}, but joints let one integrator choose the steps of FMUs for "
                "model exchange; leave the rate out"
            )
