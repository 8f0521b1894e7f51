"""Models as C99 headers."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon._build import __version__
from parsimon._formula import (
    Density,
    Formula,
    formula_of,
    unwritten_probabilities,
    warn_of_probabilities,
)

from ._c_heads import head_code, is_placed
from ._c_int16 import int16_code
from ._c_kernels import KernelCode, numbers

Array = NDArray[np.float64]

_TYPES = ("float", "double", "int16")
_KEYWORDS = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "main",
    ]
)
# What the answers of a header may be away from Python's in its self-test, relative to the sum of
# the absolute values of all terms.
_TOLERANCE = {"float": 2e-6, "double": 1e-12, "int16": 5e-3}
_TESTED = 8


def to_c(model: Any, *, float_type: str = "float", name: str = "model") -> str:
    """Write a fitted model down as one header in C99.

    The header allocates nothing, has its tables as static constants and needs the mathematics
    library alone. Its functions start with `name`:

    - ``NAME_values(x, values)``: the outputs of the model's function, for all models;
    - a classifier: ``NAME_predict(x)``, the place of the label in ``NAME_labels``,
      ``NAME_scores(x, scores)``, its ``decision_function``, and, if it has them,
      ``NAME_probabilities(x, probabilities)``; those of a compressed SVC of more than two classes
      take an iteration in double precision, which stops as LIBSVM's does when they are right to
      about .005; those of a compressed GaussianProcessClassifier are left out, with a warning;
    - a novelty detector: ``NAME_predict(x)``, 1 or -1, and ``NAME_score(x)``;
    - a regressor, a value function or a :class:`KernelExpansion`: ``NAME_predict(x, predictions)``;
    - a density: ``NAME_log_density(x)``;
    - ``NAME_self_test()``: how many of the stored answers come out wrong, which should be 0.

    Parameters
    ----------
    model : estimator, pipeline or KernelExpansion
        Fitted; pipelines may have scalers in front, which become part of the header.
    float_type : {"float", "double", "int16"}, default="float"
        How tables are kept and sums computed. With "int16", the points and weights are integers,
        the exponential is a table, and there are about three digits; for Gaussian and Laplacian
        kernels. Scores of "float" are right to about 1e-6, of "double" to 1e-12, of the sum of the
        absolute values of their terms, ``abs(weights) * abs(kernel)``: where large terms cancel,
        that is more of the score.
    name : str, default="model"
        What all names in the header start with.

    Returns
    -------
    str
        The text of the header.

    Examples
    --------
    >>> from parsimon import KernelExpansion, kernels
    >>> from parsimon.export import to_c
    >>> f = KernelExpansion(kernels.Gaussian(1.0), [[0.0], [1.0]], [2.0, -1.0])
    >>> header = to_c(f, name="bump")
    >>> "static inline void bump_predict(const float *x, float *predictions)" in header
    True
    """
    if float_type not in _TYPES:
        raise ValueError(
            f"float_type must be {', '.join(map(repr, _TYPES[:-1]))} or {_TYPES[-1]!r}; got "
            f"{float_type!r}."
        )
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", str(name)):
        raise ValueError(f"name must be a name in C, of letters, digits and _; got {name!r}.")
    if name in _KEYWORDS:
        raise ValueError(f"{name!r} is a word of C; choose another name.")
    formula = formula_of(model)
    warn_of_probabilities(formula.head, "The header has", iterates=True)
    if float_type == "int16" and is_placed(formula):
        raise ValueError(
            "float_type='int16' has neither a scaler in front of a density nor one whose domain is "
            "periodic. Use float_type='float'."
        )
    header = _Header(formula, name, float_type)
    return header.text()


@dataclass(frozen=True)
class _Header:
    formula: Formula
    name: str
    float_type: str

    @property
    def single(self) -> bool:
        return self.float_type != "double"

    @property
    def real(self) -> str:
        return "float" if self.single else "double"

    def text(self) -> str:
        name, guard = self.name, f"{self.name.upper()}_H"
        body = int16_code(self.formula, name) if self.float_type == "int16" else self._function()
        heads = head_code(self.formula, name, single=self.single)
        code = "\n".join([self._sizes(), body, heads, self._self_test()])
        comment = self._comment(len(self._tables_of(code)))
        start = f"#ifndef {guard}\n#define {guard}\n\n#include <math.h>\n#include <stddef.h>\n"
        if self.float_type == "int16":
            start += "#include <stdint.h>\n"
        return f"{comment}\n{start}\n{code}\n#endif\n"

    @staticmethod
    def _tables_of(code: str) -> list[str]:
        return re.findall(r"^static const", code, flags=re.MULTILINE)

    def _comment(self, tables: int) -> str:
        formula = self.formula
        points, features = formula.dictionary.shape
        width = {"float": 4, "double": 8, "int16": 2}[self.float_type]
        size = width * (points * features + points * formula.n_outputs)
        kind = type(formula.head).__name__.lower()
        why = unwritten_probabilities(formula.head, iterates=True)
        notes = ""
        if why is not None:
            lines = textwrap.wrap(f"Probabilities are not here: {why}.", 95)
            notes = "".join(f"\n * {line}" for line in lines)
        return (
            f"/* A model of parsimon {__version__}: {points} points, {features} features, "
            f"{formula.n_outputs} outputs ({kind}).\n"
            f" * Kernel: {_comment_text(repr(formula.kernel))}\n"
            f" * Points and weights take {size} bytes as {self.float_type}, in {tables} constant "
            f"tables;\n * the stack {features * width} bytes beside a few numbers. No allocation. "
            f"C99, with the mathematics library.{notes} */"
        )

    def _sizes(self) -> str:
        upper = self.name.upper()
        points, features = self.formula.dictionary.shape
        lines = [
            f"#define {upper}_FEATURES {features}",
            f"#define {upper}_OUTPUTS {self.formula.n_outputs}",
            f"#define {upper}_POINTS {points}",
        ]
        return "\n".join(lines) + "\n"

    def _table(self, what: str, values: Any) -> str:
        count = max(int(np.size(values)), 1)
        return (
            f"static const {self.real} {self.name}_{what}[{count}] = {{\n  "
            f"{numbers(values, self.single)}}};"
        )

    def _function(self) -> str:
        formula, name, upper = self.formula, self.name, self.name.upper()
        features = formula.n_features
        kernel = KernelCode(name, features, self.single)
        expression = kernel.expression(formula.kernel)
        tables = [
            self._table("points", formula.dictionary),
            self._table("weights", formula.weights),
            self._table("intercept", formula.intercept),
            *kernel.tables,
        ]
        if formula.scaling is not None:
            tables += [
                self._table("mean", formula.scaling.mean),
                self._table("factor", formula.scaling.factor),
            ]
        placed = self._placed() if is_placed(formula) else ""
        return (
            "\n".join(tables)
            + f"\n{kernel.functions()}{placed}"
            + f"""
/* The outputs of the function, {upper}_OUTPUTS numbers, for {upper}_FEATURES features. */
static inline void {name}_values(const {self.real} *sample, {self.real} *values)
{{
  size_t j;
{self._scaled_sample()}  for (j = 0; j < {upper}_OUTPUTS; ++j) values[j] = 0;
{self._sum(expression, looks=bool(kernel.needs))}\
  for (j = 0; j < {upper}_OUTPUTS; ++j) values[j] += {name}_intercept[j];
}}
"""
        )

    def _placed(self) -> str:
        """Return the function that scales a sample and brings it into a periodic domain."""
        name, real, head = self.name, self.real, self.formula.head
        f = "f" if self.single else ""
        tables = folds = ""
        if isinstance(head, Density) and head.periodic.any():
            width = np.where(head.periodic, head.upper - head.lower, 0.0)
            tables = (
                f"{self._table('start', np.where(head.periodic, head.lower, 0.0))}\n"
                f"/* 0 along features that do not go round */\n{self._table('period', width)}\n"
            )
            folds = f"""    if ({name}_period[j] > 0) {{
      x[j] -= {name}_period[j] * floor{f}((x[j] - {name}_start[j]) / {name}_period[j]);
    }}
"""
        return f"""{tables}
/* A sample as the function takes it. */
static inline void {name}_placed(const {real} *sample, {real} *x)
{{
  size_t j;
  for (j = 0; j < {name.upper()}_FEATURES; ++j) {{
{self._scaled("x[j]")}{folds}  }}
}}
"""

    def _scaled(self, target: str) -> str:
        """Return what brings one feature of a sample to a target."""
        name, scaling = self.name, self.formula.scaling
        if scaling is None:
            return f"    {target} = sample[j];\n"
        missing = f"    if ({target} != {target}) {target} = 0;\n" if scaling.takes_missing else ""
        return f"    {target} = (sample[j] - {name}_mean[j]) * {name}_factor[j];\n{missing}"

    def _scaled_sample(self) -> str:
        """Return what makes `x` of the sample."""
        name, features = self.name, f"{self.name.upper()}_FEATURES"
        if is_placed(self.formula):
            made = f"  {name}_placed(sample, scaled);\n"
        elif self.formula.scaling is None:
            return f"  const {self.real} *const x = sample;\n"
        else:
            made = f"  for (j = 0; j < {features}; ++j) {{\n{self._scaled('scaled[j]')}  }}\n"
        return f"  {self.real} scaled[{features}];\n  const {self.real} *const x = scaled;\n{made}"

    def _sum(self, expression: str, *, looks: bool) -> str:
        """Return the loop over the points; a kernel may look at neither point nor sample."""
        name, upper, real = self.name, self.name.upper(), self.real
        if not len(self.formula.dictionary):
            return "  (void)x;\n"
        point = f"    const {real} *const p = {name}_points + i * {upper}_FEATURES;\n"
        return f"""  {"" if looks else "(void)x;"}
  for (size_t i = 0; i < {upper}_POINTS; ++i) {{
{point if looks else ""}    const {real} *const w = {name}_weights + i * {upper}_OUTPUTS;
    const {real} k = {expression};
    for (j = 0; j < {upper}_OUTPUTS; ++j) values[j] += w[j] * k;
  }}
"""

    def _self_test(self) -> str:
        """Return the answers of Python at a few samples, and who compares them."""
        formula, name, upper = self.formula, self.name, self.name.upper()
        X = _test_samples(formula)
        if self.single:
            X = X.astype(np.float32).astype(float)
        values = formula.values(X)
        terms = np.abs(formula.kernel(formula.scaled(X), formula.dictionary)) @ np.abs(
            formula.weights
        )
        unit = float(np.max(terms + np.abs(formula.intercept), initial=0.0)) or 1.0
        tolerance = _TOLERANCE[self.float_type] * unit
        limit = numbers([tolerance], self.single)
        f = "f" if self.single else ""
        return (
            self._table("test_samples", X)
            + "\n"
            + self._table("test_values", values)
            + f"""

/* How many of the stored answers come out wrong: 0 on a machine that computes as it should. */
static inline int {name}_self_test(void)
{{
  {self.real} values[{upper}_OUTPUTS];
  size_t i, j;
  int wrong = 0;
  for (i = 0; i < {len(X)}; ++i) {{
    {name}_values({name}_test_samples + i * {upper}_FEATURES, values);
    for (j = 0; j < {upper}_OUTPUTS; ++j) {{
      const {self.real} away = fabs{f}(values[j] - {name}_test_values[i * {upper}_OUTPUTS + j]);
      if (!(away <= {limit})) ++wrong;
    }}
  }}
  return wrong;
}}
"""
        )


def _test_samples(formula: Formula) -> Array:
    """Return a few samples between the points, in the units of those that will be given."""
    points = formula.dictionary
    if not len(points):
        return np.zeros((1, formula.n_features))
    chosen = points[np.linspace(0, len(points) - 1, min(_TESTED, len(points))).astype(int)]
    between = (chosen + np.roll(chosen, 1, axis=0)) / 2
    if formula.scaling is None:
        return np.asarray(between)
    factor = np.where(formula.scaling.factor == 0, 1, formula.scaling.factor)
    return np.asarray(between / factor + formula.scaling.mean)


def _comment_text(text: str) -> str:
    text = text.replace("*/", "* /").replace("/*", "/ *")
    return text if len(text) < 300 else text[:300] + " ..."
