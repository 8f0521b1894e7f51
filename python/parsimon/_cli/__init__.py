"""The command line: train, predict, evaluate and inspect, from files and pipes."""

from ._main import main

__all__ = ["main"]
