"""C files of components that are linked with the FMU around them: compiled, and asked for every function."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from foreign_fmus import compiler

from mbsfmu import InputError
from mbsfmu.exporting import coupled_tables
from mbsfmu.exporting.coupled_tables import linked_sources, single_source_of

_RUNTIME = Path(coupled_tables.__file__).parent / "coupled_runtime"
_KINDS = {2: ("Real", "Integer", "Boolean", "String"), 3: ("Float64", "Float32", "Int8", "UInt64", "Boolean", "String")}
_PROGRAM = """
#include <stdio.h>
#include "component_library.h"
int main(void) {
    char reason[64] = "";
    const char *folders[] = {"first", "second \\"one\\"", "none"};
    for (int k = 0; k < 3; k++) {
        void *library = load_library(folders[k], reason, sizeof reason);
        if (!library) { printf("%s: %s\\n", folders[k], reason); continue; }
        for (const struct LinkedFunction *each = library; each->name; each++) {
            void (*function)(void) = function_of(library, each->name);
            printf("%d %s %d\\n", k, each->name, ((int (*)(void))function)());
        }
        printf("%d %d\\n", k, function_of(library, "fmi2Nothing") == NULL);
    }
    return 0;
}
"""


def component(fmi: int, value: int) -> str:
    """C source of a component, whose functions all return a number; it has its own prefix, as those of FMUs."""
    names = coupled_tables._FUNCTIONS[fmi]
    lines = [
        f"#define PASTE_(a, b) a##b\n#define PASTE(a, b) PASTE_(a, b)\nstatic int value_(void) {{ return {value}; }}"
    ]
    lines += [f"int PASTE(FMI{fmi}_FUNCTION_PREFIX, fmi{fmi}{name})(void) {{ return value_(); }}" for name in names]
    return "\n".join(lines)


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
def test_linked_components_have_all_functions_by_name(tmp_path: Path) -> None:
    """The functions are those that the runtime asks for, and what reads and writes values in both standards."""
    wanted = {
        fmi: {
            *re.findall(rf'"(fmi{fmi}[A-Za-z]+)"', "".join(each.read_text() for each in _RUNTIME.glob("*.[ch]"))),
            *(f"fmi{fmi}{way}{kind}" for way in ("Get", "Set") for kind in kinds),
        }
        for fmi, kinds in _KINDS.items()
    }
    wanted[3].discard("fmi3SetFloat64Derivatives")
    files, mains = linked_sources({"first": (2, component(2, 5)), 'second "one"': (3, component(3, 7))})
    for name, text in {**files, "main.c": _PROGRAM}.items():
        (tmp_path / name).write_text(text)
    for name in ("component_library.h",):
        (tmp_path / name).write_text((_RUNTIME / name).read_text())
    assert set(mains) == {"linked_0.c", "linked_1.c"}
    program = tmp_path / "program"
    command = [str(compiler()), "-Wno-unused-function", "-DLINKED_COMPONENTS", "main.c", *mains, "-o", str(program)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    found = {k: {line.split()[1]: line.split()[2] for line in lines if line.startswith(f"{k} fmi")} for k in (0, 1)}
    for k, fmi, value in ((0, 2, "5"), (1, 3, "7")):
        assert wanted[fmi] <= found[k].keys()
        assert set(found[k].values()) == {value}
        assert f"{k} 1" in lines, "there is an end"
    assert lines[-1] == "none: it is not linked"


def test_a_single_source_is_found(tmp_path: Path) -> None:
    path = tmp_path / "unit.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sources/all.c", "int ä;")

    def described(version: str, *sets: list[str]) -> SimpleNamespace:
        configurations = [SimpleNamespace(sourceFileSets=[SimpleNamespace(sourceFiles=each)]) for each in sets]
        return SimpleNamespace(fmiVersion=version, buildConfigurations=configurations)

    assert single_source_of(described("2.0", ["all.c"]), path, "it") == (2, "int ä;")
    assert single_source_of(described("3.0", ["all.c"], ["all.c"]), path, "it") == (3, "int ä;")
    for files, count in ((["a.c", "b.c"], "2"), ([], "no")):
        with pytest.raises(InputError, match=f"it comes with {count} C source files; .*--sources single"):
            single_source_of(described("2.0", files), path, "it")
