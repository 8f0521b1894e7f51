from typing import Any

available_levels: list[str]

def build_info() -> dict[str, Any]: ...
