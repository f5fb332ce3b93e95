"""Components that are linked with the FMU around them, for platforms that load no libraries: WebAssembly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mbsfmu.base.archives import opened_archive
from mbsfmu.base.errors import InputError
from mbsfmu.native.literals import string

_OPTIMIZATION = "-O2"
_OF_ALL = ("FreeInstance", "EnterInitializationMode", "ExitInitializationMode", "Terminate", "DoStep")
_FUNCTIONS = {
    2: (
        *(*_OF_ALL, "Instantiate", "SetupExperiment", "GetFMUstate", "SetFMUstate", "FreeFMUstate"),
        *(f"{way}{kind}" for way in ("Get", "Set") for kind in ("Real", "Integer", "Boolean", "String")),
        *("SetRealInputDerivatives", "GetDirectionalDerivative", "GetRealStatus", "GetBooleanStatus"),
    ),
    3: (
        *(*_OF_ALL, "InstantiateCoSimulation", "GetFMUState", "SetFMUState", "FreeFMUState"),
        *(
            f"{way}{'U' * unsigned}Int{bits}"
            for way in ("Get", "Set")
            for unsigned in (0, 1)
            for bits in (8, 16, 32, 64)
        ),
        *(f"{way}{kind}" for way in ("Get", "Set") for kind in ("Float64", "Float32", "Boolean", "String")),
        *("EnterEventMode", "EnterStepMode", "UpdateDiscreteStates", "GetDirectionalDerivative"),
    ),
}
"""What `coupled_runtime` calls of components, which every FMU has by the standards."""
_TYPES = """\
/* Functions of linked components by name; the last one has none. */
#ifndef MBSFMU_LINKED_FUNCTION_H
#define MBSFMU_LINKED_FUNCTION_H

struct LinkedFunction {
    const char *name;
    void (*function)(void);
};

#endif
"""


def linked_sources(sources: Mapping[str, tuple[int, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the C files of linked components by name, and those that are compiled with their optimization.

    Parameters
    ----------
    sources
        By the folders of the components, their version of the FMI and their C source.
    """
    files, mains, declared, listed = {"linked_function.h": _TYPES}, {}, [], []
    for index, (folder, (fmi, source)) in enumerate(sources.items()):
        prefix, table = f"linked_{index}_", f"linked_functions_{index}"
        names = [f"fmi{fmi}{name}" for name in _FUNCTIONS[fmi]]
        rows = [f"    {{{string(name)}, (void (*)(void)){prefix}{name}}}," for name in names]
        main = f"linked_{index}.c"
        files[f"component_{index}.c"] = source
        files[main] = "\n".join(
            [
                f"#define FMI{fmi}_FUNCTION_PREFIX {prefix}",
                f'#include "component_{index}.c"',
                '#include "linked_function.h"',
                f"const struct LinkedFunction {table}[] = {{",
                *rows,
                "    {0, 0},",
                "};",
                "",
            ]
        )
        mains[main] = _OPTIMIZATION
        declared.append(f"extern const struct LinkedFunction {table}[];")
        listed.append(f"{{{string(folder)}, {table}}}")
    files["linked_components.h"] = "\n".join(
        [
            '#include "linked_function.h"',
            *declared,
            "static const struct LinkedLibrary {",
            "    const char *folder;",
            "    const struct LinkedFunction *functions;",
            f"}} linked_libraries[] = {{{', '.join([*listed, '{0, 0}'])}}};",
            "",
        ]
    )
    return files, mains


def single_source_of(description: Any, path: Path, called: str) -> tuple[int, str]:
    """Return the version of the FMI and the C source of an FMU.

    Parameters
    ----------
    description
        As FMPy reads it.
    path, called
        The FMU, and what it is called in sentences.

    Raises
    ------
    InputError
        When it does not come with its source in a single file.
    """
    fmi = 2 if description.fmiVersion == "2.0" else 3
    sets = (each for configuration in description.buildConfigurations for each in configuration.sourceFileSets)
    names = dict.fromkeys(file for each in sets for file in each.sourceFiles)
    if len(names) != 1:
        raise InputError(
            f"{called} comes with {len(names) or 'no'} C source files; for WebAssembly components are linked from one: "
            "our FMUs have it with --sources single"
        )
    with opened_archive(path) as archive:
        text = archive.read(f"sources/{next(iter(names))}").decode("utf-8")
    return fmi, text
