"""The experiments of the papers: a module each, with ``run(options)``."""
