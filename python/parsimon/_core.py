"""Load the compiled core that suits this processor best, and pass on its names.

``PARSIMON_SIMD=baseline`` (or ``avx2``, ``avx512``) overrides the choice.
"""

import importlib
import importlib.util
import os

from . import _cpu

available_levels = [
    level
    for level in _cpu.supported_levels()
    if importlib.util.find_spec(f"{__package__}._core_{level}") is not None
]


def _choose() -> str:
    wanted = os.environ.get("PARSIMON_SIMD", "").strip().lower()
    if not wanted:
        return available_levels[-1]
    if wanted not in available_levels:
        raise ImportError(
            f"PARSIMON_SIMD is {wanted!r}, which this build or this processor does not offer; "
            f"set it to one of {', '.join(available_levels)}, or unset it to get the fastest."
        )
    return wanted


_module = importlib.import_module(f"{__package__}._core_{_choose()}")

for _name, _value in vars(_module).items():
    if not _name.startswith("_"):
        if isinstance(_value, type):
            # A pickle must not name the instruction set of the machine that wrote it.
            _value.__module__ = __name__
        globals()[_name] = _value
