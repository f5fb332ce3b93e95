"""One traced function as C, in pieces that compilers can digest.

The time that compilers need for a function grows faster than its length. A long one is therefore cut into several that
hand over what they still need in an array.
"""

from __future__ import annotations

import re

import casadi as ca

from mbsfmu.formulations.workspace import TracedFunction

_BODY = re.compile(r"static int casadi_f0\([^)]*\) \{\n(.*?)  return 0;\n\}", re.DOTALL)
_ARGUMENT = re.compile(r"arg\[(\d+)\]\? arg\[\d+\]\[(\d+)\] : 0")
_RESULT = re.compile(r"if \(res\[(\d+)\]!=0\) res\[\d+\]\[(\d+)\]=")
_HELPER = re.compile(r"^casadi_real (casadi_\w+)\(.*?\) \{.*?\}$", re.DOTALL | re.MULTILINE)
_WORDS = {
    "casadi_real": "double",
    "casadi_fmax(": "larger(",
    "casadi_fmin(": "smaller(",
    "casadi_nan": "NAN",
    "casadi_inf": "INFINITY",
}
"""What is called otherwise here than in CasADi's C."""
_LOCAL = re.compile(r"\ba\d+\b")
_DECLARATION = re.compile(r"^  double a\d+[^=]*;$")
_LONG = 5000  # statements from which on a function is cut
_PIECE = 400  # statements


def traced_code(traced: TracedFunction, helpers: dict[str, str], prefix: str = "") -> str:
    """Write a traced function; CasADi's C is used with the arguments' names instead of its pointers to pointers.

    Parameters
    ----------
    traced
        The function.
    helpers
        Gets the functions of CasADi that it calls.
    prefix
        Of its name.
    """
    generator = ca.CodeGenerator("unit", {"casadi_int": "int", "with_header": False})
    generator.add(traced.function)
    code = generator.dump()
    match = _BODY.search(code)
    assert match is not None, traced.function.name()
    names = traced.function.name_in()
    own = traced.function.n_out() - len(traced.into)
    targets = [*(f"result_{index}" for index in range(own)), *(f"p->{part}" for part in traced.into)]
    body = _ARGUMENT.sub(lambda found: f"p->{names[int(found[1])]}[{found[2]}]", match[1])
    body = _RESULT.sub(lambda found: f"{targets[int(found[1])]}[{found[2]}]=", body)
    for word, own_word in _WORDS.items():
        body = body.replace(word, own_word)
    for found in _HELPER.finditer(code):
        if f"{found[1]}(" in body:
            helpers[found[1]] = "static " + found[0].replace("casadi_real", "double")
    unused = [name for name in ("p", *targets[:own]) if not re.search(rf"\b{name}\b", body)]
    ignored = "".join(f"  (void){name};\n" for name in unused)
    name, arguments = f"{prefix}{traced.function.name()}", ["p", *targets[:own]]
    if body.count("\n") > _LONG:
        return _in_pieces(name, arguments, body, ignored)
    return f"static void {name}({_declared(arguments)}) {{\n{ignored}{body}}}"


def _in_pieces(name: str, arguments: list[str], body: str, ignored: str) -> str:
    """Write a function as a sequence of functions that share what is still needed of their local variables."""
    lines = [line for line in body.splitlines() if not _DECLARATION.match(line)]
    pieces = [lines[start : start + _PIECE] for start in range(0, len(lines), _PIECE)]
    needed: list[set[str]] = [set()]  # before each piece, from the last to the first
    for piece in reversed(pieces):
        needed.append(_needed(piece, needed[-1]))
    needed.reverse()
    shared = sorted(set().union(*needed))
    place = {variable: index for index, variable in enumerate(shared)}
    functions, calls = [], []
    for number, piece in enumerate(pieces):
        before, after = needed[number], needed[number + 1]
        used = {variable for line in piece for variable in _LOCAL.findall(line)}
        changed = {line.split("=")[0].strip() for line in piece}
        declared = [f"{each} = w[{place[each]}]" if each in before else each for each in sorted(used)]
        stored = [f"  w[{place[each]}] = {each};" for each in sorted(after & changed)]
        own = [each for each in arguments if any(re.search(rf"\b{each}\b", line) for line in piece)]
        idle = "".join(f"  (void){each};\n" for each in ["w"] if not stored and not (before & used))
        text = "\n".join([f"  double {', '.join(declared)};" if declared else "", *piece, *stored])
        functions.append(f"static PIECE void {name}_{number}({_declared([*own, 'w'])}) {{\n{idle}{text}\n}}\n")
        calls.append(f"  {name}_{number}({', '.join([*own, 'w'])});\n")
    whole = f"static void {name}({_declared(arguments)}) {{\n{ignored}  double w[{max(len(shared), 1)}];\n"
    return "\n".join(functions) + whole + "".join(calls) + "}"


def _needed(piece: list[str], after: set[str]) -> set[str]:
    """Return the variables that must have their values before a piece."""
    needed = set(after)
    for line in reversed(piece):
        target, _, value = line.partition("=")
        needed.discard(target.strip())
        needed.update(_LOCAL.findall(value))
        if not _LOCAL.fullmatch(target.strip()):
            needed.update(_LOCAL.findall(target))
    return needed


def _declared(arguments: list[str]) -> str:
    return ", ".join("const Parts *p" if argument == "p" else f"double *{argument}" for argument in arguments)
