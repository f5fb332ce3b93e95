"""What C and Python share is written once: constants, and the list of the arguments of traced functions."""

from __future__ import annotations

import re

import pytest
from scipy.integrate import RK45

import mbsfmu
from mbsfmu.formulations.formulation import StepKind
from mbsfmu.integration.explicit import RK45_ORDER
from mbsfmu.native import shared
from mbsfmu.native.c_sources import fmu_sources, runtime_texts

RUNTIME = runtime_texts()


def defined(name: str) -> str:
    (line,) = [line for line in shared.definitions() if line.startswith(f"#define {name} ")]
    return line.split("/*", maxsplit=1)[0].removeprefix(f"#define {name} ").strip()


@pytest.mark.parametrize("name", shared.CONSTANTS)
def test_constants_of_python_are_those_of_c(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, attribute = shared.CONSTANTS[name]
    value = getattr(module, attribute)
    before = defined(name)
    if isinstance(value, dict):
        assert [float(each) for each in before.strip("{}").split(",")] == list(value.values())
        changed = {key: 3.0 * each for key, each in value.items()}
    elif isinstance(value, str):
        assert before == f'"{value}"'
        changed = value.upper()
    else:
        assert float(before) == value
        changed = 3 * value
    monkeypatch.setattr(module, attribute, changed)
    assert defined(name) != before


def test_c_defines_no_number_by_itself() -> None:
    by_hand = {
        found[1]: file
        for file, text in RUNTIME.items()
        for found in re.finditer(r"^#define (\w+) +\(?[-+]?\d[\d.eE+-]*\)? *(?:/\*|$)", text, re.MULTILINE)
    }
    assert by_hand == {}


def test_order_of_rk45_is_that_of_scipy() -> None:
    assert RK45.error_estimator_order + 1 == RK45_ORDER


def test_c_compares_with_no_number_of_its_own() -> None:
    """But where Python leaves it to SciPy or NumPy, whose limits depend on the matrix or the interval."""
    theirs = {("readings.c", "1e-12"), ("saddle.c", "1e-15")}
    code = {file: re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL) for file, text in RUNTIME.items()}
    found = {(file, text) for file in code for text in re.findall(r"\b\d[\d.]*e[-+]?\d+", code[file])}
    assert found == theirs


def test_every_constant_is_used() -> None:
    words = set(re.findall(r"\w+", " ".join(RUNTIME.values())))
    assert [name for name in shared.CONSTANTS if name not in words] == []


@pytest.mark.parametrize(
    ("argument", "sizes", "sentence"),
    [
        ("lift", ("COORDINATES",), "takes 6 numbers of 'lift'; the list of arguments has 3"),
        ("begin_rates", (), "takes 5 numbers of 'begin_rates'; the list of arguments has 1"),
        ("unknowns", None, "of 'unknowns'; the list of arguments has 0"),
    ],
)
def test_an_argument_without_room_is_noticed(
    argument: str, sizes: tuple[str, ...] | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its function would read and write beyond the memory of an instance."""
    simulation = mbsfmu.models.four_bar().simulation(solver="trapezoidal", compiled=False)
    changed = {**shared.ARGUMENTS, argument: sizes}  # a copy: the order decides where they lie
    monkeypatch.setattr(shared, "ARGUMENTS", {name: each for name, each in changed.items() if each is not None})
    with pytest.raises(ValueError, match=sentence):
        fmu_sources(simulation, "{guid}")


@pytest.mark.parametrize("formulation", ["double-step", "penalty", "dca", "hdca", "dca-alm"])
def test_only_its_own_file_asks_for_what_a_formulation_chooses(formulation: str) -> None:
    needs = (
        mbsfmu.models.pendulum(1)
        .simulation(formulation=formulation, compiled=False)
        .formulation.native_needs(StepKind.IMPLICIT)
    )
    asking = {file for file, text in RUNTIME.items() for word in needs.choices if re.search(rf"\b{word}\b", text)}
    included = {file: set(re.findall(r'#include "([\w.]+)"', text)) for file, text in RUNTIME.items()}
    others = set().union(*(files for file, files in included.items() if file != needs.file))
    asking -= {"lane_adaptive_steps.c"}  # steps in lanes are a program of their own for double-step
    assert asking <= {needs.file} | (included[needs.file] - others)
    assert [file for file, text in RUNTIME.items() if f'#include "{needs.file}"' in text] == []
