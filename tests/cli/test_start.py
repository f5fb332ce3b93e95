"""How a call starts: what is loaded for it, and what becomes of interruptions meanwhile."""

from __future__ import annotations

import importlib
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

import mbsfmu
from mbsfmu.cli.commands import COMMANDS


def loaded_by(code: str) -> set[str]:
    """Return the names of all modules that are loaded after some code."""
    call = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_loads_nothing_by_itself() -> None:
    loaded = loaded_by("import mbsfmu")
    assert loaded.isdisjoint({"numpy", "casadi", "pydantic", "hydraulics", "importlib.metadata"})
    assert set(dir(mbsfmu)) == {*mbsfmu.__all__, "__version__"}
    assert all(getattr(mbsfmu, name) is not None for name in (*mbsfmu.__all__, "__version__"))


def test_names_that_are_not_there_are_no_attributes() -> None:
    with pytest.raises(AttributeError, match="module 'mbsfmu' has no attribute 'four_bar'"):
        _ = mbsfmu.four_bar


def test_help_loads_no_command() -> None:
    loaded = loaded_by(
        "import sys; sys.argv[1:] = ['--help']\nfrom mbsfmu.cli.commands import cli\ncli(standalone_mode=False)"
    )
    assert loaded.isdisjoint({"numpy", "casadi", "pydantic", "mbsfmu.cli.simulate"})


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_say_of_themselves_what_the_list_says(name: str) -> None:
    command = importlib.import_module(f"mbsfmu.cli.{name}").command
    assert isinstance(command, click.Command)
    assert (command.help or "").partition("\n\n")[0] == COMMANDS[name]


def test_data_are_made_without_a_compiler_or_symbols() -> None:
    """A joint is known by its type although nothing has loaded the built-in ones."""
    code = (
        "from mbsfmu.model.mechanism import Mechanism\n"
        "from mbsfmu.model.model_data import ModelData\n"
        "link = {'name': 'link', 'type': 'beam', 'length': 1.0, 'mass': 1.0}\n"
        "joint = {'name': 'O', 'type': 'revolute', 'parent': 'ground.O', 'child': 'link.start'}\n"
        "data = {'ground': {'O': [0, 0, 0]}, 'bodies': [link], 'joints': [joint]}\n"
        "model = ModelData.from_dict({'name': 'one', 'systems': {'mechanism': data}})\n"
        "assert model.systems['mechanism'].topology.tree[0].joint.name == 'O'"
    )
    loaded = loaded_by(code)
    assert loaded.isdisjoint({"casadi", "scipy", "mbsfmu.native", "mbsfmu.simulation", "mbsfmu.formulations"})


def test_a_compiled_run_needs_no_scipy() -> None:
    run = "import mbsfmu\nmbsfmu.models.four_bar().simulation().run(0.1)"
    assert loaded_by(run).isdisjoint({"scipy", "fmpy", "lxml", "matplotlib", "rich", "pyarrow", "jinja2", "pythonfmu"})


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("validate", {"casadi", "mbsfmu.models", "mbsfmu.simulation.simulation", "pythonfmu", "jinja2"}),
        ("simulate", {"pythonfmu", "fmpy", "jinja2", "matplotlib"}),
        ("cosim", {"pythonfmu", "jinja2", "matplotlib"}),
        ("linearize", {"pythonfmu", "matplotlib"}),
    ],
)
def test_commands_load_what_they_need(name: str, without: set[str]) -> None:
    assert loaded_by(f"import mbsfmu.cli.{name}").isdisjoint(without)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("losing", [False, True])
def test_interruptions_while_libraries_are_loaded_end_in_one_line(
    tmp_path: Path, losing: bool, number: signal.Signals
) -> None:
    """A library takes its time to load, and may make another error of an interruption."""
    made = "ImportError" if losing else "KeyboardInterrupt"
    (tmp_path / "numpy.py").write_text(
        f"import pathlib, time\npathlib.Path({str(tmp_path / 'begun')!r}).touch()\n"
        f"try:\n    time.sleep(30)\nexcept KeyboardInterrupt:\n    raise {made}"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    call = [sys.executable, "-m", "mbsfmu", "simulate", "four-bar"]
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True, env=environment) as process:
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        process.send_signal(number)
        _, told = process.communicate(timeout=20)
    assert (process.returncode, told) == (128 + number, "mbsfmu: interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_terminals_show_that_something_is_compiled(tmp_path: Path) -> None:
    """Nothing was compiled in this folder before; what is shown meanwhile goes away, but for the note."""
    compiler = tmp_path / "slow"
    compiler.write_text('#!/bin/sh\nif [ "$1" != --version ]; then sleep 0.3; fi\nexec cc "$@"\n')
    compiler.chmod(0o755)
    master, slave = pty.openpty()
    environment = {**os.environ, "MBSFMU_CACHE": str(tmp_path), "CC": str(compiler), "TERM": "xterm", "COLUMNS": "200"}
    call = [sys.executable, "-m", "mbsfmu", "simulate", "pendulum-1", "--stop", "0.01"]
    with subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=slave, env=environment) as process:
        os.close(slave)
        told = b""
        while True:
            try:
                read = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            told += read
    os.close(master)
    assert process.returncode == 0
    assert b"preparing" in told
    assert b"of C for this machine; what comes of it is kept for the next time" in told
