"""Blocks of samples from files: what they hold, that memory stays flat, and what is refused."""

import gzip
import io
import sys
import tracemalloc
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from parsimon.stream import in_blocks, read_blocks

ROWS = 25
SIZE = np.round(np.linspace(-3, 9, ROWS), 3)
COUNT = np.arange(ROWS)
COLOUR = np.array(["red", "blue, dark", 'say "hi"', "grün", "_1"] * 5)
LABEL = np.array(["yes", "no", "no", "yes", "no"] * 5)


def write_csv(path, *, text=True, delimiter=",", gap=None, header=True):
    names = ["size", "count", *(["colour"] if text else []), "label"]
    lines = [delimiter.join(names)] if header else []
    for i in range(ROWS):
        colour = '"' + COLOUR[i].replace('"', '""') + '"'
        size = "" if i == gap else str(SIZE[i])
        lines.append(
            delimiter.join([size, str(COUNT[i]), *([colour] if text else []), str(LABEL[i])])
        )
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return path


def write_arrow(path):
    arrow = pytest.importorskip("pyarrow")
    columns = {"size": SIZE, "count": COUNT, "colour": COLOUR, "label": LABEL}
    table = arrow.table({name: arrow.array(values) for name, values in columns.items()})
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=9)
    elif path.suffix == ".stream":
        with arrow.ipc.new_stream(path, table.schema) as file:
            file.write_table(table, max_chunksize=9)
    else:
        with arrow.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=9)
    return path


def whole(blocks):
    """Put the blocks of columns together again."""
    parts = list(blocks)
    X = {name: np.concatenate([X[name] for X, _ in parts]) for name in parts[0][0]}
    return X, np.concatenate([y for _, y in parts])


# -- CSV -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 7, 25, 1000])
def test_csv_of_mixed_columns(tmp_path, rows):
    blocks = read_blocks(write_csv(tmp_path / "a.csv"), "label", rows=rows)
    assert [len(y) for _, y in blocks] == [min(rows, ROWS - i) for i in range(0, ROWS, rows)]
    X, y = whole(blocks)  # for the second time
    assert list(X) == ["size", "count", "colour"]
    assert_array_equal(X["size"], SIZE)
    assert_array_equal(X["count"], COUNT)
    assert_array_equal(X["colour"], COLOUR)
    assert_array_equal(y, LABEL)
    assert blocks.n_samples is None


def test_csv_of_numbers_is_an_array(tmp_path):
    path = write_csv(tmp_path / "a.csv", text=False)
    ((X, _),) = read_blocks(path, "label")
    assert_array_equal(X, np.column_stack([SIZE, COUNT]))
    ((X, y),) = read_blocks(path, "count", columns=["size"])
    assert_array_equal(X, SIZE[:, None])
    assert y.dtype == np.int64
    ((X, y),) = read_blocks(path, "size", columns=["count", "label"])
    assert y.dtype == np.float64
    assert_array_equal(X["label"], LABEL)
    ((X, y),) = read_blocks(path, columns=["count"], frame="columns")
    assert y is None
    assert_array_equal(X["count"], COUNT)


def test_dialects_of_csv(tmp_path):
    expected = whole(read_blocks(write_csv(tmp_path / "a.csv"), "label"))
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    marked = tmp_path / "marked.csv"
    marked.write_bytes(b"\xef\xbb\xbf" + (tmp_path / "a.csv").read_bytes())
    for blocks in (
        read_blocks(packed, "label", rows=4),
        read_blocks(str(marked), "label", rows=4),
        read_blocks(write_csv(tmp_path / "a.tsv", delimiter="\t"), "label"),
        read_blocks(write_csv(tmp_path / "semi.csv", delimiter=";"), "label", delimiter=";"),
        read_blocks(io.BytesIO((tmp_path / "a.csv").read_bytes()), "label", format="csv"),
    ):
        X, y = whole(blocks)
        for name, values in expected[0].items():
            assert_array_equal(X[name], values)
        assert_array_equal(y, expected[1])
    bare = write_csv(tmp_path / "bare.csv", header=False)
    X, y = whole(read_blocks(bare, "3", header=False, rows=10))
    assert list(X) == ["0", "1", "2"]
    assert_array_equal(y, LABEL)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_target_that_is_named_by_a_number_is_no_feature(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        path.write_text("1,2,yes\n3,4,no\n")
    else:
        columns = {"0": [1.0, 3.0], "1": [2.0, 4.0], "2": ["yes", "no"]}
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)
    ((X, y),) = read_blocks(path, 2, header=False)
    assert_array_equal(X, [[1, 2], [3, 4]])
    assert y.tolist() == ["yes", "no"]


def test_csv_from_the_standard_input(tmp_path, monkeypatch):
    with write_csv(tmp_path / "a.csv").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        X, _ = whole(read_blocks("-", "label", format="csv", rows=4))
        assert_array_equal(X["colour"], COLOUR)
        assert not file.closed


def test_numbers_that_are_missing_are_nan(tmp_path):
    X, _ = whole(read_blocks(write_csv(tmp_path / "a.csv", gap=3), "label", rows=2))
    assert_array_equal(np.flatnonzero(np.isnan(X["size"])), [3])
    assert_array_equal(np.delete(X["size"], 3), np.delete(SIZE, 3))


def test_numbers_that_are_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("code,x,label\n007,1_0,1\n008,2_0,2\n")
    ((X, y),) = read_blocks(path, "label", text=["code", "label"])
    assert X["code"].tolist() == ["007", "008"]
    assert X["x"].tolist() == ["1_0", "2_0"]
    assert y.tolist() == ["1", "2"]
    ((X, y),) = read_blocks(path, "label", columns=["code"])
    assert_array_equal(X, [[7], [8]])
    assert_array_equal(y, [1, 2])


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "is empty"),
        ("a,a\n1,2\n", {}, "two columns of the same name: a, a"),
        ("a,b\n1,2\n", {"target": "c"}, "has no column 'c'; it has 'a', 'b'"),
        ("a,b\n1,2\n", {"columns": ["z"]}, "has no column 'z'"),
        ("a,b\n1,2\n", {"text": ["z"]}, "has no column 'z'"),
        ("a,b\n1,2\n1,2,3\n", {}, "3 fields in or before line 3, where there are 2 columns"),
        ("a,b\n1,2\nx,3\n", {"rows": 1}, "numbers in the first rows of the column 'a'"),
        ("a,b\n1,2\n1,\n", {"target": "b"}, "rows without a value in the target column 'b'"),
        ("a,b\n1,x\n1,\n", {"target": "b"}, "rows without a value in the target column 'b'"),
        ("a,b\n1,x\n", {"frame": "array"}, "there is text in the columns 'b'"),
    ],
)
def test_csv_that_cannot_be_read(tmp_path, text, options, message):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        list(read_blocks(path, **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "a.xyz"}, "format of 'a.xyz' is not known; give format, one of csv, parquet"),
        ({"rows": 0}, "rows must be an integer of at least 1; got 0"),
        ({"format": "xml"}, "format must be one of 'csv'"),
        ({"frame": "dask"}, "frame must be one of 'auto'"),
        ({"columns": "size"}, "columns must be a sequence of names; got 'size'"),
        ({"header": 1}, "header must be True or False; got 1"),
        ({"n_features": 0}, "n_features must be an integer of at least 1; got 0"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        read_blocks(**{"source": "a.csv", **options})


# -- Parquet and Arrow -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".stream"])
@pytest.mark.parametrize("frame", ["auto", "pandas", "polars"])
def test_arrow_files_hold_what_csv_does(tmp_path, suffix, frame):
    if frame != "auto":
        pytest.importorskip(frame)
    path = write_arrow(tmp_path / f"a{suffix}")
    kind = "arrow" if suffix == ".stream" else None
    blocks = read_blocks(path, "label", rows=4, frame=frame, format=kind)
    assert all(len(y) <= 4 for _, y in blocks)
    if frame != "auto":
        assert all(type(X).__module__.startswith(frame) for X, _ in blocks)
    X, y = whole((({name: X[name] for name in ("size", "count", "colour")}), y) for X, y in blocks)
    assert_array_equal(X["size"], SIZE)
    assert_array_equal(X["count"], COUNT)
    assert_array_equal(X["colour"], COLOUR)
    assert_array_equal(y, LABEL)
    assert blocks.n_samples == (ROWS if suffix == ".parquet" else None)


def test_arrow_files_of_numbers_are_arrays(tmp_path):
    path = write_arrow(tmp_path / "a.parquet")
    parts = list(read_blocks(path, "count", columns=["size"], rows=10))
    assert_array_equal(np.concatenate([X for X, _ in parts]), SIZE[:, None])
    assert_array_equal(np.concatenate([y for _, y in parts]), COUNT)


def test_parquet_from_a_pipe(tmp_path, monkeypatch):
    class Pipe(io.BytesIO):
        def seekable(self):
            return False

    pipe = Pipe(write_arrow(tmp_path / "a.parquet").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
    X, y = whole(read_blocks("-", "label", format="parquet"))
    assert_array_equal(X["colour"], COLOUR)
    assert_array_equal(y, LABEL)


def test_missing_values_of_arrow(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"n": [1, None, 3], "t": ["a", None, "c"], "y": [1, 2, None]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a.parquet")
    ((X, _),) = read_blocks(tmp_path / "a.parquet", columns=["n", "t"])
    assert_array_equal(X["n"], [1, np.nan, 3])
    assert X["t"].tolist() == ["a", None, "c"]
    with pytest.raises(ValueError, match="rows without a value in the target column 'y'"):
        list(read_blocks(tmp_path / "a.parquet", "y"))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_without_a_library_only_what_needs_it_fails(tmp_path, monkeypatch, library):
    path = write_csv(tmp_path / "a.csv")
    arrow = write_arrow(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, library, None)
    assert len(list(read_blocks(path, "label"))) == 1
    extra = "arrow" if library == "pyarrow" else library
    options = {"frame": "auto" if library == "pyarrow" else library}
    with pytest.raises(ImportError, match=rf"needs {library}.*pip install 'parsimon\[{extra}\]'"):
        list(read_blocks(arrow, "label", **options))
    if library != "pyarrow":
        with pytest.raises(ImportError, match=rf"pip install 'parsimon\[{extra}\]'"):
            list(read_blocks(path, "label", **options))


# -- svmlight --------------------------------------------------------------------------------------


@pytest.fixture
def numbers():
    random = np.random.default_rng(0)
    X = np.where(random.random((ROWS, 6)) < 0.4, random.normal(size=(ROWS, 6)).round(3), 0)
    X[0, 0], X[3, 5] = 0.5, 0.25
    return sparse.csr_matrix(X), random.integers(0, 3, ROWS)


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_svmlight(tmp_path, numbers, zero_based, rows):
    path = tmp_path / "a.svm"
    dump_svmlight_file(*numbers, str(path), zero_based=zero_based, comment="of a test")
    expected, targets = load_svmlight_file(str(path), zero_based=zero_based)
    parts = list(read_blocks(path, rows=rows))
    assert all(sparse.issparse(X) and X.shape[0] <= rows for X, _ in parts)
    assert_array_equal(sparse.vstack([X for X, _ in parts]).toarray(), expected.toarray())
    y = np.concatenate([y for _, y in parts])
    assert y.dtype == np.int64
    assert_array_equal(y, targets)


def test_svmlight_from_a_pipe_needs_the_number_of_features(tmp_path, numbers):
    X, y = numbers
    dump_svmlight_file(X, y + 0.5, str(tmp_path / "a.svm"), zero_based=False)
    text = (tmp_path / "a.svm").read_bytes()
    with pytest.raises(ValueError, match=r"can be read only once.*give n_features"):
        list(read_blocks(io.BytesIO(text), format="svmlight"))
    ((found, targets),) = read_blocks(io.BytesIO(text), format="svmlight", n_features=6)
    assert_array_equal(found.toarray(), X.toarray())
    assert_array_equal(targets, y + 0.5)
    dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=True)
    with pytest.raises(ValueError, match="has a feature 0"):
        list(read_blocks(tmp_path / "a.svm", n_features=6))
    (tmp_path / "a.svm").write_text("1 2:x\n")
    with pytest.raises(ValueError, match="is no svmlight file"):
        list(read_blocks(tmp_path / "a.svm"))


# -- NumPy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_is_mapped(tmp_path, order, monkeypatch):
    table = np.asarray(np.random.default_rng(0).normal(size=(ROWS, 4)), order=order)
    np.save(tmp_path / "a.npy", table)
    monkeypatch.setattr("parsimon.stream._npy._MAPPED_BYTES", 600)  # opened again on the way
    for target, rest in ((-1, [0, 1, 2]), (1, [0, 2, 3])):
        blocks = read_blocks(tmp_path / "a.npy", target, rows=4)
        assert blocks.n_samples == ROWS
        parts = list(blocks)
        assert_array_equal(np.concatenate([X for X, _ in parts]), table[:, rest])
        assert_array_equal(np.concatenate([y for _, y in parts]), table[:, target])
    parts = [X for X, _ in read_blocks(tmp_path / "a.npy", rows=4)]
    assert_array_equal(np.concatenate(parts), table)
    assert all(type(X) is np.ndarray for X in parts)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_is_read_row_by_row(tmp_path, save):
    X = np.random.default_rng(0).normal(size=(ROWS, 4)).astype(np.float32)
    save(tmp_path / "a.npz", X=X, y=LABEL)
    parts = list(read_blocks(tmp_path / "a.npz", "y", rows=4))
    assert_array_equal(np.concatenate([X for X, _ in parts]), X)
    assert_array_equal(np.concatenate([y for _, y in parts]), LABEL)
    only = [X for X, _ in read_blocks(tmp_path / "a.npz", columns=["X"], rows=4)]
    assert_array_equal(np.concatenate(only), X)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"X": np.ones((2, 2)), "z": [1, 2], "y": [1, 2]}, {"target": "y"}, "name the one of the"),
        ({"X": np.ones((2, 2)), "y": [1, 2, 3]}, {"target": "y"}, "2 samples, but 3 targets"),
        ({"X": np.ones((2, 3)).T, "y": [1, 2, 3]}, {"target": "y"}, "cannot be read row by row"),
        ({"X": np.ones((2, 2))}, {"target": "y"}, "has no column 'y'"),
    ],
)
def test_npz_that_cannot_be_read(tmp_path, arrays, options, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        list(read_blocks(tmp_path / "a.npz", **options))


def test_npy_that_cannot_be_read(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    with pytest.raises(ValueError, match="has 2 columns; the target 2 is none"):
        list(read_blocks(tmp_path / "a.npy", 2))
    with pytest.raises(ValueError, match="must be the number of one, from 0 on; got 'label'"):
        list(read_blocks(tmp_path / "a.npy", "label"))
    with pytest.raises(ValueError, match="cannot be mapped to memory"):
        list(read_blocks(io.BytesIO(), 0, format="numpy"))
    np.save(tmp_path / "a.npy", np.ones(3))
    with pytest.raises(ValueError, match="one sample per row; its array has the shape"):
        list(read_blocks(tmp_path / "a.npy", 0))


# -- memory ----------------------------------------------------------------------------------------


def peak(blocks):
    tracemalloc.start()
    try:
        assert sum(len(y) for _, y in blocks) in (1000, 10_000)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def small_and_large(tmp_path, suffix):
    for rows in (1000, 10_000):
        path = tmp_path / f"{rows}{suffix}"
        X, y = np.random.default_rng(0).normal(size=(rows, 10)), np.arange(rows) % 2
        if suffix == ".csv":
            table = np.column_stack([X, y])
            names = ",".join("abcdefghijy")
            np.savetxt(path, table, delimiter=",", header=names, comments="")
        elif suffix == ".svm":
            dump_svmlight_file(X, y, str(path))
        elif suffix == ".npy":
            np.save(path, np.column_stack([X, y]))
        else:
            np.savez_compressed(path, X=X, y=y)
        target = {".npy": -1, ".svm": None}.get(suffix, "y")
        list(read_blocks(path, target, rows=100))  # what is imported on the way is no part of it
        yield read_blocks(path, target, rows=100)


@pytest.mark.parametrize("suffix", [".csv", ".svm", ".npy", ".npz"])
def test_a_file_ten_times_as_long_needs_no_more_memory(tmp_path, suffix):
    small, large = map(peak, small_and_large(tmp_path, suffix))
    assert large < 1.5 * small + 50_000


def test_parquet_ten_times_as_long_needs_no_more_memory(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet, peaks = pytest.importorskip("pyarrow.parquet"), []
    for rows in (20_000, 200_000):
        columns = {name: np.random.default_rng(0).normal(size=rows) for name in "abcdef"}
        path = tmp_path / f"{rows}.parquet"
        parquet.write_table(arrow.table(columns), path, row_group_size=10_000)
        largest = 0
        for _ in read_blocks(path, "a", rows=1000):
            largest = max(largest, arrow.total_allocated_bytes())
        peaks.append(largest)
    assert peaks[1] < 1.5 * peaks[0]


def test_blocks_of_what_is_in_memory():
    X, y = np.arange(10.0)[:, None], np.arange(10)
    for samples in (X, sparse.csr_matrix(X), {"x": X[:, 0]}):
        parts = list(in_blocks(samples, y, rows=4))
        assert [len(y) for _, y in parts] == [4, 4, 2]
        last = parts[-1][0]
        last = last["x"] if isinstance(last, dict) else last
        last = last.toarray() if sparse.issparse(last) else last
        assert_array_equal(np.ravel(last), [8, 9])
    assert [y for _, y in in_blocks(X, rows=5)] == [None, None]
    arrow = pytest.importorskip("pyarrow")
    parts = [X for X, _ in in_blocks(arrow.table({"x": X[:, 0]}), y, rows=4)]
    assert parts[-1]["x"].to_pylist() == [8, 9]


def test_text_in_memory_and_a_column_that_is_empty_at_first():
    text = io.StringIO("size,city,label\n1,,yes\n2,,no\n,Rome,yes\n")
    blocks = list(read_blocks(text, "label", rows=2, format="csv"))
    assert_array_equal(blocks[0][0], [[1, np.nan], [2, np.nan]])
    assert blocks[1][0]["city"].tolist() == ["Rome"]


@pytest.mark.parametrize("source", [io.BytesIO(b"a,b\n"), io.StringIO("a,b\n")])
def test_what_is_in_memory_has_no_address_in_messages(source):
    name = type(source).__name__
    with pytest.raises(ValueError, match=f"format of the {name} that was given is not known"):
        read_blocks(source)
    with pytest.raises(ValueError, match=f"^The {name} that was given has no column 'c'"):
        list(read_blocks(source, "c", format="csv"))


def test_decimals_of_parquet_are_numbers(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    values = [Decimal("1.50"), None, Decimal("2.25")]
    table = arrow.table({"price": values, "paid": [Decimal(k) for k in range(3)]})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "a.parquet")
    ((X, y),) = read_blocks(tmp_path / "a.parquet", "paid")
    assert_array_equal(X, [[1.5], [np.nan], [2.25]])
    assert y.dtype == np.float64
