"""The experiments of each paper: a module has ``run(options) -> exit code``."""
