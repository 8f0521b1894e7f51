"""Documents, drawn at random, as search engines and text classifiers see them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from parsimon._checks import check_count

# Zipf's law as Mandelbrot has it: the word of rank r is as frequent as (r + _SHIFT)^-_EXPONENT.
_EXPONENT = 1.07
_SHIFT = 2.7
# Standard deviation of the logarithm of how much more often a class uses a word than others do.
_TILT = 0.35
# Mean number of words in a document.
_LENGTH = 120


def make_documents(
    n_samples: int = 20_000,
    n_features: int = 50_000,
    n_classes: int = 10,
    *,
    random_state: Any = None,
) -> tuple[sparse.csr_matrix, NDArray[np.int64]]:
    """Draw documents of words that follow Zipf's law, and return their TF-IDF features.

    Each class has word frequencies of its own: those of all, times independent log-normal numbers,
    so that no word decides and many words tell a little. The length of a document is Poisson, 120
    words on average, and its features are as scikit-learn's ``TfidfTransformer`` has them: rows of
    norm 1 in which one number in some hundreds is not zero.

    The frequencies are drawn first: the same `random_state` gives the same task for any
    `n_samples`. To get training and test data, draw both at once and split.

    Parameters
    ----------
    n_samples : int, default=20000
        Number of documents.
    n_features : int, default=50000
        Number of words that there are.
    n_classes : int, default=10
        Number of classes, equally likely.
    random_state : int, RandomState instance or None, default=None
        Seed of the frequencies and of the documents.

    Returns
    -------
    X : csr_matrix of shape (n_samples, n_features)
        The features.
    y : ndarray of shape (n_samples,)
        The class of each, from 0 on.

    Examples
    --------
    >>> from parsimon.datasets import make_documents
    >>> X, y = make_documents(200, 5000, 3, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((200, 5000), [0, 1, 2])
    """
    check_count("n_samples", n_samples)
    check_count("n_features", n_features)
    check_count("n_classes", n_classes)
    random = check_random_state(random_state)
    frequencies = (np.arange(n_features) + 1 + _SHIFT) ** -_EXPONENT
    # Words have no order that a model could see.
    words = random.permutation(n_features)
    tilts = random.normal(0, _TILT, (n_classes, n_features))
    y = random.randint(n_classes, size=n_samples)
    lengths = np.maximum(random.poisson(_LENGTH, n_samples), 1)

    counts = sparse.csr_matrix((n_samples, n_features))
    for label in range(n_classes):
        cumulative = np.cumsum(frequencies * np.exp(tilts[label]))
        documents = np.repeat(np.flatnonzero(y == label), lengths[y == label])
        places = random.uniform(0, cumulative[-1], len(documents))
        drawn = words[np.minimum(np.searchsorted(cumulative, places), n_features - 1)]
        ones = np.ones(len(documents))
        counts += sparse.csr_matrix((ones, (documents, drawn)), shape=counts.shape)
    return _tf_idf(counts), y


def _tf_idf(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    counts.sort_indices()
    n_samples, n_features = counts.shape
    documents = np.bincount(counts.indices, minlength=n_features)
    rarity = np.log((1 + n_samples) / (1 + documents)) + 1
    values = counts.data * rarity[counts.indices]
    rows = np.repeat(np.arange(n_samples), np.diff(counts.indptr))
    norms = np.sqrt(np.bincount(rows, values**2, minlength=n_samples))
    return sparse.csr_matrix((values / norms[rows], counts.indices, counts.indptr), counts.shape)
