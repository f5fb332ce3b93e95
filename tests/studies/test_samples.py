"""Samples of parameters: distributions, tables, and studies over them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import mbsfmu
from mbsfmu import InputError
from mbsfmu.studies import Distribution, draw, read_samples
from mbsfmu.studies.points import METHODS


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2:4", stats.uniform(2.0, 2.0)),
        ("1:100:log", stats.loguniform(1.0, 100.0)),
        ("normal:5:0.5", stats.norm(5.0, 0.5)),
    ],
)
def test_samples_have_their_distribution(method: str, text: str, expected: stats.rv_continuous) -> None:
    """Kolmogorov and Smirnov's test of 512 samples of the second of two parameters."""
    drawn = draw({"a": (0.0, 1.0), "b": Distribution.parse(text)}, 512, method=method, seed=3)
    assert stats.kstest(drawn["b"], expected.cdf).pvalue > 0.01
    assert abs(np.corrcoef(drawn["a"], drawn["b"])[0, 1]) < 0.15
    assert drawn == draw({"a": (0.0, 1.0), "b": Distribution.parse(text)}, 512, method=method, seed=3)
    assert drawn != draw({"a": (0.0, 1.0), "b": Distribution.parse(text)}, 512, method=method, seed=4)


def test_a_latin_hypercube_has_one_sample_in_each_interval() -> None:
    drawn = draw({"a": (0.0, 10.0), "b": (0.0, 10.0)}, 10)
    for values in drawn.values():
        assert sorted(np.floor(values)) == list(range(10))


@pytest.mark.parametrize("text", ["1", "2:1", "0:1:log", "normal:1:0", "a:b", "1:2:3", "1:inf", "normal:1", "1:2:lin"])
def test_what_is_no_distribution_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no distribution"):
        Distribution.parse(text)


def test_a_study_runs_each_sample_at_every_combination() -> None:
    """A pendulum that begins to fall from the horizontal: its angle is −m g s t² / 2 J after a short time."""
    model = mbsfmu.models.pendulum(1)
    samples = {"link_1.mass": [1.0, 2.0, 3.0], "link_1.inertia_zz": [0.5, 0.1, 0.9]}
    study = mbsfmu.sweep(model, {"link_1.length": [1.0, 1.0 + 1e-9]}, samples=samples, stop=0.1, workers=1)
    assert study.sampled == ("mechanism.link_1.mass", "mechanism.link_1.inertia_zz")
    np.testing.assert_array_equal(study["link_1.mass"], np.repeat([1.0, 2.0, 3.0], 2))
    np.testing.assert_array_equal(study["link_1.inertia_zz"], np.repeat([0.5, 0.1, 0.9], 2))
    for mass, inertia, angle in zip(*(study[name] for name in (*study.sampled, "final.link_1.angle")), strict=True):
        total = inertia + mass * 0.25
        assert angle == pytest.approx(-0.5 * mass * 9.81 * 0.5 / total * 0.1**2, rel=0.02)
    assert study.to_xarray()["final.link_1.angle"].dims == ("sample", "mechanism.link_1.length")
    assert study.to_xarray()["mechanism.link_1.mass"].dims == ("sample",)


@pytest.mark.parametrize(
    ("samples", "vary", "said"),
    [
        ({"link_1.mass": [1.0], "link_1.inertia_zz": [1.0, 2.0]}, {}, "samples need as many values of each parameter"),
        ({"link_1.mass": [float("nan")]}, {}, "sample 1 of the parameter mechanism.link_1.mass is nan"),
        ({"link_1.mass": []}, {}, "has no samples"),
        ({"link_1.mass": [1.0]}, {"link_1.mass": [2.0]}, "is varied and sampled"),
        ({"link_1.mas": [1.0]}, {}, "has no parameter 'link_1.mas'; did you mean"),
    ],
)
def test_samples_that_do_not_fit_are_refused(
    samples: dict[str, list[float]], vary: dict[str, list[float]], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        mbsfmu.sweep(mbsfmu.models.pendulum(1), vary, samples=samples, stop=0.1, workers=1)
    assert said in str(caught.value)


def test_samples_are_read_from_a_table(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("link_1.mass [kg],link_1.length\n1,2\n3,4\n")
    assert read_samples(str(tmp_path / "s.csv")) == {"link_1.mass": [1.0, 3.0], "link_1.length": [2.0, 4.0]}
    (tmp_path / "t.csv").write_text("a\n1\nx\n")
    with pytest.raises(InputError, match=r"t\.csv, line 3: the column 'a' is 'x'"):
        read_samples(str(tmp_path / "t.csv"))
    (tmp_path / "u.csv").write_text("p [bar]\n1\n")
    with pytest.raises(InputError, match=r"link_1.mass: 'bar' and 'kg' are units of different quantities"):
        mbsfmu.sweep(mbsfmu.models.pendulum(1), {}, samples={"link_1.mass": read_samples(str(tmp_path / "u.csv"))["p"]})


def test_the_page_says_how_many_outputs_it_leaves_out(tmp_path: Path) -> None:
    """A pendulum of five links has more outputs that vary than the eight of the tables."""
    masses = np.linspace(1.0, 2.0, 12).tolist()
    study = mbsfmu.sweep(mbsfmu.models.pendulum(5), {}, samples={"link_1.mass": masses}, stop=0.1, workers=1)
    finals = [name for name in study if name.startswith("final.")]
    varying = sum(float(np.ptp(study[name])) > 0.0 for name in finals)
    text = mbsfmu.write_report(study, tmp_path / "page.html").read_text(encoding="utf-8")
    assert varying > 8
    assert text.count(f"The 8 outputs of {varying} that vary most.") == 2
