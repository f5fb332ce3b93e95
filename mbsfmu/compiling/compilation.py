"""One compilation: C files that are compiled at the same time, and linked into a shared library."""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mbsfmu.errors import SimulationError
from mbsfmu.files import reason
from mbsfmu.identity import content_key
from mbsfmu.interruption import before_the_end, deferring_interruptions

# No contraction to fused operations: every compiler then rounds alike.
FLAGS = ("-std=c99", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off")
"""What all compilers are told."""
LINK = {".dll": ("-s",), ".so": ("-s", "-lm", "-Wl,--as-needed", "-lpthread"), ".dylib": ("-lm",)}
"""What linkers are told, by how the names of libraries end."""
SOURCES = "MBSFMU_SOURCES"
"""Environment variable: a folder where the C sources of all that is compiled stay, to be read and debugged; nothing
that was compiled before is used then, and libraries know their lines."""


class CompilerError(SimulationError):
    """A compiler that is there does not do its work."""


@dataclass(frozen=True)
class Compilation:
    """Sources on their way to a library.

    Attributes
    ----------
    command
        How the compiler is called.
    sources
        Texts by file name, those that are included being among them.
    levels
        How much each of the files to compile is optimized, such as `-O2`.
    suffix
        How the library's name ends.
    """

    command: tuple[str, ...]
    sources: Mapping[str, str]
    levels: Mapping[str, str]
    suffix: str

    def library(self, keep_sources_in: str | None = None) -> bytes:
        """Compile, and return what the library is; the sources stay in a folder where one is given.

        Raises
        ------
        CompilerError
            When nothing can be written, or the compiler does not do it.
        """
        if keep_sources_in:
            folder = Path(keep_sources_in).absolute() / content_key(sorted(self.sources.items()))[:12]
            try:
                folder.mkdir(parents=True, exist_ok=True)
                return self._made_in(folder)
            except OSError as error:
                told = f"{SOURCES} is {keep_sources_in}, where nothing can be written: {reason(error)}"
                raise CompilerError(told) from None
        try:
            with tempfile.TemporaryDirectory(prefix="mbsfmu-") as name:
                return self._made_in(Path(name))
        except OSError as error:
            raise CompilerError(f"nothing can be compiled in {tempfile.gettempdir()}: {reason(error)}") from None

    def _made_in(self, folder: Path) -> bytes:
        for name, text in self.sources.items():
            (folder / name).write_text(text, encoding="utf-8")
        objects = {main: f"{main}.o" for main in self.levels}
        calls = [[*self.command, *FLAGS, self.levels[main], "-c", main, "-o", made] for main, made in objects.items()]
        call_compilers(calls, folder)
        library = f"unit{self.suffix}"
        link = [each for each in LINK[self.suffix] if not ("-g" in self.command and each == "-s")]
        call_compilers([[*self.command, "-shared", *objects.values(), "-o", library, *link]], folder)
        if not (folder / library).is_file():
            told = f"the C compiler {shlex.join(self.command)} says that all is well, but makes no library"
            raise CompilerError(told)
        return (folder / library).read_bytes()


def call_compilers(calls: Sequence[Sequence[str]], folder: Path) -> None:
    """Call compilers in a folder, all at the same time.

    Each has a process group of its own, so that what is interrupted at the keyboard ends them, with all that they have
    started, and not they themselves; none goes on where this call ends, or the process.

    Raises
    ------
    CompilerError
        When one cannot be called, or refuses.
    """
    with before_the_end(_signal_all):
        _call(calls, folder)


def _call(calls: Sequence[Sequence[str]], folder: Path) -> None:
    started: list[subprocess.Popen[str]] = []
    try:
        with deferring_interruptions():  # none is started that is not known here
            for call in calls:
                process = subprocess.Popen(
                    call, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                    process_group=0 if os.name == "posix" else None,
                )  # fmt: skip
                started.append(process)
                _working.add(process)
        for call, process in zip(calls, started, strict=True):
            said = process.communicate()[1]
            if process.returncode:
                raise CompilerError(f"the C compiler {call[0]} refuses the generated sources: {_reason_in(said)}")
    except OSError as error:
        raise CompilerError(f"the C compiler cannot be called: {error}") from None
    finally:
        _end(started)
        for process in started:
            _working.discard(process)
            if process.stderr is not None:
                process.stderr.close()


def _reason_in(said: str) -> str:
    """Return the line of what a compiler says that tells why it refuses."""
    lines = [line for line in said.splitlines() if line.strip()]
    why = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it gives no reason")
    return why.strip()


_working: set[subprocess.Popen[str]] = set()
"""Compilers that have been called and have not ended."""
_PATIENCE = 1.0
"""In s: how long a compiler may take to remove its own files where it is ended."""


def _end(processes: Collection[subprocess.Popen[str]]) -> None:
    """End compilers that still work, and what they have started."""
    still = [process for process in processes if process.poll() is None]
    for process in still:
        _signal(process, signal.SIGTERM)
    for process in still:
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
            process.wait()


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:
            process.kill()


def _signal_all() -> None:
    """Let compilers end; nothing is waited for, as what is interrupted may be waiting for them itself."""
    for process in tuple(_working):
        _signal(process, signal.SIGTERM)


@atexit.register
def _end_all() -> None:
    """End compilers that nobody waits for any more, as those that work beside a run."""
    _end(tuple(_working))
