"""Python programs that tests run as users do, each in a process of its own, which begins where most is loaded already.

A start takes a second of a processor, most of it for libraries. Where processes can be forked, one loads them once and
becomes, forked, each program. What a program loads by itself, and how long that takes, are for processes that are
started in earnest (`cli/test_start.py`).
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FORKS = sys.platform == "linux"


def run_python(
    *arguments: str, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE …` or `python FILE …` in a folder, and return what it has written; arguments as there."""
    if not FORKS:
        call = [sys.executable, *arguments]
        return subprocess.run(call, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    with tempfile.TemporaryDirectory() as place:
        texts = [Path(place, name) for name in ("stdout", "stderr")]
        wanted = {
            "arguments": arguments,
            "folder": os.fspath(folder or Path.cwd()),
            "environment": {**(os.environ if environment is None else environment)},
            "files": [os.fspath(each) for each in texts],
        }
        asked, answers = _loaded()
        asked.write(f"{json.dumps(wanted)}\n")
        asked.flush()
        status = int(answers.readline())
        return subprocess.CompletedProcess(arguments, status, *(each.read_text() for each in texts))


@cache
def _loaded() -> tuple[tempfile._TemporaryFileWrapper[str], tempfile._TemporaryFileWrapper[str]]:
    """Start the process that loads what programs need; return where it is asked, and where it answers."""
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end() -> None:
        process.communicate()

    atexit.register(end)
    return process.stdin, process.stdout


def _serve() -> None:
    """Load libraries, and become each program that is asked for in a process that is forked."""
    import importlib  # noqa: PLC0415 - all of these are the server's alone
    import runpy  # noqa: PLC0415
    import warnings  # noqa: PLC0415

    sys.path.pop(0)  # the folder of tests, which users' programs do not see
    for library in ("mbsfmu.cli.commands", "mbsfmu.exporting.fmu_export", "casadi", "fmpy", "jinja2", "lxml.etree"):
        importlib.import_module(library)
    for library in ("scipy.integrate", "scipy.linalg", "scipy.optimize", "scipy.sparse.linalg"):
        importlib.import_module(library)
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if child:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201 - the answer
            continue
        for descriptor, file in enumerate([os.devnull, *wanted["files"]]):
            os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), descriptor)
        os.chdir(wanted["folder"])
        os.environ.clear()
        os.environ.update(wanted["environment"])
        sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        arguments = wanted["arguments"]
        if arguments[0] == "-W":
            warnings.simplefilter(arguments[1])
            arguments = arguments[2:]
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            sys.path.insert(0, wanted["folder"])
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
            runpy.run_path(arguments[0], run_name="__main__")
        return


if __name__ == "__main__":
    _serve()
