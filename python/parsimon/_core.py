"""The compiled core, with the innermost loops for the best instruction set of the processor.

``PARSIMON_SIMD=baseline`` (or ``avx2``, ``avx512``) overrides the choice.
"""

import importlib
import importlib.util
import os

from . import _cpu, _engine

available_levels = [
    level
    for level in _cpu.supported_levels()
    if importlib.util.find_spec(f"{__package__}._simd_{level}") is not None
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


_engine.use_loops(importlib.import_module(f"{__package__}._simd_{_choose()}").loops)

for _name, _value in vars(_engine).items():
    if not _name.startswith("_"):
        if isinstance(_value, type):
            _value.__module__ = __name__
        globals()[_name] = _value

if hasattr(os, "register_at_fork"):
    # No model is in the middle of a step when a process is forked: the child could not end it.
    os.register_at_fork(
        before=_engine.before_fork,
        after_in_parent=_engine.after_fork,
        after_in_child=_engine.after_fork,
    )
