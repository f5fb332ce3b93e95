"""Wrappers beside FMUs, read by other programs: GNU Octave runs the MATLAB function, Rumoca compiles the package."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
import rumoca
from lxml import etree

import mbsfmu
from mbsfmu import InputError
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.exporting import wrappers
from mbsfmu.exporting.wrappers import WrappedFmu, WrappedVariable
from mbsfmu.modelling.variables import KEYWORDS, flat_name

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
needs_octave = pytest.mark.skipif(shutil.which("octave-cli") is None, reason="there is no GNU Octave")
SIMULINK = Path(__file__).parent / "matlab"
BOTH = ("simulink", "modelica")
MODELICA = """
package Modelica package Blocks
  package Interfaces connector RealInput = input Real; connector RealOutput = output Real; end Interfaces;
  package Icons partial block Block end Block; end Icons;
end Blocks; end Modelica;
"""


def described(fmu: Path) -> dict[str, dict[str, etree._Element]]:
    """Return the variables of an FMU of FMI 2.0 by causality and name, read without our code and without FMPy's."""
    with zipfile.ZipFile(fmu) as archive:
        root = etree.fromstring(archive.read("modelDescription.xml"))
    found: dict[str, dict[str, etree._Element]] = {"input": {}, "output": {}, "parameter": {}}
    for each in root.iterfind("ModelVariables/ScalarVariable"):
        if each.get("causality") in found:
            found[each.get("causality")][each.get("name")] = each
    return found


def start_of(variable: etree._Element) -> float:
    return float(variable.find("Real").get("start"))


@pytest.fixture(scope="module")
def structured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a four-bar with structured names and its function."""
    folder = tmp_path_factory.mktemp("structured")
    mbsfmu.export(
        mbsfmu.models.built_in("four-bar"), folder, layout="monolithic", backend="python", wrapper="simulink", step=2e-3
    )
    return folder


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a four-bar with flat names and both wrappers."""
    folder = tmp_path_factory.mktemp("flat")
    paths = mbsfmu.export(
        mbsfmu.models.built_in("four-bar"), folder, layout="monolithic", backend="python", naming="flat",
        wrapper=BOTH, step=2e-3,
    )  # fmt: skip
    assert [path.name for path in paths] == ["four-bar.fmu", "add_four_bar.m", "four_bar.mo"]
    assert sorted(folder.iterdir()) == sorted(paths)
    return folder


def octave(folder: Path, *lines: str) -> list[str]:
    """Return what Octave prints of commands, with the function and functions in Simulink's place on its path."""
    code = "\n".join([f"addpath('{SIMULINK}'); addpath('{folder}');", *lines, "exit(0);"])
    done = subprocess.run(
        ["octave-cli", "--no-init-file", "--eval", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "error" not in done.stderr.replace("error: ignoring const execution_exception& while preparing to exit", "")
    return done.stdout.splitlines()


@needs_octave
@pytest.mark.parametrize("naming", ["structured", "flat"])
def test_octave_reads_the_start_values_of_the_description(naming: str, structured: Path, flat: Path) -> None:
    folder = structured if naming == "structured" else flat
    parameters = described(folder / "four-bar.fmu")["parameter"]
    lines = [f"printf('%.17g\\n', s.{name});" for name in parameters]
    found = octave(folder, "s = add_four_bar();", *lines, "disp(numel(fieldnames(s)));")
    assert [float(each) for each in found[:-1]] == [start_of(each) for each in parameters.values()]
    assert int(found[-1]) == len({name.split(".")[0] for name in parameters})


@needs_octave
def test_the_block_is_added_as_the_documentation_says(structured: Path) -> None:
    """A group of parameters is set whole, as a struct that Octave evaluates to the start values but the given ones."""
    calls = octave(
        structured,
        "p.boom.mass = 300; p.boom.C.along = 0.4; p.tank.pressure = 1e5;",
        "disp(add_four_bar('model/sub', p));",
    )
    *calls, set_to, block = [each.split("|") for each in calls]
    assert block == ["model/sub/four_bar"]
    assert calls == [
        ["load_system", "simulink_extras"],
        ["add_block", "simulink_extras/FMU Import/FMU", *block, "MakeNameUnique", "on"],
        ["set_param", *block, "FMUName", "four-bar.fmu", "FMUMode", "CoSimulation"],
        ["set_param", *block, "FMUInputMapping", "Flat", "FMUOutputMapping", "Flat"],
        ["set_param", *block, "FMUSampleTime", "0.002"],
    ]  # tank.pressure has its start value and is left alone
    assert set_to[:3] == ["set_param", *block, "boom"]
    same = "disp(isequal(x, s.boom))"
    found = octave(
        structured, "s = add_four_bar();", f"x = {set_to[3]};", same, "s.boom.mass = 300; s.boom.C.along = 0.4;", same
    )
    assert found == ["0", "1"]


@needs_octave
def test_the_folder_of_the_fmu_is_put_on_the_path(structured: Path, tmp_path: Path) -> None:
    """The function is found in the current folder here, which is another one when the block looks for the FMU."""
    there = "disp(any(strcmp(strsplit(path, pathsep), here)));"
    found = octave(tmp_path, f"here = '{structured}'; cd(here);", there, "add_four_bar('m');", "cd('/');", there)
    assert (found[0], found[-1]) == ("0", "1")


@needs_octave
def test_flat_names_are_set_one_by_one_and_buses_are_made_where_asked(flat: Path) -> None:
    calls = octave(flat, "add_four_bar('m', struct('boom_mass', 0.1), 'Structured');")
    assert calls[-2:] == ["createBusType|m/four_bar", "set_param|m/four_bar|boom_mass|0.10000000000000001"]
    assert "set_param|m/four_bar|FMUInputMapping|Structured|FMUOutputMapping|Structured" in calls


@needs_octave
@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("'m', struct('bom', 1)", "parameters has no 'bom'; there are: gravity, boom, "),
        ("'m', struct('boom', struct('mas', 1))", "parameters.boom has no 'mas'; there are: mass, length"),
        ("'m', struct('boom', struct('mass', 'x'))", "parameters.boom.mass must be a finite number"),
        ("'m', struct('boom', struct('mass', [1 2]))", "parameters.boom.mass must be a finite number"),
        ("'m', struct('boom', struct('mass', NaN))", "parameters.boom.mass must be a finite number"),
        ("'m', struct('boom', 3)", "parameters.boom must be a struct"),
        ("'m', 3", "parameters must be a struct"),
        ("'m', struct(), 'Bus'", "ports must be 'Flat' or 'Structured'"),
    ],
)
def test_wrong_parameters_are_refused_before_a_block_is_added(structured: Path, call: str, says: str) -> None:
    (found,) = octave(structured, f"try, add_four_bar({call}); catch e, disp(e.message); end")
    assert found.startswith(says)


def test_the_function_lists_all_variables_with_unit(structured: Path) -> None:
    """In the sections of their causality and in the order of ports; without Octave it is read as text."""
    text = (structured / "add_four_bar.m").read_text()
    sections = re.split(r"%   (Inputs|Outputs|Parameters).*:\n", text.partition("start = start_values()")[0])[1:]
    found = dict(zip(sections[::2], sections[1::2], strict=True))
    for title, variables in zip(("Inputs", "Outputs", "Parameters"), described(structured / "four-bar.fmu").values(),
                                strict=True):  # fmt: skip
        lines = found[title].splitlines()
        assert len(lines) == len(variables) > 0
        for line, (name, variable) in zip(lines, variables.items(), strict=True):
            unit = variable.find("Real").get("unit")
            tunable = "(tunable) " if variable.get("variability") == "tunable" else ""
            assert line == f"%     {name} [{unit}] {tunable}{variable.get('description')}"
            if title == "Parameters":
                assert f"\nstart.{name} = {start_of(variable)!r};\n" in text


def compiled(folder: Path, block: str, imported: str, settings: str = "") -> rumoca.Model:
    """Return a block of the package as Rumoca compiles it, with a block in place of what the tool imports.

    That block's outputs are its input times its first parameter, and the number of the output.
    """
    package = (folder / "four_bar.mo").read_text()
    variables = described(folder / "four-bar.fmu")
    names = {kind: [re.sub(r"\W", "_", name) for name in each] for kind, each in variables.items()}
    unit = [f"block {imported}", settings]
    unit += [f"parameter Real {name};" for name in names["parameter"]]
    unit += [f"Modelica.Blocks.Interfaces.RealInput {name};" for name in names["input"]]
    unit += [f"Modelica.Blocks.Interfaces.RealOutput {name};" for name in names["output"]]
    factor = f"{names['input'][0]} * {names['parameter'][1]}"
    unit += ["equation", *(f"{name} = {k} + {factor};" for k, name in enumerate(names["output"])), f"end {imported};"]
    driven = ["block Driven", f"{block} unit(boom_mass = 3.0); Real x(start = 0.0, fixed = true);", "equation"]
    driven += ["der(x) = 1.0;", f"unit.{names['input'][0]} = x;", "end Driven;"]
    source = "\n".join([MODELICA, *unit, package.removeprefix("within ;\n"), *driven])
    assert not [each for each in rumoca.validate_source(package) if each.level == "error"]
    session = rumoca.Session()
    run = session.loads(source, model="Driven").simulate(t=(0.0, 1.0), dt=0.5)
    for k, name in enumerate(names["output"]):
        np.testing.assert_allclose(run[f"unit.{name}"], [k, k + 1.5, k + 3.0], rtol=1e-9)
    return session.loads(source, model=block)


def check_interface(model: rumoca.Model, fmu: Path) -> None:
    """Check that all variables are there once with unit, bounds, start value and description."""
    kinds = {"input": model.inputs, "output": model.outputs, "parameter": model.parameters}
    for causality, variables in described(fmu).items():
        own = [each for each in kinds[causality].names if "." not in each]
        assert own == [re.sub(r"\W", "_", name) for name in variables]
        for name, variable in zip(own, variables.values(), strict=True):
            found, real = kinds[causality][name], variable.find("Real")
            assert found.unit == real.get("unit")
            assert found.description == variable.get("description")
            for bound, given in ((found.min, real.get("min")), (found.max, real.get("max"))):
                assert bound == (None if given is None else float(given))
            if causality == "parameter":
                assert found.value == start_of(variable)
    assert model.structure().is_balanced


def test_the_package_for_dymola_compiles(flat: Path) -> None:
    model = compiled(flat, "four_bar.InDymola", "four_bar_fmu", "parameter Real fmi_CommunicationStepSize;")
    check_interface(model, flat / "four-bar.fmu")
    assert "fmi_CommunicationStepSize = 0.002," in (flat / "four_bar.mo").read_text()


@needs_compiler
def test_the_package_for_openmodelica_compiles(tmp_path: Path) -> None:
    """Names with dots are as OpenModelica replaces them; a block for Dymola is not there."""
    model = mbsfmu.models.built_in("four-bar")
    mbsfmu.export(model, tmp_path, layout="monolithic", kind="me", wrapper=BOTH)
    check_interface(compiled(tmp_path, "four_bar.InOpenModelica", "four_bar_me_FMU"), tmp_path / "four-bar.fmu")
    assert "InDymola" not in (tmp_path / "four_bar.mo").read_text()
    function = (tmp_path / "add_four_bar.m").read_text()
    assert "'FMUMode', 'ModelExchange'" in function
    assert "FMUSampleTime" not in function


def variable(name: str, unit: str = "m", description: str = "") -> WrappedVariable:
    return WrappedVariable(name, unit, description, False, 1.0, None, None)


def fmu_of(*parameters: WrappedVariable, file: str = "m.fmu") -> WrappedFmu:
    return WrappedFmu(file, "m", "", True, True, True, 1e-3, (), (), parameters)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["valve.end"], "'valve.end' of m.fmu cannot be a parameter in MATLAB; export with naming flat"),
        (["q[1]"], r"'q\[1\]' of m.fmu cannot be a parameter in MATLAB; export with naming flat"),
        (["a.b", "a"], "m.fmu has 'a' and 'a.b', no struct both; export with naming flat"),
        (["x" * 56], "'x{56}' of m.fmu cannot be a parameter in Simulink, which takes names of at most 55 characters"),
    ],
)
def test_names_that_matlab_cannot_have_are_refused(names: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        wrappers.simulink_text(fmu_of(*map(variable, names)))
    wrappers.simulink_text(fmu_of(*map(variable, ["x" * 55, "a.b", "a.c"])))


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["when"], "'when' of m.fmu is a reserved word of Modelica; rename its part"),
        (["a.b", "a_b"], "'a.b' and 'a_b' of m.fmu would both be a_b in OpenModelica; export with naming flat"),
    ],
)
def test_names_that_modelica_cannot_have_are_refused(names: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        wrappers.modelica_text(fmu_of(*map(variable, names)))


def test_openmodelica_names_are_those_of_its_import() -> None:
    """Which replaces `.[] ,()` and nothing else."""
    text = wrappers.modelica_text(fmu_of(variable("a.q[1,2]"), variable("der(a)")))
    for name in ("a_q_1_2_", "der_a_"):
        assert f"parameter Real {name}(" in text


def test_ports_are_on_the_sides_of_the_block_and_start_where_the_fmu_does() -> None:
    """Two ports divide the height of 200 into halves, in whose middle they are."""
    inputs = (variable("u"), WrappedVariable("v", "V", "", False, None, -1.0, None))
    fmu = WrappedFmu("m.fmu", "m", "", True, True, True, 1e-3, inputs, (variable("y"),), ())
    lines = [line.strip() for line in wrappers.modelica_text(fmu).splitlines()]
    places = {
        'RealInput u(unit = "m", start = 1.0) ""': (-120, 40),
        'RealInput v(unit = "V", min = -1.0) ""': (-120, -60),
    }
    for port, (left, low) in {**places, 'RealOutput y(unit = "m", start = 1.0) ""': (100, -10)}.items():
        place = lines[lines.index(f"Modelica.Blocks.Interfaces.{port}") + 1]
        extent = f"{{{{{left}, {low}}}, {{{left + 20}, {low + 20}}}}}"
        assert place == f"annotation (Placement(transformation(extent = {extent})));"


def test_texts_and_the_name_of_the_imported_fmu_clash_with_nothing() -> None:
    text = wrappers.modelica_text(fmu_of(variable("fmu", description='of "A\\B"')))
    assert "m_fmu fmu_2(fmi_CommunicationStepSize = 0.001, fmu = fmu);" in text
    stub = MODELICA + "block m_fmu parameter Real fmu; parameter Real fmi_CommunicationStepSize; end m_fmu;\n"
    model = rumoca.Session().loads(stub + text.removeprefix("within ;\n"), model="m.InDymola")
    assert model.parameters["fmu"].description == 'of "A\\B"'


@pytest.mark.parametrize("stem", ["four-bar", "model", "Modelica", "2-links", "a" * 80, "_x", "end"])
def test_files_have_legal_names(stem: str) -> None:
    function = wrappers.simulink_file_name(stem).removesuffix(".m")
    package = wrappers.modelica_file_name(stem).removesuffix(".mo")
    for name in (function, package):
        assert re.fullmatch(r"[A-Za-z]\w*", name)
        assert name not in KEYWORDS
        assert len(name) <= 64
    assert len(function) <= 63
    assert package not in {"model", "Modelica"}
    text = wrappers.modelica_text(fmu_of(file=f"{stem}.fmu"))
    assert not [each for each in rumoca.validate_source(text) if each.level == "error"]
    assert flat_name(stem) in package


def test_wrong_choices_are_refused(tmp_path: Path) -> None:
    model = mbsfmu.models.built_in("pendulum-1")
    for chosen, says in (
        ({"wrapper": "matlab"}, "there is no wrapper 'matlab'; there are simulink, modelica"),
        ({"wrapper": ("simulnk",)}, "there is no wrapper 'simulnk'; did you mean 'simulink'"),
        ({"wrapper": "modelica"}, "the wrapper modelica needs kind me, which OpenModelica imports, or naming flat"),
        (
            {"wrapper": "simulink", "arrays": True, "fmi": 3},
            "wrappers have scalar variables; with arrays there are none",
        ),
    ):
        with pytest.raises(InputError, match=says):
            mbsfmu.export(model, tmp_path, **chosen)
    (tmp_path / "add_pendulum_1.m").write_text("mine")
    with pytest.raises(InputError, match=r"add_pendulum_1\.m exists; say --force"):
        mbsfmu.export(model, tmp_path, wrapper="simulink")
    assert [each.name for each in tmp_path.iterdir()] == ["add_pendulum_1.m"]
    mbsfmu.export(model, tmp_path, backend="python", wrapper="simulink", force=True)
    assert "function result = add_pendulum_1" in (tmp_path / "add_pendulum_1.m").read_text()


def test_two_wrappers_of_one_name_are_refused(tmp_path: Path) -> None:
    four_bar = mbsfmu.models.built_in("four-bar").to_dict()
    systems = four_bar["systems"]
    four_bar["name"] = "a-b"
    four_bar["systems"] = {"a_b": systems.pop("mechanism"), **systems}
    four_bar["connections"] = [[end.replace("mechanism.", "a_b.") for end in each] for each in four_bar["connections"]]
    model = mbsfmu.CoupledModel.from_dict(four_bar)
    with pytest.raises(InputError, match=r"the wrappers of a_b\.fmu and a-b\.fmu would both be add_a_b\.m"):
        mbsfmu.export(model, tmp_path, wrapper="simulink")
