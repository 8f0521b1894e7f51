"""What the tests of the benchmarks share."""


def assert_missed(promises, complaint, count=1):
    """Of these promises this many are missed, each with this complaint; none if there is none."""
    missed = [str(promise) for promise in promises if not promise.holds]
    assert len(missed) == (0 if complaint is None else count)
    assert all(complaint in each for each in missed)
