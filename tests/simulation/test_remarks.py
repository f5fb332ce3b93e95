"""What a run says of its parts: end stops that are reached, oil that cavitates."""

from __future__ import annotations

import pytest

import mbsfmu
from mbsfmu import CoupledModel, Cuboid, JointStop, Mechanism, Prismatic


def remarks(caplog: pytest.LogCaptureFixture, word: str) -> list[tuple[str, str]]:
    return [(each.levelname, each.getMessage()) for each in caplog.records if word in each.getMessage()]


@pytest.mark.parametrize(("formulation", "command"), [("double-step", 10.0), ("dca", -10.0)])
def test_an_end_stop_is_told_with_its_time(formulation: str, command: float, caplog: pytest.LogCaptureFixture) -> None:
    """The cylinder is 0.9 m short and 1.8 m long; the time is where its recorded length leaves that."""
    simulation = mbsfmu.models.four_bar(air_content=0.005).simulation(formulation=formulation, step=2e-3)
    simulation.set("valve.command", command)
    with caplog.at_level("INFO", logger="mbsfmu"):
        result = simulation.run(20.0, output_step=1e-2)
    beyond = result["cylinder.length"] - 1.8 if command > 0 else 0.9 - result["cylinder.length"]
    assert beyond.max() > 1e-5
    level, sentence = remarks(caplog, "end stop")[0]
    assert level == "INFO"
    assert f"its {'extended' if command > 0 else 'retracted'} end stop" in sentence
    assert f"at t = {result.time[(beyond > 1e-6).argmax()]:.6g} s" in sentence
    assert f"up to {beyond.max():.3g} m" in sentence


def test_a_stroke_that_was_set_counts(caplog: pytest.LogCaptureFixture) -> None:
    """The four-bar of the paper keeps off its stops; with 20 mm less of stroke it does not."""
    simulation = mbsfmu.models.built_in("four-bar").simulation(step=2e-3)
    with caplog.at_level("INFO", logger="mbsfmu"):
        free = simulation.run(4.0)
        assert not remarks(caplog, "end stop")
        simulation.reset()
        stroke = free["cylinder.length"].max() - 0.9 - 0.02
        simulation.set("cylinder.stroke", stroke)
        simulation.run(4.0)
    assert len(remarks(caplog, "extended end stop")) == 1


def test_oil_that_cavitates_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """A pressure above a tenth of the atmosphere's is none; told are the node, the first time, and the least."""
    simulation = mbsfmu.models.four_bar(air_content=0.005).simulation(formulation="double-step", step=2e-3)
    simulation.set("valve.command", 10.0)
    with caplog.at_level("INFO", logger="mbsfmu"):
        result = simulation.run(20.0, output_step=1e-2)
    told = remarks(caplog, "cavitates")
    low = [node for node in ("V1", "V2", "V3") if result[f"{node}.pressure"].min() < 1e4]
    assert low
    assert len(low) < 3
    for node in low:
        pressure = result[f"{node}.pressure"]
        own = [sentence for level, sentence in told if f"the oil at {node} " in sentence and level == "WARNING"]
        assert len(own) == 1
        assert f"from t = {result.time[(pressure < 1e4).argmax()]:.6g} s" in own[0]
        assert f"falls to {pressure.min():.4g} Pa" in own[0]
    assert len(told) == len(low)


def test_a_joint_stop_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """A mass that falls freely for 0.5 m gets there after sqrt(2 s / g)."""
    mechanism = Mechanism(
        gravity=(9.81, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(Cuboid(name="mass", length=0.1, mass=1.0),),
        joints=(Prismatic(name="guide", parent="ground.O", child="mass.centre"),),
        forces=(JointStop(name="floor", joint="guide", upper=0.5, stiffness=1e5, damping=0.1),),
    )
    model = CoupledModel(name="fall", systems={"mechanism": mechanism})
    with caplog.at_level("INFO", logger="mbsfmu"):
        model.simulation(step=1e-3, compiled=False).run(0.3)
        assert not remarks(caplog, "floor")
        model.simulation(step=1e-3, compiled=False).run(0.5, output_step=1e-3)
    (told,) = remarks(caplog, "floor")
    assert float(told[1].split("t = ")[1].split(" ")[0]) == pytest.approx((2.0 * 0.5 / 9.81) ** 0.5, abs=2e-3)
