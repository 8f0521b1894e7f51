"""Progress bars with tqdm, and without."""

import sys
import warnings

import pytest
from intensity_common import INTENSITIES, LINE, toy

from parsimon import POLKClassifier, _progress
from parsimon._progress import progress
from parsimon.datasets import make_multidist


@pytest.fixture
def without_tqdm(monkeypatch):
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(_progress, "_hint_given", False)


def work(**options):
    with progress(100, **options) as bar:
        for _ in range(4):
            bar.update(25)
            bar.set_postfix(model_order=12, loss=0.25)


def test_bar_shows_description_count_and_values(capsys):
    pytest.importorskip("tqdm")
    work(description="POLK")
    shown = capsys.readouterr().err
    assert "POLK: 100%" in shown
    assert "100/100" in shown
    assert "model_order=12, loss=0.25" in shown


def test_unknown_total(capsys):
    pytest.importorskip("tqdm")
    with progress(None) as bar:
        bar.update(7)
    assert "7.00 samples" in capsys.readouterr().err


def test_bar_is_closed_when_work_is_interrupted(capsys):
    pytest.importorskip("tqdm")
    with pytest.raises(KeyboardInterrupt), progress(10):
        raise KeyboardInterrupt
    assert capsys.readouterr().err.endswith("\n")


def test_disabled_bar_shows_nothing(capsys):
    work(enabled=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("without_tqdm")
def test_without_tqdm_one_hint_and_no_bar(capsys):
    with pytest.warns(UserWarning, match=r"pip install 'parsimon\[progress\]'") as caught:
        work(description="POLK")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        work(description="POLK")
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("without_tqdm")
def test_without_tqdm_a_disabled_bar_gives_no_hint():
    work(enabled=False)


def test_fit_shows_a_bar_if_it_is_verbose(capsys):
    pytest.importorskip("tqdm")
    X, y = make_multidist(300, random_state=0)
    POLKClassifier(epochs=1).fit(X, y)
    assert capsys.readouterr().err == ""
    POLKClassifier(epochs=1, verbose=1).fit(X, y)
    assert "100%" in capsys.readouterr().err


@pytest.mark.parametrize("cls", INTENSITIES)
def test_densities_show_a_bar_with_their_model_order(cls, capsys, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setenv("COLUMNS", "200")  # a bar is cut where the screen ends
    model = cls(**LINE).fit(toy())
    model.partial_fit(toy(), validation=toy()[:9])
    assert capsys.readouterr().err == ""
    model.set_params(verbose=1).fit(toy())
    shown = capsys.readouterr().err
    assert f"{cls.__name__}: 100%" in shown
    assert f"model_order={model.model_order_}" in shown
    model.partial_fit(toy())
    assert capsys.readouterr().err == ""
    model.set_params(verbose=2).partial_fit(toy())
    assert "100%" in capsys.readouterr().err


@pytest.mark.usefixtures("without_tqdm")
def test_fit_works_without_tqdm():
    X, y = make_multidist(300, random_state=0)
    with pytest.warns(UserWarning, match="Progress bars need tqdm"):
        POLKClassifier(epochs=1, verbose=1).fit(X, y)
