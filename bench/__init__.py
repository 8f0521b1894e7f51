"""Benchmarks of parsimon: run from the root of the repository, with parsimon installed."""
