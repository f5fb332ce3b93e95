"""Compiled code that is kept: by everything that enters, bounded, and never in the way of a run."""

from __future__ import annotations

import functools
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import mbsfmu
from mbsfmu.base.errors import InputError
from mbsfmu.compiling import compiler, kept
from mbsfmu.compiling.compilation import LINK, Compilation
from mbsfmu.native.c_sources import StepSources
from mbsfmu.native.compiled import CompiledRunner
from mbsfmu.simulation.simulation import Simulation

STOP = 0.05


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep compiled code in an empty folder; what one process tells once is told in every test."""
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))
    monkeypatch.setattr(kept, "_told", set())
    monkeypatch.setattr(kept, "_own_folder", functools.cache(lambda: tmp_path / "of this process"))
    return tmp_path / "kept"


def pendulum() -> Simulation:
    return mbsfmu.models.pendulum(1).simulation(step=1e-2)


def is_compiled(simulation: Simulation) -> bool:
    return isinstance(simulation.runner, CompiledRunner)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith(("mbsfmu.native", "mbsfmu.compiling"))
    ]


def runs_as_ever(simulation: Simulation) -> bool:
    """Tell whether a run has the result of the interpreter, which no compiler has to do with."""
    expected = mbsfmu.models.pendulum(1).simulation(step=1e-2, compiled=False).run(STOP)
    return bool(np.allclose(simulation.run(STOP)["link_1.angle"], expected["link_1.angle"], rtol=1e-12))


@pytest.mark.parametrize("words", ["false", "true", "false --with options"])
def test_a_failing_compiler_leaves_runs_to_the_interpreter(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, words: str
) -> None:
    monkeypatch.setenv("CC", words)
    for _ in range(2):
        simulation = pendulum()
        assert not is_compiled(simulation)
        assert runs_as_ever(simulation)
    (sentence,) = warnings(caplog)
    assert words.split(maxsplit=1)[0] in sentence
    assert sentence.endswith("runs in process are not compiled, CasADi's interpreter makes their steps")
    assert len(sentence.splitlines()) == 1


def test_a_compiler_that_is_not_there_is_told_once_with_the_one_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("CC", raising=False)
    own = compiler._system_compiler()
    assert own is not None
    monkeypatch.setenv("CC", "/nowhere/cc -g")
    for _ in range(2):
        assert is_compiled(pendulum())
    assert warnings(caplog) == [
        f"the C compiler /nowhere/cc, which the environment variable CC names, is not there; {own[0]} is taken"
    ]


def test_a_folder_that_cannot_be_written_is_told_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "file" / "kept"))
    for _ in range(2):
        simulation = pendulum()
        assert is_compiled(simulation)
        assert runs_as_ever(simulation)
    (sentence,) = warnings(caplog)
    assert "compiled code cannot be kept in" in sentence
    path = mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, layout="monolithic")[0]
    assert path.stat().st_size > 10_000


def test_without_a_home_folder_runs_are_compiled_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in (kept.FOLDER, "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    simulation = pendulum()
    assert is_compiled(simulation)
    assert runs_as_ever(simulation)
    assert warnings(caplog) == [f"there is no home folder to keep compiled code in; {kept.FOLDER} may name a folder"]


@pytest.mark.parametrize("left", [0, 100, 5000])
def test_a_damaged_library_is_made_anew(folder: Path, caplog: pytest.LogCaptureFixture, left: int) -> None:
    assert is_compiled(pendulum())
    (library,) = folder.glob("*.so")
    whole = library.read_bytes()
    assert left < len(whole)
    library.unlink()  # in place, it would change what is loaded
    library.write_bytes(whole[:left])
    simulation = pendulum()
    assert is_compiled(simulation)
    assert runs_as_ever(simulation)
    assert warnings(caplog) == [f"{library} is damaged; it is compiled again"]
    (again,) = folder.glob("*.so")
    assert kept._is_whole(again)


def test_a_library_that_does_not_load_leaves_runs_to_the_interpreter(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of another machine, say, that shares the folder: whole, but of no use here."""
    assert is_compiled(pendulum())
    (library,) = folder.glob("*.so")
    content, maker, _ = library.stem.split("-")
    library.unlink()
    kept.store(content, maker, library.suffix, b"of another machine")
    simulation = pendulum()
    assert not is_compiled(simulation)
    assert runs_as_ever(simulation)
    assert len(warnings(caplog)) == 1


def test_a_library_of_another_model_is_made_anew(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whole, and loaded without an error, but not what its name says."""
    assert is_compiled(pendulum())
    (library,) = folder.glob("*.so")
    assert is_compiled(mbsfmu.models.pendulum(2).simulation(step=1e-2))
    (other,) = set(folder.glob("*.so")) - {library}
    content, maker, _ = library.stem.split("-")
    library.unlink()
    exchanged = kept.store(content, maker, library.suffix, other.read_bytes())
    simulation = pendulum()
    assert is_compiled(simulation)
    assert runs_as_ever(simulation)
    assert warnings(caplog) == [f"{exchanged} was made from something else than its name says; it is compiled again"]
    assert not exchanged.exists()


def test_a_library_of_other_sizes_is_made_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It would read and write beyond the arrays of the model."""
    larger = StepSources.of(mbsfmu.models.pendulum(2).simulation(step=1e-2, compiled=False))
    with monkeypatch.context() as patched:
        patched.setattr(StepSources, "of", lambda _: larger)
        assert not is_compiled(pendulum())
    (library,) = folder.glob("*.so")
    assert is_compiled(pendulum())
    (own,) = set(folder.glob("*.so")) - {library}
    content, maker, _ = own.name.split("-")
    own.unlink()
    wrong = kept.store(content, maker, own.suffix, library.read_bytes())
    simulation = pendulum()
    assert is_compiled(simulation)
    assert runs_as_ever(simulation)
    assert warnings(caplog) == [
        f"{library} has parameters of size 18, not 9; runs in process are not compiled, CasADi's interpreter makes "
        "their steps",
        f"{wrong} was made from something else than its name says; it is compiled again",
    ]


def test_kept_code_is_used_where_there_is_no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_compiled(pendulum())
    monkeypatch.setattr(compiler, "_system_compiler", lambda: None)
    monkeypatch.setattr(compiler, "_zig", lambda: None)
    assert is_compiled(pendulum())
    assert not is_compiled(mbsfmu.models.pendulum(2).simulation())


def test_code_is_kept_by_all_that_enters_it(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def libraries() -> int:
        return len(list(folder.glob("*.so")))

    pendulum()
    pendulum()
    assert libraries() == 1
    mbsfmu.models.pendulum(1).simulation(step=1e-3)  # the step is given to the code
    assert libraries() == 1
    mbsfmu.models.pendulum(1).simulation(formulation="penalty")
    assert libraries() == 2
    script = tmp_path / "compiler"
    own = compiler._system_compiler()
    assert own is not None
    script.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo another; else exec {own[0]} "$@"; fi\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    pendulum()
    assert libraries() == 3
    compiler._maker.cache_clear()
    script.write_text(script.read_text().replace("another", "the next one"))
    pendulum()
    assert libraries() == 4
    monkeypatch.setattr("mbsfmu.native.compiled.toolkit", lambda: "another")
    pendulum()
    assert libraries() == 5
    monkeypatch.setattr(compiler.machines, "machine", lambda: "another")
    assert not kept.find(compiler._content("key", None), None, ".so")
    pendulum()
    assert libraries() == 6


def test_the_folder_is_bounded_and_loses_what_was_not_used_for_longest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kept.LIMIT, "0.0035")
    paths = []
    for number in range(3):
        paths.append(kept.store(f"content{number}", "maker", ".so", bytes([number]) * 1000))
        os.utime(paths[-1], (number, number))
    assert kept.find("content0", "maker", ".so") == paths[0]  # now the one that was used last
    abandoned = folder / "died.so.part"
    abandoned.write_bytes(b"half")
    os.utime(abandoned, (0, 0))
    newest = kept.store("content3", "maker", ".so", bytes(1000))
    assert sorted(folder.iterdir()) == sorted([paths[0], paths[2], newest])
    largest = kept.store("content4", "maker", ".so", bytes(9000))  # what was just made stays, whatever its size
    assert sorted(folder.iterdir()) == [largest]


def test_the_folder_grows_by_a_twentieth_at_most_before_it_is_cleared_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading it all at each file kept took a fifteenth of the time of many models."""
    monkeypatch.setenv(kept.LIMIT, "0.01")
    sizes = []
    for number in range(200):
        kept.store(f"content{number}", "maker", ".so", bytes(number.to_bytes(2) * 50))
        sizes.append(sum(path.stat().st_size for path in folder.iterdir()))
    assert 10_000 < max(sizes) <= 10_600
    assert min(sizes[150:]) <= 10_000


@pytest.mark.parametrize("limit", ["much", "-5", "nan", "1000 MB"])
def test_a_limit_that_is_no_size_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """Whether something is kept already or not, and of a run too."""
    refused = pytest.raises(InputError, match=rf"^{kept.LIMIT} is '{limit}'; it must be a number of MB, 0 or more$")
    runs_as_ever(pendulum())
    monkeypatch.setenv(kept.LIMIT, limit)
    for use in (pendulum, lambda: kept.store("content", "maker", ".so", b""), lambda: kept.find("content", None, "")):
        with refused:
            use()


def test_a_limit_may_be_given_in_any_notation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("0", "1e3", "inf", ""):
        monkeypatch.setenv(kept.LIMIT, limit)
        assert kept.store("content", "maker", ".so", b"code").read_bytes() == b"code"


def test_many_may_keep_the_same_at_once(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: kept.store("content", "maker", ".so", b"code" * 1000), range(40)))
    assert list(folder.iterdir()) == list(paths)


@pytest.mark.parametrize(
    ("system", "machine", "names"),
    [
        ("linux", "x86_64", ("linux64", "x86_64-linux")),
        ("win32", "AMD64", ("win64", "x86_64-windows")),
        ("darwin", "x86_64", ("darwin64", "x86_64-darwin")),
        ("darwin", "arm64", ("darwin64", "aarch64-darwin")),
        ("linux", "aarch64", (None, "aarch64-linux")),
        ("linux", "riscv64", (None, None)),
        ("win32", "ARM64", (None, None)),
    ],
)
def test_platforms_go_by_the_machine(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, names: tuple[str | None, str | None]
) -> None:
    monkeypatch.setattr(compiler.sys, "platform", system)
    monkeypatch.setattr(compiler.machines, "machine", lambda: machine)
    for fmi, name in zip(compiler.VERSIONS, names, strict=True):
        if name:
            assert compiler.host_platform(fmi) == name
            assert compiler.PLATFORMS[name].fmi == fmi
            continue
        warned = f"FMI {fmi}.0 has no platform for {system} on {machine.lower()}, 64 bits"
        with pytest.raises(mbsfmu.InputError, match=warned):
            compiler.host_platform(fmi)


def test_machines_do_not_pass_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """On ARM the compiler of the machine makes what FMI 3.0 calls aarch64, and not what it calls x86_64."""
    monkeypatch.setattr(compiler.sys, "platform", "linux")
    monkeypatch.setattr(compiler.machines, "machine", lambda: "aarch64")
    monkeypatch.setattr(compiler, "_zig", lambda: None)
    assert compiler._command("aarch64-linux", portable=True)
    with pytest.raises(mbsfmu.InputError, match="for x86_64-linux the cross-compiler"):
        compiler._command("x86_64-linux", portable=True)
    assert compiler.platform_named("linux64", 3) == "x86_64-linux"


def test_a_failing_compiler_ends_an_export_with_a_sentence(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "false")
    monkeypatch.setattr(compiler, "_zig", lambda: None)
    with pytest.raises(mbsfmu.SimulationError, match=r"the C compiler .*false refuses the generated sources"):
        mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path / "out", layout="monolithic")
    assert not list((tmp_path / "out").glob("*"))


def test_steps_are_compiled_once_for_runs_and_for_fmus(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop of runs, FMI 2.0 and FMI 3.0 have files of their own beside; a library of older objects runs as ever."""
    monkeypatch.setattr(compiler, "_zig", lambda: None)
    monkeypatch.setenv(compiler.OPTIMIZATION, "1")
    model, options = mbsfmu.models.pendulum(1), {"solver": "trapezoidal", "step": 1e-2}
    counts = []
    for fmi in (2, 3):
        mbsfmu.export(model, tmp_path / str(fmi), layout="monolithic", fmi=fmi, **options)
        counts.append(len(list(folder.glob("*.o"))))
    simulation = model.simulation(**options)
    counts.append(len(list(folder.glob("*.o"))))
    assert counts == [3, 5, 6]  # steps, unit, FMI 2.0; another unit, FMI 3.0; the loop
    assert is_compiled(simulation)
    assert runs_as_ever(simulation)


def test_files_are_known_by_all_that_they_read() -> None:
    """Through a macro that names a file, too; what nothing includes is of no matter."""
    files = {
        "a.c": '#include "b.h"\n#include NEXT\n',
        "b.h": '#define NEXT "c.c"\n',
        "c.c": "int c;\n",
        "d.c": "int d;\n",
    }

    def content(**changes: str) -> str:
        changed = {**files, **{name.replace("_", "."): text for name, text in changes.items()}}
        return Compilation(("cc",), changed, {"a.c": "-O2"}, ".so").content("a.c")

    assert content(d_c="int e;\n") == content()
    assert content(c_c="int e;\n") != content()
    assert content(b_h='#define NEXT "d.c"\n') != content()


def test_models_that_differ_in_numbers_share_their_code(folder: Path) -> None:
    """And differ in their motion as the interpreter says."""

    def libraries() -> list[Path]:
        return sorted(each for each in folder.iterdir() if each.suffix in LINK)

    def run(mass: float, *, compiled: bool = True) -> np.ndarray:
        data = mbsfmu.models.pendulum(2).to_dict()
        data["systems"]["mechanism"]["bodies"][1]["mass"] = mass
        simulation = mbsfmu.CoupledModel.from_dict(data).simulation(step=1e-2, compiled=compiled)
        assert is_compiled(simulation) is compiled
        return simulation.run(STOP)["link_1.angle"]

    light = run(1.0)
    made = libraries()
    assert len(made) == 1
    heavy = run(50.0)
    assert libraries() == made
    assert np.max(np.abs(light - heavy)) > 1e-6
    np.testing.assert_allclose(heavy, run(50.0, compiled=False), rtol=1e-12)
    assert is_compiled(mbsfmu.models.pendulum(3).simulation(step=1e-2))
    assert len(libraries()) == 2


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no owners of files")
@pytest.mark.parametrize("mode", [0o1777, 0o770, 0o702])
def test_a_folder_that_others_may_write_is_not_used(folder: Path, caplog: pytest.LogCaptureFixture, mode: int) -> None:
    """Code that somebody has put there would run when it is loaded: none is taken, and none is kept."""
    own = kept.store("content", "maker", ".so", b"own")
    assert own.parent == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(mode)
    assert kept.find("content", "maker", ".so") is None
    assert kept.store("content", "maker", ".so", b"again").parent != folder
    assert any("others may write it" in each and "chmod go-w" in each for each in warnings(caplog))
    folder.chmod(0o755)
    assert kept.find("content", "maker", ".so") == own


def test_what_is_no_folder_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("MBSFMU_CACHE", str(file))
    assert kept.store("content", "maker", ".so", b"own").parent != file
    assert not kept.keeps()
    assert any(f"nothing is kept in {file}: it is no folder" in each for each in warnings(caplog))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_files_of_others_are_not_used(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    own = kept.store("content", "maker", ".so", b"own")
    os.chown(own, 12345, 12345)
    assert kept.find("content", "maker", ".so") is None
    assert own.exists()
    assert any("it belongs to another user" in each for each in warnings(caplog))
    os.chown(own, 0, 0)
    own.chmod(0o666)
    assert kept.find("content", "maker", ".so") is None
    own.chmod(0o644)
    assert kept.find("content", "maker", ".so") == own


def driven_parallelogram(speed: float) -> mbsfmu.CoupledModel:
    """A parallelogram turned from its dead centre on where the speed is zero: there one loop equation fewer counts."""
    joints = (
        mbsfmu.Revolute(name="A", parent="ground.O", child="a.start", angle=1.0),
        mbsfmu.Revolute(name="B", parent="a.end", child="b.start", angle=-1.0),
        mbsfmu.Revolute(name="D", parent="ground.P", child="c.start", angle=1.0),
        mbsfmu.Revolute(name="C", parent="c.end", child="b.end", cut=True),
    )
    mechanism = mbsfmu.Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "P": (1.0, 0.0, 0.0)},
        bodies=tuple(
            mbsfmu.Beam(name=name, length=size, mass=1.0) for name, size in (("a", 0.5), ("b", 1.0), ("c", 0.5))
        ),
        joints=joints,
        constraints=(mbsfmu.PrescribedMotion(name="motor", joint="A"),),
    )
    motion = mbsfmu.PolynomialSignal(times=(0.0,), coefficients=((speed, 6.0),))
    return mbsfmu.CoupledModel(
        name="parallelogram", systems={"mechanism": mechanism}, signals={"mechanism.motor.position": motion}
    )


@pytest.mark.parametrize("formulation", ["dca", "hdca", "penalty"])
def test_code_of_another_signal_is_not_taken_where_other_loop_equations_count(folder: Path, formulation: str) -> None:
    """Reactions were off by half of theirs, and nothing was said."""
    with suppress(mbsfmu.SimulationError):  # what a dead centre leads to does not matter
        driven_parallelogram(0.0).simulation(formulation=formulation, step=1e-3).run(0.02)
    compiled, expected = (
        driven_parallelogram(1.0).simulation(formulation=formulation, step=1e-3, compiled=compiled).run(0.02)
        for compiled in (True, False)
    )
    for name in ("A.force.x", "A.moment.z"):
        scale = np.max(np.abs(expected[name]))
        np.testing.assert_allclose(compiled[name], expected[name], atol=1e-6 * scale)


def test_ensembles_take_no_code_of_another_signal_either(folder: Path) -> None:
    masses = {"b.mass": [1.0, 2.0]}
    for speed in (0.0, 1.0):
        found = driven_parallelogram(speed).ensemble(masses, step=1e-3).run(stop=0.02, outputs=["A.force.x"])
    expected = driven_parallelogram(1.0).simulation(step=1e-3, compiled=False).run(0.02)["A.force.x"]
    np.testing.assert_allclose(found["A.force.x"][0], expected, atol=1e-6 * np.max(np.abs(expected)))


def test_penalty_factors_are_those_of_the_step(folder: Path) -> None:
    """They follow from it, and stand in the code: the first run is one of large steps."""
    for step in (2e-2, 1e-3):
        simulation = mbsfmu.models.built_in("bennett").simulation(formulation="penalty", step=step)
        found = simulation.run(0.1)
    expected = mbsfmu.models.built_in("bennett").simulation(formulation="penalty", step=1e-3, compiled=False).run(0.1)
    for name in ("constraint.velocity", "energy.drift"):
        assert np.max(found[name]) == pytest.approx(np.max(expected[name]), rel=0.05)
