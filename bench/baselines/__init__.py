"""The methods that the papers compare with, in plain NumPy and SciPy."""
