"""What becomes of a function's values, in C: labels, scores, probabilities, densities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon._formula import Classes, Density, Formula, OneClass, Values, Votes

from ._c_kernels import number, numbers


def head_code(formula: Formula, name: str, *, single: bool) -> str:
    """Return the functions that a user of the header calls."""
    head = formula.head
    if isinstance(head, Values):
        text = _VALUES
    elif isinstance(head, OneClass):
        text = _ONE_CLASS
    elif isinstance(head, Density):
        text = _density(head, placed=is_placed(formula))
    elif isinstance(head, Votes):
        text = _labels(head.classes) + _votes(head)
        if head.calibration is not None:
            text += _COUPLING
    else:
        text = _labels(head.classes) + _classes(head, formula.n_outputs)
    real, f = ("float", "f") if single else ("double", "")
    words = {
        "NAME": name,
        "UPPER": name.upper(),
        "REAL": real,
        "F": f,
        "FEATURES": str(formula.n_features),
        "OFFSET": number(getattr(head, "offset", 0.0), f),
    }
    if isinstance(head, (Classes, Votes)):
        words["CLASSES"] = str(len(head.classes))
    for key, value in _tables(head, single).items():
        words[key] = value
    for word, meaning in words.items():
        text = text.replace(f"@{word}@", meaning)
    return text


def _tables(head: Any, single: bool) -> dict[str, str]:
    """Return the numbers of a head as C writes them."""
    f = "f" if single else ""
    if isinstance(head, Classes) and head.calibration is not None:
        slope, offset = head.calibration
        return {"SLOPE": number(slope[0], f), "SHIFT": number(offset[0], f)}
    if isinstance(head, Votes) and head.calibration is not None:
        slope, offset = head.calibration
        most = str(max(100, len(head.classes)))
        return {"SLOPES": numbers(slope, False), "SHIFTS": numbers(offset, False), "MOST": most}
    if not isinstance(head, Density):
        return {}
    found = {"LOG_VOLUME": number(head.log_volume, f)}
    if head.is_bounded:
        # What goes round is always inside.
        lower = np.where(head.periodic, -np.inf, head.lower)
        upper = np.where(head.periodic, np.inf, head.upper)
        found |= {"LOWER": numbers(lower, single), "UPPER_BOUND": numbers(upper, single)}
    if head.mirror == "mahalanobis":
        height, center, width = head.center_and_width()
        found |= {
            "HEIGHT": number(height, f),
            "CENTER": numbers(center, single),
            "INVERSE_WIDTH": numbers(1 / width, single),
        }
    return found


def _labels(classes: NDArray[Any]) -> str:
    if classes.dtype.kind in "UO":
        kind, texts = "char *const", [_string(str(text)) for text in classes]
    elif classes.dtype.kind == "f":
        kind, texts = "double", [number(value, "") for value in classes]
    else:
        kind, texts = "long", [f"{int(value)}L" for value in classes]
    rows = ",\n  ".join(", ".join(texts[i : i + 8]) for i in range(0, len(texts), 8))
    return (
        f"#define @UPPER@_CLASSES {len(classes)}\n"
        f"static const {kind} @NAME@_labels[@CLASSES@] = {{\n  {rows}}};\n"
    )


def _string(text: str) -> str:
    # Octal, three digits each: what follows cannot become part of them.
    safe = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{safe}"'


_VALUES = """
/* @UPPER@_OUTPUTS predictions. */
static inline void @NAME@_predict(const @REAL@ *x, @REAL@ *predictions)
{
  @NAME@_values(x, predictions);
}
"""

_ONE_CLASS = """
/* Positive for inliers, negative for outliers. */
static inline @REAL@ @NAME@_score(const @REAL@ *x)
{
  @REAL@ value[1];
  @NAME@_values(x, value);
  return value[0] - @OFFSET@;
}

/* 1 for inliers, -1 for outliers. */
static inline int @NAME@_predict(const @REAL@ *x)
{
  return @NAME@_score(x) < 0 ? -1 : 1;
}
"""


def _argmax(of: str) -> str:
    return f"""  for (i = 1; i < @CLASSES@; ++i) {{
    if ({of}[i] > {of}[best]) best = i;
  }}
  return (int)best;
"""


def _classes(head: Classes, outputs: int) -> str:
    if len(head.classes) <= 2:
        difference = "values[0]" if outputs == 1 else "values[1] - values[0]"
        chosen = "score[0] > 0 ? 1 : 0" if len(head.classes) == 2 else "0"
        text = f"""
/* One number: positive for the second class. */
static inline void @NAME@_scores(const @REAL@ *x, @REAL@ *scores)
{{
  @REAL@ values[@UPPER@_OUTPUTS];
  @NAME@_values(x, values);
  scores[0] = {difference};
}}

/* The place of the label in @NAME@_labels. */
static inline int @NAME@_predict(const @REAL@ *x)
{{
  @REAL@ score[1];
  @NAME@_scores(x, score);
  return {chosen};
}}
"""
    else:
        text = (
            """
/* One number for each class. */
static inline void @NAME@_scores(const @REAL@ *x, @REAL@ *scores)
{
  @NAME@_values(x, scores);
}

/* The place of the label in @NAME@_labels. */
static inline int @NAME@_predict(const @REAL@ *x)
{
  @REAL@ scores[@CLASSES@];
  size_t i, best = 0;
  @NAME@_values(x, scores);
"""
            + _argmax("scores")
            + "}\n"
        )
    link = head.link if head.calibration is None else "calibrated"
    if link is not None and len(head.classes) == 1:
        return text + _CERTAIN
    return text if link is None else text + _probabilities(link)


_CERTAIN = """
/* There was one class only. */
static inline void @NAME@_probabilities(const @REAL@ *x, @REAL@ *probabilities)
{
  (void)x;
  probabilities[0] = 1;
}
"""


def _probabilities(link: str) -> str:
    start = """
/* One number for each class; their sum is 1. */
static inline void @NAME@_probabilities(const @REAL@ *x, @REAL@ *probabilities)
{
  @REAL@ values[@UPPER@_OUTPUTS];
"""
    if link in ("binary_logistic", "calibrated"):
        scaled = "values[0]" if link == "binary_logistic" else "@SLOPE@ * values[0] + @SHIFT@"
        return (
            start
            + f"""  @REAL@ logit, part;
  @NAME@_values(x, values);
  logit = {scaled};
  /* The exponential of a negative number only: neither tail overflows. */
  part = exp@F@(-fabs@F@(logit));
  probabilities[logit < 0 ? 0 : 1] = 1 / (1 + part);
  probabilities[logit < 0 ? 1 : 0] = part / (1 + part);
}}
"""
        )
    positive = """  /* Beyond this only the order matters, and the exponential stays finite. */
  if (largest > 80) {
    for (i = 0; i < @CLASSES@; ++i) values[i] -= largest - 80;
  }
  for (i = 0; i < @CLASSES@; ++i) values[i] = exp@F@(values[i]);
  largest = values[0];
  for (i = 1; i < @CLASSES@; ++i) {
    if (values[i] > largest) largest = values[i];
  }
"""
    return (
        start
        + f"""  @REAL@ largest, sum = 0;
  size_t i;
  @NAME@_values(x, values);
  largest = values[0];
  for (i = 1; i < @CLASSES@; ++i) {{
    if (values[i] > largest) largest = values[i];
  }}
{positive if link == "mirror_logistic" else ""}  for (i = 0; i < @CLASSES@; ++i) {{
    probabilities[i] = exp@F@(values[i] - largest);
    sum += probabilities[i];
  }}
  for (i = 0; i < @CLASSES@; ++i) probabilities[i] /= sum;
}}
"""
    )


# As _coupling.py of parsimon.compression has it.
_COUPLING = """
static const double @NAME@_slopes[@UPPER@_OUTPUTS] = {
  @SLOPES@};
static const double @NAME@_shifts[@UPPER@_OUTPUTS] = {
  @SHIFTS@};

/* One number for each class; their sum is 1. Those of all pairs of classes are put together by
   minimising a quadratic form, one class after the other (Wu, Lin, Weng 2004). */
static inline void @NAME@_probabilities(const @REAL@ *x, @REAL@ *probabilities)
{
  @REAL@ values[@UPPER@_OUTPUTS];
  double form[@CLASSES@][@CLASSES@], product[@CLASSES@], p[@CLASSES@];
  size_t i, j, pair = 0;
  int round;
  @NAME@_values(x, values);
  for (i = 0; i < @CLASSES@; ++i) {
    form[i][i] = 0;
    p[i] = 1.0 / @CLASSES@;
  }
  for (i = 0; i < @CLASSES@; ++i) {
    for (j = i + 1; j < @CLASSES@; ++j, ++pair) {
      const double logit = (double)values[pair] * @NAME@_slopes[pair] + @NAME@_shifts[pair];
      double first = 1 / (1 + exp(-logit));
      if (first < 1e-7) first = 1e-7;
      if (first > 1 - 1e-7) first = 1 - 1e-7;
      form[i][j] = form[j][i] = -first * (1 - first);
      form[i][i] += (1 - first) * (1 - first);
      form[j][j] += first * first;
    }
  }
  for (round = 0; round < @MOST@; ++round) {
    double all = 0, away = 0;
    for (i = 0; i < @CLASSES@; ++i) {
      product[i] = 0;
      for (j = 0; j < @CLASSES@; ++j) product[i] += form[i][j] * p[j];
      all += p[i] * product[i];
    }
    for (i = 0; i < @CLASSES@; ++i) {
      if (fabs(product[i] - all) > away) away = fabs(product[i] - all);
    }
    if (away < 0.005 / @CLASSES@) break;
    for (i = 0; i < @CLASSES@; ++i) {
      const double step = (all - product[i]) / form[i][i];
      p[i] += step;
      all = (all + step * (step * form[i][i] + 2 * product[i])) / (1 + step) / (1 + step);
      for (j = 0; j < @CLASSES@; ++j) {
        product[j] = (product[j] + step * form[i][j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
  for (i = 0; i < @CLASSES@; ++i) probabilities[i] = (@REAL@)p[i];
}
"""


def _votes(head: Votes) -> str:
    count = len(head.classes) if head.per_class else len(head.pairs[0])
    tally = """
/* How many pairs each class wins, and by how much in all. */
static inline void @NAME@_tally(const @REAL@ *values, @REAL@ *votes, @REAL@ *confidence)
{
  size_t i, j, pair = 0;
  for (i = 0; i < @CLASSES@; ++i) votes[i] = confidence[i] = 0;
  for (i = 0; i < @CLASSES@; ++i) {
    for (j = i + 1; j < @CLASSES@; ++j, ++pair) {
      votes[values[pair] > 0 ? i : j] += 1;
      confidence[i] += values[pair];
      confidence[j] -= values[pair];
    }
  }
}
"""
    blend = "votes[i] += confidence[i] / (3 * (fabs@F@(confidence[i]) + 1));"
    start = """  @REAL@ values[@UPPER@_OUTPUTS], votes[@CLASSES@], confidence[@CLASSES@];
  size_t i;
  @NAME@_values(x, values);
  @NAME@_tally(values, votes, confidence);
"""
    if head.per_class:
        body = (
            start
            + f"  for (i = 0; i < @CLASSES@; ++i) {{\n    {blend}\n"
            + "    scores[i] = votes[i];\n  }\n"
        )
    else:
        body = "  @NAME@_values(x, scores);\n"
    broken = f"  for (i = 0; i < @CLASSES@; ++i) {blend}\n" if head.by_score else ""
    return (
        tally
        + f"""
/* {count} numbers: one for each {"class" if head.per_class else "pair of classes"}. */
static inline void @NAME@_scores(const @REAL@ *x, @REAL@ *scores)
{{
{body}}}

/* The place of the label in @NAME@_labels. */
static inline int @NAME@_predict(const @REAL@ *x)
{{
{start.replace("size_t i;", "size_t i, best = 0;")}{broken}{_argmax("votes")}}}
"""
    )


def is_placed(formula: Formula) -> bool:
    """Return whether a density's samples are scaled or folded before they are looked at."""
    density = formula.head if isinstance(formula.head, Density) else None
    return density is not None and (formula.scaling is not None or bool(density.periodic.any()))


def _density(head: Density, *, placed: bool) -> str:
    tables, checks = "", ""
    if head.is_bounded:
        tables += """static const @REAL@ @NAME@_lower[@FEATURES@] = {
  @LOWER@};
static const @REAL@ @NAME@_upper[@FEATURES@] = {
  @UPPER_BOUND@};
"""
        checks = """  for (j = 0; j < @FEATURES@; ++j) {
    if (!(x[j] >= @NAME@_lower[j] && x[j] <= @NAME@_upper[j])) return (@REAL@)-HUGE_VAL;
  }
"""
    if head.mirror == "mahalanobis":
        tables += """static const @REAL@ @NAME@_center[@FEATURES@] = {
  @CENTER@};
static const @REAL@ @NAME@_inverse_width[@FEATURES@] = {
  @INVERSE_WIDTH@};
"""
        checks += """  for (j = 0; j < @FEATURES@; ++j) {
    const @REAL@ away = (x[j] - @NAME@_center[j]) * @NAME@_inverse_width[j];
    square += away * away;
  }
"""
    weigh = "  z[0] *= (@REAL@)0.5 + @HEIGHT@ * exp@F@((@REAL@)-0.5 * square);\n"
    positive = "  if (!(z[0] > 0)) return (@REAL@)-HUGE_VAL;\n  z[0] = log@F@(z[0]);\n"
    mirrored = weigh if head.mirror == "mahalanobis" else ""
    mirrored += positive if head.mirror != "kl" else ""
    declared = "  @REAL@ square = 0;\n" if head.mirror == "mahalanobis" else ""
    declared += "  size_t j;\n" if checks else ""
    given, start = "x", ""
    if placed and checks:
        given, start = "sample", "  @NAME@_placed(sample, x);\n"
        declared += "  @REAL@ x[@FEATURES@];\n"
    return (
        tables
        + f"""
/* The logarithm of the density; minus infinity where there is none. */
static inline @REAL@ @NAME@_log_density(const @REAL@ *{given})
{{
  @REAL@ z[1];
{declared}  @NAME@_values({given}, z);
{start}{checks}{mirrored}  return z[0] - @LOG_VOLUME@;
}}
"""
    )
