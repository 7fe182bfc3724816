"""Translation of the formula of a triplet loss, written in PyTorch, to source code of its value and derivatives.

The formula is evaluated once on symbols instead of tensors. Each operation appends one line of code, and reverse-mode
differentiation of these lines gives the derivatives. A GPU kernel therefore needs no second definition of a formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from dmlcore.geometry import Triplet

EDGES = ("ap", "an", "pn")
VARIABLES = (*EDGES, "aa", "pp", "nn")

# For each operation: the code of its value, and the code of the term that it adds to the adjoint of each operand.
# {0}, {1}, {2} are the operands, {y} is the value and {g} the adjoint of the value. An empty string adds no term.
# `softplus` and `logaddexp` are defined in `dmlcore.kernels`.
OPERATIONS: dict[str, tuple[str, ...]] = {
    "add": ("{0} + {1}", "{g}", "{g}"),
    "sub": ("{0} - {1}", "{g}", "-{g}"),
    "mul": ("{0} * {1}", "{g} * {1}", "{g} * {0}"),
    "div": ("{0} / {1}", "{g} / {1}", "-{g} * {y} / {1}"),
    "neg": ("-{0}", "-{g}"),
    "square": ("{0} * {0}", "2.0 * {g} * {0}"),
    "sqrt": ("tl.sqrt({0})", "0.5 * {g} / {y}"),
    "reciprocal": ("1.0 / {0}", "-{g} * {y} * {y}"),
    "exp": ("tl.exp({0})", "{g} * {y}"),
    "log": ("tl.log({0})", "{g} / {0}"),
    "sigmoid": ("tl.sigmoid({0})", "{g} * {y} * (1.0 - {y})"),
    "softplus": ("softplus({0})", "{g} * tl.sigmoid({0})"),
    "logaddexp": ("logaddexp({0}, {1})", "{g} * tl.sigmoid({0} - {1})", "{g} * tl.sigmoid({1} - {0})"),
    "abs": ("tl.abs({0})", "tl.where({0} > 0, {g}, tl.where({0} < 0, -{g}, 0.0))"),
    "relu": ("tl.where({0} <= 0, 0.0, {0})", "tl.where({0} > 0, {g}, 0.0)"),
    "maximum": ("tl.where({0} > {1}, {0}, {1})", "tl.where({0} > {1}, {g}, 0.0)", "tl.where({0} > {1}, 0.0, {g})"),
    "minimum": ("tl.where({0} < {1}, {0}, {1})", "tl.where({0} < {1}, {g}, 0.0)", "tl.where({0} < {1}, 0.0, {g})"),
    "where": ("tl.where({0}, {1}, {2})", "", "tl.where({0}, {g}, 0.0)", "tl.where({0}, 0.0, {g})"),
    "le": ("{0} <= {1}", "", ""),
    "lt": ("{0} < {1}", "", ""),
    "ge": ("{0} >= {1}", "", ""),
    "gt": ("{0} > {1}", "", ""),
}


class Untranslatable(Exception):
    """A formula uses an operation that `OPERATIONS` does not contain."""


class Symbol:
    """Variable of generated code, which takes the place of a float32 tensor while a formula is evaluated."""

    dtype = torch.float32

    def __init__(self, code: Code, name: str) -> None:
        self.code, self.name = code, name

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        """Record a function of PyTorch that is called with a symbol."""
        symbol = next(x for x in arguments if isinstance(x, Symbol))
        return symbol.code.record(function.__name__, arguments, options or {})

    def __getattr__(self, name: str) -> Callable[..., Symbol]:
        """Return a method of tensors that records an operation."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **options: self.code.record(name, (self, *arguments), options)

    def __bool__(self) -> bool:
        raise Untranslatable("a condition on the values of a tensor")


def _method(operation: str, *, swapped: bool = False) -> Any:
    def method(self: Symbol, *other: Any) -> Symbol:
        return self.code.record(operation, (*other, self) if swapped else (self, *other), {})

    return method


for _name, _operation in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"), ("pow", "pow")):
    setattr(Symbol, f"__{_name}__", _method(_operation))
    setattr(Symbol, f"__r{_name}__", _method(_operation, swapped=True))
for _name in ("neg", "abs", "le", "lt", "ge", "gt"):
    setattr(Symbol, f"__{_name}__", _method(_name))


class Code:
    """Straight-line code of a formula: one line per operation."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []  # variable, rule of OPERATIONS, operands

    def record(self, operation: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Symbol:
        """Append one operation and return the variable that holds its value.

        Raises:
            Untranslatable: If `OPERATIONS` has no such operation, or if it has arguments that are not supported.
        """
        if operation in ("pow", "clamp"):
            return self._rewrite(operation, *arguments, **options)
        rule = OPERATIONS.get(operation)
        if operation == "softplus":  # only the switch to the identity for large arguments may differ
            options = {k: v for k, v in options.items() if k not in ("threshold",) and (k, v) != ("beta", 1)}
        if rule is None or options or len(arguments) != len(rule) - 1:
            raise Untranslatable(f"{operation} with {len(arguments)} arguments {options or ''}")
        name = f"v{len(self.lines)}"
        self.lines.append((name, rule, tuple(_operand(x) for x in arguments)))
        return Symbol(self, name)

    def _rewrite(self, operation: str, x: Any, *arguments: Any, **options: Any) -> Symbol:
        """Express a power with a constant exponent, or a clamp, by the operations of `OPERATIONS`."""
        if operation == "clamp":
            low, high = (
                options.get(key, arguments[i] if i < len(arguments) else None) for i, key in enumerate(("min", "max"))
            )
            x = x if low is None else self.record("maximum", (x, low), {})
            return x if high is None else self.record("minimum", (x, high), {})
        q = arguments[0] if arguments else options.get("exponent")
        if not isinstance(x, Symbol) or not isinstance(q, int | float):
            raise Untranslatable("a power whose exponent is not a number")
        simple = {0.5: "sqrt", 2: "square", -1: "reciprocal"}
        if q == 1:
            return x
        if q in simple:
            return self.record(simple[q], (x,), {})
        name = f"v{len(self.lines)}"
        self.lines.append((name, (_power(q), f"{q!r} * {{g}} * {_power(q - 1)}"), (x.name,)))
        return Symbol(self, name)

    def derivatives(self, result: Symbol) -> tuple[list[str], dict[str, str]]:
        """Return the lines that compute the derivatives of `result`, and the variable that holds each of them."""
        terms: dict[str, list[str]] = {result.name: ["1.0"]}
        lines, variables = [], {}
        for name, rule, operands in reversed(self.lines):
            if name not in terms:
                continue
            adjoint = f"g_{name}"
            lines.append(f"{adjoint} = {' + '.join(terms.pop(name))}")
            for operand, term in zip(operands, rule[1:], strict=True):
                if term and operand.isidentifier():
                    terms.setdefault(operand, []).append(f"({term.format(*operands, y=name, g=adjoint)})")
        for name, added in terms.items():
            variables[name] = f"g_{name}"
            lines.append(f"g_{name} = {' + '.join(added)}")
        return lines, variables


def _operand(x: Any) -> str:
    if isinstance(x, Symbol):
        return x.name
    if isinstance(x, torch.Tensor) and x.ndim == 0:
        x = float(x)
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise Untranslatable(f"an operand of type {type(x).__name__}")
    return f"({float(x)!r})" if math.isfinite(x) else f'float("{x}")'


def _power(q: float) -> str:
    """Return the code of {0} to the power q."""
    if q == 0:
        return "1.0"
    if q == int(q) and abs(q) <= 8:
        product = "(" + " * ".join(["{0}"] * int(abs(q))) + ")"
        return product if q > 0 else f"(1.0 / {product})"
    return f"tl.exp2({q!r} * tl.log2({{0}}))"


def energy_source(core: Callable[..., Any], own: dict[str, Any], floor: float) -> tuple[str, frozenset[str]]:
    """Return the source code of a function of the six numbers of a triplet, and the numbers that it reads.

    The function `energy(ap, an, pn, aa, pp, nn)` returns the value of the formula and its six derivatives, in this
    order. Derivatives with respect to numbers that the formula does not read are 0.

    Args:
        core: Formula as a function of a `Triplet` and hyper-parameters.
        own: Hyper-parameters of the formula.
        floor: Distance below which diverging forces are frozen, see `Triplet`.

    Raises:
        Untranslatable: If the formula uses an operation that cannot be translated.
    """
    code, read = Code(), set()

    def take(name: str) -> Any:
        read.add(name)
        return Symbol(code, name)

    value = core(Triplet(take, lambda vertex: take(2 * vertex), floor), **own)
    if not isinstance(value, Symbol):
        raise Untranslatable("a formula that does not depend on the triplet")
    lines, variables = code.derivatives(value)
    body = [f"{name} = {rule[0].format(*operands)}" for name, rule, operands in code.lines] + lines
    results = ", ".join([value.name, *(variables.get(name, "0.0") for name in VARIABLES)])
    source = "\n    ".join([f"def energy({', '.join(VARIABLES)}):", *body, f"return {results}"]) + "\n"
    return source, frozenset(read)
