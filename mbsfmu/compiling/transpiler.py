"""C of the restricted Python that steps are written in (`mbsfmu.stepping.language`): of one machine, or of lanes.

In lanes a function knows for which machines it goes on: `on`. Where machines answer a condition differently, both
branches run, each for its machines; those that return leave `on`, and a function ends when nobody is left.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any

REAL, MASK, INT, BOOL, FLOAT, TEXT, TABLE, NONE = "Real", "Mask", "int", "bool", "float", "Text", "Table", "None"
REALS = "Reals"
_OF_INTEGERS = {ctypes.c_int: "Ints", ctypes.c_ssize_t: "Places", ctypes.c_ubyte: "Flags"}
"""Kinds of arrays of integers, by their elements."""
_PASSING = {"Passing": REAL, "PassingReals": "Reals"}
_SHARED = (INT, BOOL, FLOAT)
_OPERATORS: dict[type[ast.operator], tuple[str, int]] = {
    ast.Add: ("+", 12),
    ast.Sub: ("-", 12),
    ast.Mult: ("*", 13),
    ast.Div: ("/", 13),
}
"""Operators in C, and how strongly they bind; and so in the following."""
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_ATOM, _UNARY, _PRODUCT, _COMPARISON, _BIT_AND, _BIT_OR, _AND, _OR, _CHOICE = 20, 14, 13, 10, 8, 6, 5, 4, 3
_FUNCTIONS = {
    "maximum": (REAL, "larger", "lanes_larger"),
    "minimum": (REAL, "smaller", "lanes_smaller"),
    "absolute": (REAL, "fabs", "lanes_fabs"),
    "root": (REAL, "sqrt", "lanes_sqrt"),
    "power": (REAL, "pow", "lanes_pow"),
    "is_finite": (MASK, "is_finite", "lanes_finite"),
}
"""Words of the language: what they give, and what they are in C of one machine and of lanes."""
_MACHINES = {"Machine": ("Instance", "Group")}
"""Protocols whose structures in C have other names."""
_ROW = "[]"
"""How the kind of an array of structures ends."""
_WIDTH = 140


class UntranslatableError(Exception):
    """Something that the language does not have, with its line."""

    def __init__(self, node: ast.AST, reason: str) -> None:
        super().__init__(f"line {getattr(node, 'lineno', 0)}: {reason}")


def _kind(annotation: ast.expr | None) -> str:
    """Return the kind that an annotation says."""
    match annotation:
        case None | ast.Constant(value=None):
            return NONE
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[ast.Name(id=name), _])):
            return name
        case ast.Name(id=name):
            return name
        case _:
            raise UntranslatableError(annotation, f"no kind of the language: {ast.unparse(annotation)}")


def _length(annotation: ast.expr) -> str | None:
    """Return the constant that says how many numbers an array has."""
    match annotation:
        case ast.Subscript(slice=ast.Tuple(elts=[_, ast.Constant(value=str(size))])):
            return size
        case _:
            return None


@dataclass(frozen=True)
class _Field:
    """A member of a class: its kind, whether it counts only while a machine goes on, how long it is, what it is."""

    kind: str
    passing: bool
    length: str | None
    note: str


def _is_marked(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "one_machine" for each in node.decorator_list)


def _is_of_steps(value: object, importer: ModuleType) -> bool:
    """Return whether it is a structure of another module of steps."""
    return isinstance(value, type) and is_dataclass(value) and value.__module__ != importer.__name__


def _class(of: type) -> ast.ClassDef:
    (node,) = ast.parse(inspect.getsource(of)).body
    assert isinstance(node, ast.ClassDef)
    return node


def structure_name(layout: type[ctypes.Structure]) -> str:
    """Return the name in C of a structure that Python fills: as there, without `Table`."""
    return layout.__name__.removesuffix("Table")


def _layouts(values: Iterable[object]) -> dict[str, type[ctypes.Structure]]:
    """Return the structures among some values by their names, with those that they hold."""
    found: dict[str, type[ctypes.Structure]] = {}
    for value in values:
        kind = getattr(value, "_type_", value)
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and kind.__name__ not in found:
            found |= {kind.__name__: kind, **_layouts(each[1] for each in kind._fields_)}
    return found


def _layout_kind(kind: Any) -> str | None:
    """Return the kind of a field of a structure that Python fills; None of what the language has no word for."""
    if isinstance(kind, type) and issubclass(kind, ctypes.Structure):
        return kind.__name__
    element = getattr(kind, "_type_", None)
    if isinstance(element, str):
        return REAL if kind is ctypes.c_double else INT
    if element is None or isinstance(kind, str):
        return None
    if element is ctypes.c_double:
        return REALS
    return _OF_INTEGERS.get(element) or f"{_layout_kind(element)}{_ROW}"


def _signature(function: FunctionType) -> ast.FunctionDef:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    return node


def _returns(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Return) for each in body for node in ast.walk(each))


class Source:
    """A module of steps.

    Parameters
    ----------
    module
        The module.
    constants
        Names in C of constants, by module and name in Python.
    """

    def __init__(self, module: ModuleType, constants: Mapping[tuple[str, str], str]) -> None:
        self.text = inspect.getsource(module)
        tree = ast.parse(self.text)
        places = {
            alias.name: (each.module or "", alias.name)
            for each in tree.body
            if isinstance(each, ast.ImportFrom)
            for alias in each.names
        }
        places |= {name: (module.__name__, name) for name in vars(module) if name not in places}
        self.macros = {name: constants[place] for name, place in places.items() if place in constants}
        self.shared_floats = {name for name in self.macros if isinstance(getattr(module, name), float)}
        self.documentation = ast.get_docstring(tree) or ""
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        self.protocols = {node.name: node for node in classes if any(ast.unparse(b) == "Protocol" for b in node.bases)}
        self.structures = {node.name: node for node in classes if node.name not in self.protocols}
        self.imported = {name: _class(value) for name, value in vars(module).items() if _is_of_steps(value, module)}
        self.layouts = _layouts(vars(module).values())
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.others = {name: value for name, value in vars(module).items() if isinstance(value, FunctionType)}
        self.methods = {
            node.name: node
            for each in self.protocols.values()
            for node in each.body
            if isinstance(node, ast.FunctionDef)
        }
        called = (self.functions | self.methods).items()
        self.of_one_machine = {name for name, node in called if _is_marked(node)}

    @cached_property
    def notes(self) -> dict[int, str]:
        """Comments by line."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        comments = (token for token in tokens if token.type == tokenize.COMMENT)
        return {token.start[0]: token.string[1:].strip() for token in comments}

    @cached_property
    def fields(self) -> dict[str, dict[str, _Field]]:
        """Members of classes."""
        classes = self.structures | self.protocols | self.imported
        filled = {
            name: {
                field: _Field(kind, passing=False, length=None, note="")
                for field, kind in ((field, _layout_kind(kind)) for field, kind, *_ in layout._fields_)
                if kind is not None
            }
            for name, layout in self.layouts.items()
        }
        return {name: dict(self._fields(node)) for name, node in classes.items()} | filled

    def _fields(self, node: ast.ClassDef) -> Iterator[tuple[str, _Field]]:
        for each in node.body:
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                kind = _kind(each.annotation)
                note = self.notes.get(each.lineno, "")
                own = _PASSING.get(kind, kind)
                yield each.target.id, _Field(own, kind in _PASSING, _length(each.annotation), note)

    def called(self, name: str) -> set[str]:
        """Return the names of what a function calls, itself among them."""
        if name not in self.functions:
            return {name}
        calls = [node.func for node in ast.walk(self.functions[name]) if isinstance(node, ast.Call)]
        names = {each.attr if isinstance(each, ast.Attribute) else ast.unparse(each) for each in calls}
        return {name}.union(*map(self.called, names - self.of_one_machine))

    def writes(self, name: str) -> bool:
        """Return whether a function changes what outlives it."""
        called = self.called(name)
        stored = (
            node
            for each in called & self.functions.keys()
            for node in ast.walk(self.functions[each])
            if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store)
        )
        return bool(called & self.methods.keys()) or any(True for _ in stored)

    def masked(self, name: str) -> bool:
        """Return whether a function has to know for which machines it is called."""
        return "anywhere" in self.called(name) or self.writes(name)

    def documentation_in_c(self) -> str:
        """Return what the module says of itself as a comment."""
        return _comment(self.documentation, "")

    def header(self, *, lanes: bool) -> str:
        """Return the structures."""
        written = [self.documentation_in_c()]
        for name in self.structures:
            rows = [self._member(key, each, lanes=lanes) for key, each in self.fields[name].items()]
            written.append("\n".join(["typedef struct {", *rows, f"}} {name};\n"]))
        return "\n".join(written)

    def _member(self, name: str, field: _Field, *, lanes: bool) -> str:
        size = f"[ROOM({field.length})]" if field.length else ""
        kind = self.type(REAL if field.length else field.kind, lanes=lanes)
        return f"    {kind}{name}{size};" + (f" /* {field.note} */" if field.note else "")

    def code(self, *, lanes: bool) -> str:
        """Return the functions; those of lanes leave out what one machine alone does.

        Raises
        ------
        UntranslatableError
            When the language does not have something that is in them.
        """
        left_out = self.of_one_machine if lanes else set[str]()
        written = (_Function(self, node, lanes) for name, node in self.functions.items() if name not in left_out)
        return "\n".join(each.code() for each in written)

    def type(self, kind: str, *, lanes: bool) -> str:
        """Return the type in C of a kind, to be followed by a name."""
        if kind in self.layouts:
            return f"struct {structure_name(self.layouts[kind])} *"
        if kind in self.fields:
            return f"{_MACHINES.get(kind, (kind, kind))[lanes]} *"
        own = {REAL: "Lanes ", MASK: "Mask "} if lanes else {REAL: "double ", MASK: "int "}
        arrays = {"Reals": f"{own[REAL]}*", "Any": f"{own[REAL]}*", TABLE: "const double *", TEXT: "const char *"}
        arrays |= {"Ints": "int *", "Places": "ptrdiff_t *", "Flags": "unsigned char *"}
        return {**own, **arrays, INT: "int ", BOOL: "int ", FLOAT: "double ", NONE: "void "}[kind]


def _comment(text: str, indent: str) -> str:
    """Return a docstring as a comment."""
    paragraphs = text.replace("`", "").strip().split("\n\n")
    lines = [line for each in paragraphs for line in textwrap.wrap(" ".join(each.split()), _WIDTH - len(indent) - 6)]
    return f"{indent}/* " + f"\n{indent} * ".join(lines) + " */\n" if text else ""


@dataclass(frozen=True)
class _Term:
    """An expression in C, its kind, and how strongly its outermost operator binds."""

    text: str
    kind: str
    rank: int = _ATOM

    def within(self, rank: int) -> str:
        """Return it as an operand of an operator that binds so strongly."""
        return f"({self.text})" if self.rank < rank else self.text


class _Function:
    """A function in C.

    Attributes
    ----------
    under
        Under how many conditions a statement stands that machines answer differently.
    on
        Name of the mask of machines that go on.
    """

    def __init__(self, source: Source, node: ast.FunctionDef, lanes: bool) -> None:
        self.source, self.node, self.lanes = source, node, lanes
        self.kinds = {each.arg: self._kind(each.annotation) for each in node.args.args}
        self.passing = {each.arg for each in node.args.args if each.annotation and _kind(each.annotation) in _PASSING}
        self.result = self._kind(node.returns)
        self.leaves = _returns(node.body[:-1])
        self.depth: dict[str, int] = {}
        self.lines: list[str] = []
        self.under = self.masks = 0
        self.indent, self.on = 1, "on"

    def code(self) -> str:
        """Return the function."""
        masked = self.lanes and self.source.masked(self.node.name)
        given = {name: f"{self._type(kind)}{name}" for name, kind in self.kinds.items()}
        if masked:
            given["active"] = "Mask active"
        if masked and not self.leaves:
            self.on = "active"
        for each in self.node.body:
            self._statement(each)
        if self.lanes and self.leaves:
            gone = ", gone = NOWHERE" if any("gone" in line for line in self.lines) else ""
            begin = [f"    Mask on = {'active' if masked else 'EVERYWHERE'}{gone};"]
            self.lines = [*begin, f"    {self._type(self.result)}result = {{0}};", *self.lines]
        body = "\n".join(self.lines)
        unused = [f"    (void){name};" for name in given if not re.search(rf"\b{name}\b", body)]
        head = f"static {self._type(self.result)}{self.node.name}({', '.join(given.values())}) {{"
        return "\n".join([_comment(ast.get_docstring(self.node) or "", "") + head, *unused, body, "}", ""])

    def _kind(self, annotation: ast.expr | None) -> str:
        kind = _kind(annotation)
        return _PASSING.get(kind, kind)

    def _type(self, kind: str) -> str:
        return self.source.type(kind, lanes=self.lanes)

    def _say(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    # -- expressions --------------------------------------------------------------------------------------------------

    def _real(self, node: ast.expr, rank: int = 0) -> str:
        term = self._expression(node)
        if self.lanes and term.kind != REAL:
            return f"splat({term.text})"
        return term.within(rank)

    def _mask(self, node: ast.expr, rank: int = 0) -> str:
        term = self._expression(node)
        if self.lanes and term.kind != MASK:
            return {"1": "EVERYWHERE", "0": "NOWHERE"}.get(term.text, f"where_all({term.text})")
        return term.within(rank)

    def _shared(self, node: ast.expr, rank: int = 0) -> str:
        term = self._expression(node)
        if self.lanes and term.kind in (REAL, MASK):
            raise UntranslatableError(node, f"{ast.unparse(node)} differs between machines")
        return term.within(rank)

    def _given(self, node: ast.expr, kind: str) -> str:
        """Return a value of a kind."""
        if kind in (REAL, MASK):
            return self._real(node) if kind == REAL else self._mask(node)
        text = self._shared(node)
        is_pointer = text.isidentifier() or isinstance(node, ast.Call)
        return text if is_pointer or kind not in self.source.layouts else f"&{text}"

    def _expression(self, node: ast.expr) -> _Term:  # noqa: PLR0912 - a case for each
        match node:
            case ast.Constant(value=bool(value)):
                return _Term(str(int(value)), BOOL)
            case ast.Constant(value=str(value)):
                return _Term('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"', TEXT)
            case ast.Constant(value=int(value) | float(value)):
                return _Term(repr(value), INT if isinstance(value, int) else FLOAT)
            case ast.Attribute(value=ast.Name(id="math"), attr="inf"):
                return _Term("HUGE_VAL", FLOAT)
            case ast.Attribute(value=of, attr=name):
                return self._member(node, self._expression(of), name)
            case ast.Name(id=name) if name in self.kinds:
                return _Term(name, self.kinds[name])
            case ast.Name(id=name) if name in self.source.macros:
                return _Term(self.source.macros[name], FLOAT if name in self.source.shared_floats else INT)
            case ast.Subscript(value=of, slice=at) if not isinstance(at, ast.Slice):
                array = self._expression(of)
                of_arrays = {REALS: REAL, TABLE: FLOAT, **dict.fromkeys(_OF_INTEGERS.values(), INT)}
                kind = of_arrays.get(array.kind) or array.kind.removesuffix(_ROW)
                return _Term(f"{array.text}[{self._shared(at)}]", kind)
            case ast.UnaryOp(op=ast.USub(), operand=of):
                term = self._expression(of)
                return _Term(f"-{term.within(_UNARY)}", term.kind, _UNARY)
            case ast.UnaryOp(op=ast.Not(), operand=of):
                return self._negated(of)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                sign, rank = _OPERATORS[type(operator)]
                one, other = self._expression(left), self._expression(right)
                kinds = {one.kind, other.kind}
                if kinds == {INT} and sign == "/":
                    raise UntranslatableError(node, "whole numbers are divided otherwise in C")
                kind = REAL if REAL in kinds else FLOAT if FLOAT in kinds else INT
                return _Term(f"{one.within(rank)} {sign} {other.within(rank + 1)}", kind, rank)
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARISONS:
                one, other = self._expression(left), self._expression(right)
                text = f"{one.within(_COMPARISON + 1)} {_COMPARISONS[type(operator)]} {other.within(_COMPARISON + 1)}"
                return _Term(text, MASK if REAL in (one.kind, other.kind) else BOOL, _COMPARISON)
            case ast.BoolOp(op=operator, values=values):
                return self._joined(isinstance(operator, ast.And), values)
            case ast.IfExp(test=test, body=one, orelse=other):
                if self.lanes:
                    self._check_without_effect(node)
                kinds = {self._expression(one).kind, self._expression(other).kind}
                kind = REAL if REAL in kinds else FLOAT if FLOAT in kinds else kinds.pop()
                choices = f"{self._given(one, kind)} : {self._given(other, kind)}"
                return _Term(f"{self._shared(test, _OR)} ? {choices}", kind, _CHOICE)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(node, name, arguments)
            case ast.Call(func=ast.Attribute(value=of, attr=name), args=arguments, keywords=[]):
                return self._call(node, name, [of, *arguments])
            case _:
                raise UntranslatableError(node, f"not in the language: {ast.unparse(node)}")

    def _member(self, node: ast.expr, owner: _Term, name: str) -> _Term:
        field = self.source.fields.get(owner.kind, {}).get(name)
        if field is None:
            raise UntranslatableError(node, f"{ast.unparse(node)} is not declared")
        if owner.kind in self.source.protocols and (name.isupper() or field.kind in (INT, FLOAT, TABLE)):
            return _Term(name, field.kind)  # constants of a machine's code
        joint = "->" if owner.text.isidentifier() else "."
        return _Term(f"{owner.text}{joint}{name}", field.kind)

    def _negated(self, of: ast.expr) -> _Term:
        if isinstance(of, ast.UnaryOp) and isinstance(of.op, ast.Not):
            return self._expression(of.operand)
        term = self._expression(of)
        sign = "~" if self.lanes and term.kind == MASK else "!"
        return _Term(f"{sign}{term.within(_UNARY)}", term.kind, _UNARY)

    def _joined(self, both: bool, values: list[ast.expr]) -> _Term:
        kinds = [self._expression(each).kind for each in values]
        kind = MASK if MASK in kinds else BOOL
        for each in values[1:] if self.lanes else ():
            self._check_without_effect(each)
        if self.lanes and kind == MASK:
            sign, rank = ("&", _BIT_AND) if both else ("|", _BIT_OR)
            return _Term(f" {sign} ".join(self._mask(each, _COMPARISON + 1) for each in values), MASK, rank)
        sign, rank = ("&&", _AND) if both else ("||", _OR)
        inner = _AND if both else _AND + 1  # compilers ask for brackets about "and" in "or"
        return _Term(f" {sign} ".join(self._expression(each).within(inner) for each in values), kind, rank)

    def _check_without_effect(self, node: ast.expr) -> None:
        """Check that it may be evaluated where it does not count, as lanes do."""
        for each in ast.walk(node):
            if isinstance(each, ast.Call):
                name = each.func.attr if isinstance(each.func, ast.Attribute) else ast.unparse(each.func)
                if self.source.writes(name):
                    raise UntranslatableError(each, f"{name} changes something, and is called under a condition")

    def _call(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> _Term:
        match name, arguments:
            case "tail", [numbers, first]:
                return _Term(f"{self._shared(numbers)} + {self._shared(first, _PRODUCT)}", REALS, _PRODUCT - 1)
            case "float", [number]:
                return _Term(f"(double){self._shared(number, _UNARY)}", REAL, _UNARY)
            case _:
                return self._word(node, name, arguments) or self._call_of_function(node, name, arguments)

    def _word(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> _Term | None:
        """Return a word of the language; None of what is none."""
        if name == "where":
            mask, one, other = arguments
            if self.lanes and self._expression(mask).kind == MASK:
                return _Term(f"select_lanes({self._mask(mask)}, {self._real(one)}, {self._real(other)})", REAL)
            choices = f"{self._real(one, _OR)} : {self._real(other, _CHOICE)}"
            return _Term(f"{self._expression(mask).within(_OR)} ? {choices}", REAL, _CHOICE)
        if name == "anywhere":
            term = self._expression(arguments[0])
            return _Term(f"any({self.on} & {self._mask(arguments[0], _COMPARISON + 1)})", BOOL) if self.lanes else term
        if name == "divided":
            return self._expression(ast.copy_location(ast.BinOp(arguments[0], ast.Div(), arguments[1]), node))
        if name == "add_columns":
            if self.lanes and self.under:
                raise UntranslatableError(node, "machines differ here")
            texts = ", ".join(self._shared(each) for each in arguments)
            return _Term(f"{'add_lane_columns' if self.lanes else name}({texts})", NONE)
        if name in _FUNCTIONS:
            kind, one, several = _FUNCTIONS[name]
            return _Term(f"{several if self.lanes else one}({', '.join(map(self._real, arguments))})", kind)
        return None

    def _call_of_function(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> _Term:
        called = self.source.functions.get(name) or self.source.methods.get(name)
        if called is None and name in self.source.others:
            called = _signature(self.source.others[name])
        if called is None:
            raise UntranslatableError(node, f"{name} is not in the language")
        if name in self.source.of_one_machine and self.lanes:
            raise UntranslatableError(node, f"{name} is of one machine: its result may not count")
        expected = [each for each in called.args.args if each.arg != "self"]
        first = int(name in self.source.methods)
        texts = [self._shared(each) for each in arguments[:first]]
        for each, value in zip(expected, arguments[first:], strict=False):
            texts.append(self._given(value, self._kind(each.annotation)))
        texts += [self._expression(each).text for each in arguments[first + len(expected) :]]
        if len(texts) < first + len(expected):
            raise UntranslatableError(node, f"{name} takes {len(expected)} arguments")
        if self.lanes and self.source.masked(name):
            texts.append(self.on)
        return _Term(f"{name}({', '.join(texts)})", self._kind(called.returns))

    # -- statements ---------------------------------------------------------------------------------------------------

    def _statement(self, node: ast.stmt) -> None:  # noqa: PLR0912 - a case for each
        note = self.source.notes.get(node.lineno - 1)
        if note and self.lines and self.source.text.splitlines()[node.lineno - 2].lstrip().startswith("#"):
            self._say(f"/* {note} */")
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                return
            case ast.Expr(value=ast.Call() as call):
                if not self._is_silent(node):
                    self._say(f"{self._expression(call).text};")
            case ast.AnnAssign(
                target=ast.Name(id=name), value=ast.Call(func=ast.Name(id="zeros"), args=[ast.Constant(value=count)])
            ):
                self._say(f"double {name}[{count}] = {{0}};")
                self.kinds[name] = REALS
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
                kind = self._kind(annotation)
                self.depth[name] = self.under
                self._say(f"{self._type(kind)}{name} = {self._given(value, kind)};")
                self.kinds[name] = kind
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value)
            case ast.AugAssign(target=target, op=operator, value=value) if type(operator) in _OPERATORS:
                place = self._expression(target)
                if self.lanes and place.kind == REAL and not self._for_all(target):
                    self._assign(target, ast.copy_location(ast.BinOp(target, operator, value), node))
                else:
                    self._check_shared(target, place)
                    self._say(f"{place.text} {_OPERATORS[type(operator)][0]}= {self._expression(value).text};")
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[*first, last])):
                self.kinds[name] = INT
                begin, end = (self._shared(first[0]) if first else "0"), self._shared(last, _COMPARISON + 1)
                self._block(f"for (int {name} = {begin}; {name} < {end}; {name}++)", node.body)
                self._say("}")
            case ast.While(test=ast.Constant(value=True), orelse=[]):
                self._block("for (;;)", node.body)
                self._say("}")
            case ast.While(test=test, orelse=[]):
                self._block(f"while ({self._shared(test)})", node.body)
                self._say("}")
            case ast.Continue():
                if self.lanes and self.under:
                    raise UntranslatableError(node, "machines differ here")
                self._say("continue;")
            case ast.If(test=test):
                self._conditional(node, test)
            case ast.Return(value=value):
                self._leave(node, value)
            case _:
                raise UntranslatableError(node, f"not in the language: {ast.unparse(node)}")

    def _check_shared(self, target: ast.expr, place: _Term) -> None:
        if self.lanes and self.under and place.kind in _SHARED:
            raise UntranslatableError(target, f"{ast.unparse(target)} is shared, and machines differ here")

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        place = self._expression(target)
        self._check_shared(target, place)
        if not self.lanes or place.kind in _SHARED or self._for_all(target):
            self._say(f"{place.text} = {self._given(value, place.kind)};")
        elif place.kind == REAL:
            self._say(f"{place.text} = select_lanes({self.on}, {self._real(value)}, {place.text});")
        else:
            within = f"({self.on} & {self._mask(value, _COMPARISON + 1)})"
            self._say(f"{place.text} = {within} | (~{self.on} & {place.text});")

    def _for_all(self, target: ast.expr) -> bool:
        """Return whether it may be written for all machines, as what is `Passing`, and local names of theirs."""
        match target:
            case ast.Name(id=name):
                return self.depth.get(name) == self.under
            case ast.Subscript(value=ast.Name(id=name)):
                return not self.under and name in self.passing
            case ast.Attribute(value=of, attr=name) | ast.Subscript(value=ast.Attribute(value=of, attr=name)):
                return not self.under and self.source.fields[self._expression(of).kind][name].passing
            case _:
                raise UntranslatableError(target, f"not in the language: {ast.unparse(target)}")

    def _is_silent(self, node: ast.stmt) -> bool:
        """Return whether lanes leave it out."""
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
                return self.lanes and name in self.source.of_one_machine
            case _:
                return False

    def _block(self, head: str, body: list[ast.stmt], on: str | None = None) -> None:
        self._say(f"{head} {{")
        self.indent += 1
        before, self.on = self.on, on or self.on
        self.under += on is not None
        for each in body:
            self._statement(each)
        self.under -= on is not None
        self.on = before
        self.indent -= 1

    def _conditional(self, node: ast.If, test: ast.expr) -> None:
        heard = [ast.unparse(each) for each in node.body if not self._is_silent(each)]
        refused = heard == ["return False"]
        if not heard and not node.orelse:
            self._check_without_effect(test)
            return
        if not (self.lanes and self._expression(test).kind == MASK):
            self._branches(node, test)
        elif refused and not self.under and not node.orelse:
            negated = ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
            self._say(f"on &= {self._mask(negated, _COMPARISON + 1)};")
            self._end_where_nobody_is_left()
            return
        else:
            self.masks += 1
            name = f"on_{self.masks}"
            self._say(f"const Mask {name} = {self.on} & {self._mask(test, _COMPARISON + 1)};")
            self._block(f"if (any({name}))", node.body, name)
            self._say("}")
            if node.orelse:
                self._say(f"const Mask not_{name} = {self.on} & ~{name};")
                self._block(f"if (any(not_{name}))", node.orelse, f"not_{name}")
                self._say("}")
        leaves = _returns(node.body + node.orelse) and not isinstance(node.body[-1], ast.Continue)
        if self.lanes and not self.under and leaves:
            self._say("on &= ~gone;")
            self._end_where_nobody_is_left()

    def _branches(self, node: ast.If, test: ast.expr) -> None:
        """Write a condition that all machines answer alike."""
        self._block(f"if ({self._expression(test).text})", node.body)
        match node.orelse:
            case [ast.If(test=other) as inner]:
                first = len(self.lines)
                self._branches(inner, other)
                self.lines[first] = "    " * self.indent + f"}} else {self.lines[first].lstrip()}"
                return
            case []:
                pass
            case rest:
                self._block("} else", rest)
        self._say("}")

    def _end_where_nobody_is_left(self) -> None:
        self._say(f"if (!any(on)) return{'' if self.result == NONE else ' result'};")

    def _leave(self, node: ast.stmt, value: ast.expr | None) -> None:
        if not self.lanes or not self.leaves:
            self._say(f"return {self._given(value, self.result)};" if value else "return;")
            return
        if value is None:
            raise UntranslatableError(node, "lanes return a number or a truth")
        if self.result == REAL:
            self._say(f"result = select_lanes({self.on}, {self._real(value)}, result);")
        elif (text := self._mask(value, _COMPARISON + 1)) != "NOWHERE":
            self._say(f"result |= {self.on};" if text == "EVERYWHERE" else f"result |= {self.on} & {text};")
        self._say(f"gone |= {self.on};" if self.indent > 1 else "return result;")
