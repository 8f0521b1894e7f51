"""Kernels as expressions in C."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon.kernels import (
    Cauchy,
    Constant,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Product,
    Scaled,
    Sum,
)

Array = NDArray[np.float64]


def numbers(values: Any, single: bool) -> str:
    """Return numbers as C writes them, a few on each line."""
    suffix, digits = ("f", 9) if single else ("", 17)
    if single:
        # Rounded here: a compiler may round decimals to a neighbour.
        values = np.asarray(values, dtype=np.float32)
    texts = [number(value, suffix, digits) for value in np.ravel(values)]
    rows = [", ".join(texts[i : i + 6]) for i in range(0, len(texts), 6)]
    return ",\n  ".join(rows) if rows else "0"


def number(value: float, suffix: str, digits: int = 17) -> str:
    """Return one number as a literal of C."""
    if np.isinf(value):
        return "(-HUGE_VAL)" if value < 0 else "HUGE_VAL"
    text = f"{float(value):.{digits}g}"
    return text + ("" if "." in text or "e" in text else ".0") + suffix


@dataclass
class KernelCode:
    """The functions and tables that a kernel needs, gathered as its expression is written."""

    name: str
    features: int
    single: bool
    tables: list[str] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)

    @property
    def suffix(self) -> str:
        """What marks a literal and a function of the mathematics library as single precision."""
        return "f" if self.single else ""

    def literal(self, value: float) -> str:
        """Return a number as a literal."""
        return number(np.float32(value) if self.single else value, self.suffix)

    def expression(self, kernel: Kernel) -> str:
        """Return the value of the kernel between `x` and `p`."""
        if isinstance(kernel, (Sum, Product)):
            sign = " + " if isinstance(kernel, Sum) else " * "
            return "(" + sign.join(map(self.expression, kernel.parts)) + ")"
        if isinstance(kernel, Scaled):
            return f"({self.literal(kernel.scale)} * {self.expression(kernel.kernel)})"
        if isinstance(kernel, Constant):
            return self.literal(1.0)
        if isinstance(kernel, Linear):
            return self._call("dot")
        if isinstance(kernel, Polynomial):
            self.needs.add("power")
            base = f"{self.literal(kernel.gamma)} * {self._call('dot')}"
            return f"{self.name}_power({base} + {self.literal(kernel.coef0)}, {kernel.degree}UL)"
        return self._of_distances(kernel)

    def _of_distances(self, kernel: Any) -> str:
        exp = f"exp{self.suffix}"
        if isinstance(kernel, Laplacian):
            return f"{exp}(-{self._call('absolute', kernel)})"
        squared = self._call("squared", kernel)
        if isinstance(kernel, Gaussian):
            return f"{exp}({self.literal(-0.5)} * {squared})"
        if isinstance(kernel, Matern):
            which = {0.5: 1, 1.5: 3, 2.5: 5}[kernel.nu]
            self.needs.add(f"matern{which}")
            return f"{self.name}_matern{which}({squared})"
        if isinstance(kernel, Cauchy):
            return f"({self.literal(1.0)} / ({self.literal(1.0)} + {squared}))"
        inner = f"{squared} / {self.literal(kernel.degrees)}"
        power = self.literal(-(kernel.degrees + 1) / 2)
        return f"{exp}({power} * log1p{self.suffix}({inner}))"

    def _call(self, what: str, kernel: Any = None) -> str:
        self.needs.add(what)
        if kernel is None:
            return f"{self.name}_{what}(x, p)"
        lengths = np.broadcast_to(np.asarray(kernel.bandwidth, dtype=float), (self.features,))
        table = f"{self.name}_lengths{len(self.tables)}"
        real = "float" if self.single else "double"
        self.tables.append(
            f"static const {real} {table}[{self.features}] = {{\n  "
            f"{numbers(1 / lengths, self.single)}}};"
        )
        return f"{self.name}_{what}(x, p, {table})"

    def functions(self) -> str:
        """Return the functions that the expression calls."""
        real, f = ("float", "f") if self.single else ("double", "")
        words = {"NAME": self.name, "REAL": real, "F": f, "FEATURES": str(self.features)}
        parts = [_FUNCTIONS[need] for need in _FUNCTIONS if need in self.needs]
        text = "\n".join(parts)
        for word, meaning in words.items():
            text = text.replace(f"@{word}@", meaning)
        return text


_LOOP = """
static inline @REAL@ @NAME@_{name}(const @REAL@ *x, const @REAL@ *p{more})
{{
  @REAL@ sum = 0;
  size_t j;
  for (j = 0; j < @FEATURES@; ++j) {{
    {step}
  }}
  return sum;
}}
"""


def _matern(which: int, polynomial: str) -> str:
    return f"""
static inline @REAL@ @NAME@_matern{which}(@REAL@ squared)
{{
  const @REAL@ s = sqrt@F@((@REAL@){which} * squared);
  if (s > (@REAL@)1e4) return 0;
  return {polynomial}exp@F@(-s);
}}
"""


_DIFFERENCE = "const @REAL@ d = (p[j] - x[j]) * inverse[j];\n    "
_FUNCTIONS = {
    "squared": _LOOP.format(
        name="squared", more=", const @REAL@ *inverse", step=_DIFFERENCE + "sum += d * d;"
    ),
    "absolute": _LOOP.format(
        name="absolute", more=", const @REAL@ *inverse", step=_DIFFERENCE + "sum += fabs@F@(d);"
    ),
    "dot": _LOOP.format(name="dot", more="", step="sum += p[j] * x[j];"),
    "power": """
static inline @REAL@ @NAME@_power(@REAL@ base, unsigned long exponent)
{
  @REAL@ result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= base;
    base *= base;
  }
  return result;
}
""",
    "matern1": _matern(1, ""),
    "matern3": _matern(3, "(1 + s) * "),
    "matern5": _matern(5, "(1 + s + s * s / 3) * "),
}
