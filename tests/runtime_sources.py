"""The C files of the runtime by name, and the options by which a compiler finds them."""

from __future__ import annotations

from mbsfmu.native.c_sources import runtime_files

RUNTIME = runtime_files()
INCLUDES = sorted({f"-I{file.parent}" for file in RUNTIME.values()})
