"""Load the compiled core that suits this processor best, and pass on its names.

``PARSIMON_SIMD=baseline`` (or ``avx2``, ``avx512``) overrides the choice.
"""

import importlib
import importlib.util
import os

from . import _cpu

_installed = [
    level
    for level in ("baseline", "avx2", "avx512")
    if importlib.util.find_spec(f"{__package__}._core_{level}") is not None
]
available_levels = [level for level in _installed if level in _cpu.supported_levels()]


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
globals().update({name: value for name, value in vars(_module).items() if not name.startswith("_")})
