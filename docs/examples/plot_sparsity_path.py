"""
The path of a learned kernel
============================

SLKL learns which columns of the kernel matrix it needs. From left to right the price of a column
falls: more columns, and at some point nothing is gained by them.
"""

from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from parsimon import sparsity_path
from parsimon.plotting import SparsityPathDisplay

X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)
path = sparsity_path(X[:300], y[:300], X_validation=X[300:], y_validation=y[300:])
SparsityPathDisplay(path).plot()
