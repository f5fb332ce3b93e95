"""One compilation: C files compiled in parallel and linked to a shared library."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mbsfmu.base.archives import scratch
from mbsfmu.base.errors import SimulationError
from mbsfmu.base.files import reason
from mbsfmu.base.identity import content_key
from mbsfmu.base.interruption import deferring_interruptions

# No contraction to fused operations: every compiler then rounds alike.
FLAGS = ("-std=c99", "-fvisibility=hidden", "-ffp-contract=off")
"""Compiler flags of all files."""
PROGRAM = ".exe"
"""How the name of a program for Windows ends."""
# WebAssembly modules stand alone: their code needs no relocation, and they have no stack protector's random number.
CODE = {
    ".dll": ("-fPIC",),
    PROGRAM: (),
    ".so": ("-fPIC",),
    ".dylib": ("-fPIC",),
    ".wasm": ("-fno-stack-protector",),
}
"""Further compiler flags by library suffix."""
LINK = {
    ".dll": ("-shared", "-s"),
    PROGRAM: ("-s",),
    ".so": ("-shared", "-s", "-lm", "-Wl,--as-needed"),
    ".dylib": ("-shared", "-lm"),
    # A reactor has no main function. Its host needs memory for arguments, and a place in the table for its logger.
    ".wasm": (
        *("-mexec-model=reactor", "-s", "-Wl,--export-dynamic", "-Wl,--export=malloc", "-Wl,--export=free"),
        *("-Wl,--export-table", "-Wl,--growable-table", "-Wl,-z,stack-size=1048576"),
    ),
}
"""Linker flags by library suffix."""
_QUOTED = re.compile(r'"([\w.]+)"')
"""How C names a file: in a directive, or in a macro that stands for one."""
SOURCES = "MBSFMU_SOURCES"
"""Environment variable: a folder where the C sources of all that is compiled stay, to be read and debugged; nothing
that was compiled before is used then, and libraries know their lines."""


class CompilerError(SimulationError):
    """Failure of an existing compiler."""


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
    made
        Object files by the name of the file to compile, of those that were compiled before.
    """

    command: tuple[str, ...]
    sources: Mapping[str, str]
    levels: Mapping[str, str]
    suffix: str
    made: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    def content(self, main: str) -> str:
        """Return a key of a file's content and all files it includes."""
        known, found = {main}, [main]
        for name in found:
            named = {*_QUOTED.findall(self.sources.get(name, ""))} & self.sources.keys() - known
            known |= named
            found += sorted(named)
        return content_key(FLAGS, CODE[self.suffix], main, [(name, self.sources.get(name)) for name in sorted(known)])

    def library(self, keep_sources_in: str | None = None) -> tuple[bytes, dict[str, bytes]]:
        """Compile missing files, and return the library and the new object files.

        The sources stay in a folder where one is given.

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
            with scratch() as folder:
                return self._made_in(folder)
        except OSError as error:
            raise CompilerError(f"nothing can be compiled in {tempfile.gettempdir()}: {reason(error)}") from None

    def _made_in(self, folder: Path) -> tuple[bytes, dict[str, bytes]]:
        for name, text in self.sources.items():
            (folder / name).write_text(text, encoding="utf-8")
        objects = {main: f"{main}.o" for main in self.levels}
        for main, content in self.made.items():
            (folder / objects[main]).write_bytes(content)
        new = [main for main in objects if main not in self.made]
        flags = (*FLAGS, *CODE[self.suffix])
        calls = [[*self.command, *flags, self.levels[main], "-c", main, "-o", objects[main]] for main in new]
        call_compilers(calls, folder)
        library = f"unit{self.suffix}"
        link = [each for each in LINK[self.suffix] if not ("-g" in self.command and each == "-s")]
        call_compilers([[*self.command, *objects.values(), "-o", library, *link]], folder)
        if not (folder / library).is_file():
            told = f"the C compiler {shlex.join(self.command)} says that all is well, but makes no library"
            raise CompilerError(told)
        return (folder / library).read_bytes(), {main: (folder / objects[main]).read_bytes() for main in new}


def call_compilers(calls: Sequence[Sequence[str]], folder: Path) -> None:
    """Run compilers in a folder in parallel.

    They are a process group of their own, so that an interruption at the keyboard ends this call, which ends them. None
    of them, and nothing that they have started, outlives this call, or the process.

    Raises
    ------
    CompilerError
        When one cannot be called, or refuses.
    """
    group = _CompilerGroup()
    _working.add(group)
    try:
        with deferring_interruptions():  # none is started that is not known here
            for call in calls:
                group.start(call, folder)
        for call, process in zip(calls, group.compilers, strict=True):
            said = process.communicate()[1]
            if process.returncode:
                raise CompilerError(f"the C compiler {call[0]} refuses the generated sources: {_reason_in(said)}")
    except OSError as error:
        raise CompilerError(f"the C compiler cannot be called: {error}") from None
    finally:
        group.end()
        group.close()
        _working.discard(group)


def _reason_in(said: str) -> str:
    """Return the line of a compiler's output with the reason of the failure."""
    lines = [line for line in said.splitlines() if line.strip()]
    why = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it gives no reason")
    return why.strip()


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of compilers; zig keeps what it makes in a folder, where there is no home."""
    places = ("HOME", "XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR")
    homeless = os.name == "posix" and not any(name in os.environ for name in places)
    return {**os.environ, **({"ZIG_GLOBAL_CACHE_DIR": str(folder)} if homeless else {})}


_PATIENCE = 1
"""In s: how long a compiler may take to remove its own files where it is ended."""
_GUARD = f"trap '' HUP INT TERM; read -r _; kill -TERM 0; sleep {_PATIENCE}; kill -KILL 0"
"""What the shell that leads a process group does: it reads until the process that called it has ended, and ends all."""


class _CompilerGroup:
    """Compilers that end together, at the latest with this process.

    In POSIX a shell leads their process group. It reads from a pipe that this process alone writes to, and which the
    kernel closes whatever ends the process, at whatever moment: a signal that nobody handles, a crash, in any thread.

    Attributes
    ----------
    compilers
        Those that were started.
    """

    def __init__(self) -> None:
        self.compilers: list[subprocess.Popen[str]] = []
        self._guard: subprocess.Popen[bytes] | None = None

    def start(self, call: Sequence[str], folder: Path) -> None:
        """Start a compiler in a folder.

        Raises
        ------
        OSError
            When it cannot be called.
        """
        if os.name == "posix" and self._guard is None:
            nowhere = subprocess.DEVNULL
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD], stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, process_group=0
            )
        compiler = subprocess.Popen(
            call, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
            env=_environment(folder), process_group=self._guard.pid if self._guard else None,
        )  # fmt: skip
        self.compilers.append(compiler)

    def end(self) -> None:
        """End running compilers and their children."""
        still = [process for process in self.compilers if process.poll() is None]
        if still:
            self._signal(signal.SIGTERM)
        for process in still:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
        self._signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
        for process in still if self._guard is None else [*still, self._guard]:
            process.wait()

    def close(self) -> None:
        """Close the pipes to processes that have ended."""
        for pipe in [process.stderr for process in self.compilers] + [self._guard.stdin if self._guard else None]:
            if pipe is not None:
                pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the group; Windows knows none, and ends the compilers."""
        if self._guard is None:
            for process in self.compilers:
                process.kill()
        elif self._guard.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self._guard.pid, number)


_working: set[_CompilerGroup] = set()
"""Running compilers."""


@atexit.register
def _end_all() -> None:
    """End all abandoned compilers."""
    for group in tuple(_working):
        group.end()
