"""Loaders. Nothing here touches the network."""

import subprocess
import sys
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import Bunch

from parsimon import datasets

USPS_TRAIN = [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]


def write(folder, name, **arrays):
    np.savez(Path(folder) / f"{name}.npz", **arrays)


def digits(low, high, dtype, shape):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 2, size=(6, *shape)) * (high - low) + low
    return {
        "X_train": images[:4].astype(dtype),
        "y_train": np.array([3, 1, 4, 1], dtype=np.uint8),
        "X_test": images[4:].astype(dtype),
        "y_test": np.array([5, 9], dtype=np.uint8),
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PARSIMON_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def openml(monkeypatch):
    """Put a given answer (or error) in OpenML's place, and record what was asked for."""

    class OpenML:
        answer = None

        def __call__(self, **query):
            self.query = query
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    service = OpenML()
    monkeypatch.delenv("PARSIMON_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", service)
    return service


class TestFiles:
    @pytest.mark.parametrize(
        ("name", "low", "high", "dtype", "shape"),
        [("mnist", 0, 255, np.uint8, (28, 28)), ("usps", -1, 1, np.float32, (256,))],
    )
    def test_digits(self, folder, name, low, high, dtype, shape):
        stored = digits(low, high, dtype, shape)
        write(folder, name, **stored)
        load = getattr(datasets, f"load_{name}")
        pixels = int(np.prod(shape))
        X, y = load(return_X_y=True)
        assert X.shape == (4, pixels)
        assert X.dtype == np.float64
        assert_array_equal(np.unique(X), [0.0, 1.0])
        assert_array_equal(y, [3, 1, 4, 1])
        assert y.dtype == np.int64
        assert_array_equal(load(subset="test").target, [5, 9])
        both = load(subset="all", pixel_range=(-1.0, 1.0), dtype=np.float32)
        assert both.data.dtype == np.float32
        assert_array_equal(np.unique(both.data), [-1.0, 1.0])
        assert_array_equal(both.data[:4], 2 * X - 1)
        assert_array_equal(both.target, [3, 1, 4, 1, 5, 9])
        raw = load(pixel_range=None).data
        assert_array_equal(raw, stored["X_train"].reshape(4, -1))

    def test_unknown_subset(self, folder):
        write(folder, "mnist", **digits(0, 255, np.uint8, (28, 28)))
        with pytest.raises(ValueError, match=r'"train", "test" or "all"; got .val.'):
            datasets.load_mnist(subset="val")

    @pytest.mark.parametrize(("name", "width"), [("abalone", 10), ("boston", 13), ("lidar", 1)])
    def test_tables(self, folder, name, width):
        rng = np.random.default_rng(0)
        X, y = rng.normal(5, 3, size=(20, width)), rng.normal(size=20)
        X[:, 0] = 7.0 if width > 1 else X[:, 0]
        write(folder, name, X=X, y=y)
        load = getattr(datasets, f"load_{name}")
        table = load()
        assert_array_equal(table.data, X)
        assert_array_equal(table.target, y)
        assert len(table.feature_names) == width
        assert table.DESCR
        scaled, target = load(standardize=True, return_X_y=True)
        assert_array_equal(target, y)
        assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
        constant = X.std(axis=0) == 0
        assert_allclose(scaled.std(axis=0), np.where(constant, 0.0, 1.0))

    def test_curry_shots(self, folder):
        # Of the last five, one each is a season too early or late, and one is too far.
        distance = np.array([*np.linspace(1, 39, 20), 39.99, 5.0, 6.0, 40.0, 7.0])
        season = np.array([*np.resize(np.arange(2013, 2020), 21), 2012, 2020, 2015, 2010])
        write(folder, "curry_shots", dist_ft=distance, season_end_year=season)
        shots = datasets.load_curry_shots(n_train=15)
        assert shots.data.shape == (15, 1)
        assert shots.feature_names == ["distance"]
        assert_array_equal(shots.bounds, [[0, 40]])
        both = datasets.load_curry_shots(subset="all", n_train=15, normalize=False, return_X=True)
        assert_array_equal(np.sort(both[:, 0]), distance[:21])
        assert not np.array_equal(both[:, 0], distance[:21])
        assert_array_equal(both[:15] / 40, shots.data)
        test = datasets.load_curry_shots(subset="test", n_train=15, normalize=False, return_X=True)
        assert_array_equal(both[15:], test)

    def test_chicago_crimes(self, folder):
        x = np.random.default_rng(0).normal([-87.6, 41.8], [0.1, 0.05], size=(30, 2))
        write(folder, "chicago_crimes_2018", x=x)

        def load(subset, **options):
            load = datasets.load_chicago_crimes
            return load(subset=subset, n_train=12, n_test=5, return_X=True, **options)

        train, test, both = (load(subset) for subset in ("train", "test", "all"))
        assert (len(train), len(test), len(both)) == (12, 5, 30)
        assert_array_equal(np.concatenate([train, test]), both[:17])
        assert_array_equal(both.min(axis=0), [0, 0])
        assert_array_equal(both.max(axis=0), [1, 1])
        raw = load("all", normalize=False)
        assert_array_equal(np.sort(raw, axis=0), np.sort(x, axis=0))
        crimes = datasets.load_chicago_crimes(n_train=12, n_test=5)
        low, high = crimes.bounds.T
        assert_allclose(low + train * (high - low), raw[:12], rtol=1e-14)
        assert not np.array_equal(load("train", random_state=1), train)
        assert crimes.feature_names == ["longitude", "latitude"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"subset": "val"}, r'"train", "test" or "all"; got .val.'),
            ({"n_train": -1}, "n_train must be an integer of at least 0; got -1"),
            ({"n_test": 2.5}, "n_test must be an integer of at least 0; got 2.5"),
            ({"n_train": 25}, "exceed the 30 points that there are; together they are 31"),
        ],
    )
    def test_bad_splits(self, folder, options, message):
        write(folder, "chicago_crimes_2018", x=np.random.default_rng(0).normal(size=(30, 2)))
        with pytest.raises(ValueError, match=message):
            datasets.load_chicago_crimes(**{"n_train": 12, "n_test": 6, **options})

    def test_missing_array(self, folder):
        write(folder, "lidar", X=np.zeros((3, 1)))
        with pytest.raises(ValueError, match=r"must hold the arrays X, y; it lacks y"):
            datasets.load_lidar()

    @pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04broken"])
    def test_broken_file(self, folder, content):
        (folder / "lidar.npz").write_bytes(content)
        with pytest.raises(ValueError, match="is not a NumPy archive of plain arrays"):
            datasets.load_lidar()

    def test_single_array(self, folder):
        with (folder / "lidar.npz").open("wb") as stream:
            np.save(stream, np.zeros((3, 1)))
        with pytest.raises(ValueError, match="plain arrays: it is a single array"):
            datasets.load_lidar()

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    def test_damaged_file(self, folder, save):
        save(folder / "lidar.npz", X=np.arange(500.0)[:, None], y=np.zeros(500))
        content = bytearray((folder / "lidar.npz").read_bytes())
        content[200:260] = bytes(60)
        (folder / "lidar.npz").write_bytes(content)
        with pytest.raises(ValueError, match="is not a NumPy archive of plain arrays"):
            datasets.load_lidar()

    def test_pickled_objects_are_refused(self, folder):
        write(folder, "lidar", X=np.array([[object()]]), y=np.zeros(1))
        with pytest.raises(ValueError, match="is not a NumPy archive of plain arrays"):
            datasets.load_lidar()


class TestOpenML:
    def test_file_comes_first(self, openml, folder):
        write(folder, "mnist", **digits(0, 255, np.uint8, (28, 28)))
        datasets.load_mnist()
        assert not hasattr(openml, "query")

    @pytest.mark.parametrize("pandas", [True, False])
    def test_mnist_with_and_without_pandas(self, openml, monkeypatch, tmp_path, pandas):
        monkeypatch.setattr("parsimon.datasets._sources.find_spec", lambda name: pandas or None)
        images = np.zeros((60002, 4), dtype=np.int64)
        images[-1] = 255
        labels = np.full(60002, "7", dtype=object)
        labels[-2:] = ["8", "9"]
        openml.answer = Bunch(data=images, target=labels)
        X, y = datasets.load_mnist(subset="test", return_X_y=True, data_home=tmp_path)
        assert openml.query == {
            "data_id": 554,
            "as_frame": False,
            "parser": "pandas" if pandas else "liac-arff",
            "data_home": str(tmp_path),
        }
        assert_array_equal(X, [[0.0] * 4, [1.0] * 4])
        assert_array_equal(y, [8, 9])

    def test_usps_labels_start_at_one_there(self, openml):
        y = np.concatenate([np.repeat(np.arange(1, 11), USPS_TRAIN), [10, 1]])
        openml.answer = Bunch(data=np.full((7293, 256), -1.0), target=y.astype(str).astype(object))
        usps = datasets.load_usps(subset="test")
        assert_array_equal(usps.target, [9, 0])
        assert_array_equal(usps.data, np.zeros((2, 256)))

    def test_usps_in_another_order_is_refused(self, openml):
        openml.answer = Bunch(data=np.zeros((7293, 256)), target=np.full(7293, "1", dtype=object))
        with pytest.raises(ValueError, match="not in the order expected"):
            datasets.load_usps()

    # Of scikit-learn's parsers, one gives categories and the other their codes.
    @pytest.mark.parametrize("codes", [True, False])
    def test_abalone(self, openml, codes):
        names = ["Sex", "Length", "Diameter", "Height", *(f"w{i}" for i in range(4))]
        rows = [["I", *range(1, 8)], ["M", *range(11, 18)], ["F", *range(21, 28)]]
        data = np.array(rows, dtype=object)
        if codes:
            data[:, 0] = [1, 2, 0]
            data = data.astype(float)
        openml.answer = Bunch(
            data=data,
            target=np.array(["15", "7", "9"], dtype=object),
            feature_names=names,
            categories={"Sex": ["F", "I", "M"]},
        )
        X, y = datasets.load_abalone(return_X_y=True)
        assert_array_equal(X[:, :3], [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
        assert_array_equal(X[1, 3:], np.arange(11, 18))
        assert X.dtype == y.dtype == np.float64
        assert_array_equal(y, [15, 7, 9])

    @pytest.mark.parametrize("codes", [True, False])
    def test_boston(self, openml, codes):
        names = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE"]
        names += ["DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"]
        data = np.array([[i / 2 for i in range(13)]] * 2, dtype=object)
        data[:, 3], data[:, 8] = ["0", "1"], ["24", "3"]
        if codes:
            data[:, 3], data[:, 8] = [0, 1], [1, 2]
            data = data.astype(float)
        openml.answer = Bunch(
            data=data,
            target=np.array([24.0, 21.6]),
            feature_names=names,
            categories={"CHAS": ["0", "1"], "RAD": ["1", "24", "3"]},
        )
        boston = datasets.load_boston()
        assert_array_equal(boston.data[:, 3], [0, 1])
        assert_array_equal(boston.data[:, 8], [24, 3])
        assert_array_equal(boston.data[0, [0, 12]], [0.0, 6.0])
        assert_array_equal(boston.target, [24.0, 21.6])
        assert boston.feature_names == [name.lower() for name in names]


class TestNeither:
    @pytest.mark.parametrize("error", [URLError("no route to host"), ValueError("unknown id")])
    def test_no_network(self, openml, error):
        openml.answer = error
        with pytest.raises(FileNotFoundError) as caught:
            datasets.load_mnist()
        message = str(caught.value)
        assert "PARSIMON_DATA is not set" in message
        assert str(error) in message
        assert "folder with mnist.npz" in message
        assert "X_train, y_train, X_test, y_test" in message

    def test_no_file_in_the_folder(self, openml, folder):
        openml.answer = URLError("offline")
        with pytest.raises(FileNotFoundError, match=r"has no boston\.npz"):
            datasets.load_boston()

    @pytest.mark.parametrize("name", ["lidar", "curry_shots", "chicago_crimes"])
    def test_not_at_openml(self, openml, name):
        with pytest.raises(FileNotFoundError, match=rf"OpenML does not .* with {name}\w*\.npz"):
            getattr(datasets, f"load_{name}")()
        assert not hasattr(openml, "query")


class TestRealData:
    @pytest.mark.data("mnist")
    def test_mnist(self):
        X, y = datasets.load_mnist(return_X_y=True, dtype=np.float32)
        assert X.shape == (60000, 784)
        assert_allclose(X.mean(dtype=np.float64), 0.13066, atol=1e-5)
        assert_array_equal(np.bincount(y)[:3], [5923, 6742, 5958])
        assert datasets.load_mnist(subset="test").data.shape == (10000, 784)

    @pytest.mark.data("usps")
    def test_usps(self):
        usps = datasets.load_usps(subset="all")
        assert usps.data.shape == (9298, 256)
        assert usps.data.min() == 0
        assert usps.data.max() == 1
        assert_array_equal(np.bincount(usps.target[:7291]), USPS_TRAIN)

    @pytest.mark.data("abalone")
    def test_abalone(self):
        X, y = datasets.load_abalone(return_X_y=True)
        assert_array_equal(X[:, :3].sum(axis=0), [1528, 1307, 1342])
        assert_allclose(y.mean(), 9.9337, atol=1e-4)

    @pytest.mark.data("boston")
    def test_boston(self):
        X, y = datasets.load_boston(return_X_y=True)
        assert X.shape == (506, 13)
        assert_allclose([y.mean(), X[:, 0].mean()], [22.5328, 3.61352], atol=1e-4)

    @pytest.mark.data("lidar")
    def test_lidar(self):
        X, y = datasets.load_lidar(return_X_y=True)
        assert X.shape == (221, 1)
        assert (X.min(), X.max()) == (390, 720)
        assert_allclose([y.min(), y.max()], [-0.9496, 0.0269], atol=1e-4)

    @pytest.mark.data("curry_shots")
    def test_curry_shots(self):
        X = datasets.load_curry_shots(return_X=True)
        assert X.shape == (8298, 1)
        assert datasets.load_curry_shots(subset="test").data.shape == (980, 1)
        assert 0 < X.min() < X.max() < 1
        # The three-point line is at 22 to 23.75 feet: half of his shots are from behind it.
        assert 0.45 < (X > 22 / 40).mean() < 0.6

    @pytest.mark.data("chicago_crimes_2018")
    def test_chicago_crimes(self):
        crimes = datasets.load_chicago_crimes(subset="all")
        assert crimes.data.shape == (156385, 2)
        assert_allclose(crimes.bounds, [[-87.934, -87.525], [41.645, 42.023]], atol=1e-3)


def test_importing_parsimon_does_not_import_what_is_optional():
    code = (
        "import sys, parsimon, parsimon.datasets, parsimon.plotting; "
        "assert not {'matplotlib', 'tqdm'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
