"""The machines among the examples do over a short horizon what physics says of them."""

from __future__ import annotations

from math import radians
from pathlib import Path

import fmpy
import numpy as np
import pytest
from excavator import BAR, excavator
from foreign_controller import run as run_foreign
from log_crane import log_crane
from press import press
from robot_arm import GAINS, TARGET, robot_arm
from stewart_platform import length, stewart_platform, wanted

import mbsfmu
from mbsfmu.compiling.compiler import has_compiler

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
WEIGHT = 9.81


@needs_compiler
def test_excavator_digs() -> None:
    """Some seconds of its cycle: balances close, pressures stay between vacuum and relief, what is held is held.

    From 3.2 s on sections demand more than the pump's torque allows: the lower load, the bucket's, gets all that its
    compensator keeps, and the higher one, the stick's, goes short.
    """
    result = excavator().simulation(step=2e-3).run(3.6)
    turned = np.ptp(result["energy.kinetic"]) + np.ptp(result["energy.potential"]) + np.ptp(result["energy.work"])
    assert result.largest("energy.drift") < 1e-4 * turned
    assert result.largest("hydraulic_energy.drift") < 1e-4 * np.max(result["hydraulic_energy.supplied"])
    pressures = [name for name in result.names if name.endswith(".pressure")]
    assert len(pressures) == 11
    settings = {"P.pressure": 350.0, "LS.pressure": 350.0, "slew_a.pressure": 289.0, "slew_b.pressure": 289.0}
    for name in pressures:
        assert np.min(result[name]) > 0.1 * BAR, name
        assert np.max(result[name]) < 1.05 * settings.get(name, 373.0) * BAR, name
    # At the start the cylinders carry the parts: moments about the boom's pin, of what stands on it.
    assert result["boom_cylinder.velocity"][0] == pytest.approx(0.0, abs=1e-9)
    assert result["stick_cylinder.length"][-1] > result["stick_cylinder.length"][0] + 0.05
    assert np.max(np.abs(result["house.angle"])) < 1e-6
    short = result.time > 3.2
    share = {name: (result[f"{name}_section.spool"][short] - 0.05) / 0.95 for name in ("stick", "bucket")}
    flows = {name: result[f"{name}_section.flow_a"][short] * 60e3 for name in share}
    assert np.min(result["stick_a.pressure"][short] - result["bucket_a.pressure"][short]) > 30.0 * BAR
    np.testing.assert_allclose(flows["bucket"], 250.0 * share["bucket"], rtol=5e-3)
    assert np.max(flows["stick"] / (300.0 * share["stick"])) < 0.6
    np.testing.assert_allclose(result["pump.torque"][short], -525.0 * 1.05, rtol=0.03)


@needs_compiler
def test_log_crane_rests_on_its_counterbalance_valves() -> None:
    """Nobody moves a lever before 0.5 s: no load creeps. Then flow comes through its section."""
    result = log_crane().simulation(solver="rodas5p").run(7.0)
    before = result.time < 0.5
    assert np.ptp(result["lift.length"][before]) < 2e-4
    # The compensator keeps the flow over the valve at 0.7 of 50 l/min, less overlap, whatever the load is.
    lifting = (result.time > 1.1) & (result.time < 2.9)
    flow = 50.0 / 60e3 * (0.7 - 0.04) / (1.0 - 0.04)
    assert np.mean(result["lift_section.flow_a"][lifting]) == pytest.approx(flow, rel=1e-3)
    # The load swings on the oil: over some periods of that the cylinder goes as the oil comes.
    assert np.mean(result["lift.velocity"][lifting]) == pytest.approx(flow / (np.pi / 4.0 * 0.140**2), rel=0.03)
    # Behind a gear of 120 the motor turns the column by what comes in, also where the grapple's swing pulls it on; the
    # oil comes from 200 bar and more, and expands by some 2 %.
    slewing = result.time > 3.0
    came = result["slew_section.flow_a"] + result["slew_a_make_up.flow"] - result["slew_a_relief.flow"]
    leaked = 2e-12 * (result["slew_a.pressure"] - result["slew_b.pressure"])
    swept = np.trapezoid((came - leaked)[slewing], result.time[slewing])
    turned = np.ptp(result["column.angle"][slewing])
    assert turned > 0.5
    assert turned == pytest.approx(swept / (120.0 * 50e-6 / (2.0 * np.pi)), rel=0.03)


@needs_compiler
def test_press_presses_with_its_pressure() -> None:
    """Pressure times areas, and the weight of the slide, is what the workpiece feels."""
    result = press().simulation(solver="rodas5p").run(2.0)
    piston, rod = np.pi / 4.0 * 0.240**2, np.pi / 4.0 * 0.200**2
    cylinder = result["A.pressure"][-1] * piston - result["B.pressure"][-1] * (piston - rod) - 1.01325e5 * rod
    load = result["workpiece.load"][-1]
    assert load > 8e5
    assert load == pytest.approx(cylinder + 4000.0 * WEIGHT, rel=2e-2)
    gas = 150.0 * BAR * (60e-3 / (60e-3 - result["oil_volume"])) ** 1.3
    np.testing.assert_allclose(result["gas_pressure"], gas, rtol=1e-6)


@needs_compiler
def test_stewart_platform_follows_its_legs() -> None:
    result = stewart_platform().simulation().run(2.0)
    for leg in range(6):
        expected = [length(leg, time) for time in result.time]
        assert np.max(np.abs(result[f"leg_{leg}.length"] - expected)) < 2e-3
    heights = [wanted(time)[0][1] for time in result.time]
    assert np.max(np.abs(result["pose.position.y"] - heights)) < 1e-3


@needs_compiler
def test_robot_arm_is_one_unit(tmp_path: Path) -> None:
    (unit,) = mbsfmu.export(robot_arm(), tmp_path, layout="monolithic")
    result = fmpy.simulate_fmu(str(unit), stop_time=4.0, step_size=2e-3, output_interval=0.02)
    for joint in GAINS:
        assert abs(result[f"{joint}_controller.error"][-1]) < radians(0.2), joint
    assert result["shoulder_link.angle"][-1] == pytest.approx(TARGET["shoulder_pan"], abs=radians(0.2))
    assert result["finger_left.displacement"][-1] == pytest.approx(result["finger_right.displacement"][-1], abs=1e-9)


@needs_compiler
def test_foreign_controller_moves_the_cylinder(tmp_path: Path) -> None:
    result = run_foreign(tmp_path, wanted=0.02, stop=2.0)
    lengths = result["four-bar.cylinder.length"]
    assert lengths[-1] - lengths[0] == pytest.approx(0.02, abs=2e-3)
