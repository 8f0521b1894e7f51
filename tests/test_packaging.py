"""The sdist, the wheel and the C++ install tree, used the way a stranger would use them."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import parsimon

ROOT = Path(__file__).resolve().parents[1]
EXECUTABLE = ".exe" if os.name == "nt" else ""
# Where pip asks the package registry, it is not kept from the network (tests/offline).
REGISTRY = {"PYTHONPATH": ""}

USE_IT = """
import pathlib, sys
import numpy as np
import parsimon

assert pathlib.Path(parsimon.__file__).is_relative_to(sys.prefix), parsimon.__file__
assert (pathlib.Path(parsimon.get_include()) / "parsimon" / "version.hpp").is_file()
print(parsimon.__version__, parsimon.build_info()["build_type"])

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 400)
X = rng.normal(size=(400, 2)) + 6.0 * y[:, None]
model = parsimon.POLKClassifier(random_state=0).fit(X, y)
assert model.score(X, y) > 0.95
model.save("model.parsimon")
assert (parsimon.load("model.parsimon").predict(X) == model.predict(X)).all()
"""

LOAD_WHAT_CXX_SAVED = """
import numpy as np
import parsimon

table = np.loadtxt("predictions.txt")
model = parsimon.load("model.parsimon")
np.testing.assert_allclose(model.decision_function(table[:, :2]), table[:, 2], rtol=0, atol=1e-12)
"""


def tool(name):
    path = shutil.which(name, path=os.pathsep.join([sysconfig.get_path("scripts"), os.defpath]))
    path = path or shutil.which(name)
    if path is None:
        pytest.skip(f"needs {name}: pip install {name}")
    return path


def run(*command, cwd, **environment):
    """Run a command and return what it printed; on failure, show it."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}"
    return done.stdout


def cmake_build(source, build, *options):
    cmake = tool("cmake")
    generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"]
    run(cmake, "-S", source, "-B", build, *generator, *options, cwd=source)
    run(cmake, "--build", build, cwd=source)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The sdist and, built from it in isolation, a wheel.

    When PARSIMON_WHEEL names a wheel to test, this one only has to show that the sdist is complete,
    so it is compiled quickly.
    """
    out = tmp_path_factory.mktemp("dist")
    quick = [
        "-Ccmake.define.PARSIMON_SIMD_LEVELS=baseline",
        "-Ccmake.build-type=Debug",
        "-Ccmake.define.CMAKE_CXX_FLAGS_DEBUG=-O0",
    ]
    options = quick if "PARSIMON_WHEEL" in os.environ else []
    run(sys.executable, "-m", "build", "--outdir", out, *options, ROOT, cwd=out, **REGISTRY)
    (sdist,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def wheel(request):
    if "PARSIMON_WHEEL" in os.environ:
        return Path(os.environ["PARSIMON_WHEEL"])
    return request.getfixturevalue("distributions")[1]


@pytest.fixture(scope="module")
def installation(tmp_path_factory, wheel):
    """An interpreter whose environment holds the wheel and what it requires, and the seconds."""
    folder = tmp_path_factory.mktemp("empty")
    start = time.perf_counter()
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / f"python{EXECUTABLE}"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=folder, **REGISTRY)
    return python, time.perf_counter() - start


@pytest.fixture(scope="module")
def empty_python(installation):
    return installation[0]


@pytest.mark.slow
def test_wheel_works_in_an_empty_environment(empty_python, tmp_path):
    printed = run(empty_python, "-I", "-W", "error", "-c", USE_IT, cwd=tmp_path)
    assert printed.split() == [parsimon.__version__, "Release"]


@pytest.mark.slow
def test_a_new_reader_needs_less_than_five_minutes_for_each_part_of_getting_started(
    installation, tmp_path, capsys
):
    python, installing = installation
    page = (ROOT / "docs" / "getting_started.md").read_text(encoding="utf-8")
    parts = {}
    for part in page.split("\n## ")[1:]:
        blocks = re.findall(r"^```python\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
        if blocks:
            parts[part.splitlines()[0]] = "".join(blocks)
    assert list(parts) == [
        "A first model",
        "A first stream",
        "Save it, and go on",
        "Take it elsewhere",
    ]
    lines = ["import json, time", "taken = {}"]
    for part, code in parts.items():
        lines += [
            "start = time.perf_counter()",
            code,
            f"taken[{part!r}] = time.perf_counter() - start",
        ]
    lines.append("print(json.dumps(taken))")
    (tmp_path / "page.py").write_text("\n".join(lines), encoding="utf-8")
    printed = run(python, "-I", "-W", "error", tmp_path / "page.py", cwd=tmp_path)

    taken = {"Install": installing, **json.loads(printed.splitlines()[-1])}
    with capsys.disabled():
        print("\n" + "\n".join(f"  {part}: {each:.1f} s" for part, each in taken.items()))
    assert max(taken.values()) < 300
    (tmp_path / "main.c").write_text(
        '#include "moons.h"\nint main(void) { return moons_self_test(); }'
    )
    run(tool("cc"), "-std=c99", "main.c", "-o", "main", "-lm", cwd=tmp_path)
    run(tmp_path / "main", cwd=tmp_path)


@pytest.mark.slow
def test_python_loads_what_the_example_built_against_the_wheel_saved(empty_python, tmp_path):
    source = shutil.copytree(ROOT / "cpp" / "examples", tmp_path / "example")
    cmake_dir = run(empty_python, "-I", "-m", "parsimon", "--cmake-dir", cwd=tmp_path).strip()
    cmake_build(source, tmp_path / "build", f"-Dparsimon_DIR={cmake_dir}")
    program = tmp_path / "build" / f"train_and_save{EXECUTABLE}"
    run(program, "model.parsimon", "predictions.txt", cwd=tmp_path)
    run(empty_python, "-I", "-W", "error", "-c", LOAD_WHAT_CXX_SAVED, cwd=tmp_path)

    table = np.loadtxt(tmp_path / "predictions.txt")
    done = subprocess.run(
        [tmp_path / "build" / f"predict{EXECUTABLE}", "raw", tmp_path / "model.parsimon"],
        input="\n".join(f"{x!r} {y!r}" for x, y in table[:, :2].tolist()),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert_allclose(np.array(done.stdout.split(), dtype=float), table[:, 2], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_cmake_install_gives_a_package_without_python(tmp_path):
    site_packages = sysconfig.get_path("purelib")
    cmake_build(ROOT, tmp_path / "build", f"-DCMAKE_PREFIX_PATH={site_packages}")
    prefix = tmp_path / "prefix"
    run(tool("cmake"), "--install", tmp_path / "build", "--prefix", prefix, cwd=tmp_path)
    assert (prefix / "include" / "eigen3" / "Eigen" / "Core").is_file()
    assert not list(prefix.rglob("*.so"))

    shutil.rmtree(tmp_path / "build")
    moved = prefix.rename(tmp_path / "moved")
    source = shutil.copytree(ROOT / "cpp" / "examples", tmp_path / "example")
    options = [f"-DCMAKE_PREFIX_PATH={moved}", "-DCMAKE_BUILD_TYPE=Debug"]
    cmake_build(source, tmp_path / "example-build", *options)
    run(tmp_path / "example-build" / f"train_and_save{EXECUTABLE}", cwd=tmp_path)
    assert (tmp_path / "model.parsimon").is_file()


@pytest.mark.slow
def test_sdist_holds_the_sources_and_no_eigen(distributions):
    with tarfile.open(distributions[0]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    wanted = {"CMakeLists.txt", "LICENSE", "README.md", "licenses/Eigen-MPL-2.0.txt"}
    for folder in ("cpp", "python", "cmake", "tests"):
        wanted |= {
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / folder).rglob("*")
            if path.suffix in {".py", ".pyi", ".hpp", ".cpp", ".txt", ".cmake", ".in"}
        }
    assert wanted <= names
    assert not [
        name
        for name in names
        if re.search(r"(^|/)(Eigen|eigen3|build|\.venv|\.git|__pycache__)/|\.(so|pyd|whl)$", name)
    ]


@pytest.mark.slow
def test_wheel_carries_eigen_and_its_licence(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    assert {
        "parsimon/py.typed",
        "parsimon/include/parsimon/types.hpp",
        "parsimon/include/parsimon/predict.hpp",
        "parsimon/include/eigen3/Eigen/Core",
        "parsimon/include/eigen3/licenses/Eigen-MPL-2.0.txt",
        "parsimon/share/cmake/parsimon/parsimonConfig.cmake",
    } <= names
    top = {name.split("/")[0] for name in names}
    assert top == {"parsimon", metadata.split("/")[0]}
    assert not [name for name in names if "unsupported" in name or name.endswith(".cpp")]
    required = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", text, re.MULTILINE)
    assert sorted(required) == ["numpy", "scikit-learn", "scipy", "threadpoolctl"]


def test_make_installs_what_an_isolated_build_requires():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    required = re.search(r"^requires = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)[1]
    installed = re.search(r"^build = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)[1]
    assert set(re.findall(r'"(.*?)"', required)) <= set(re.findall(r'"(.*?)"', installed))


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == parsimon.__version__


def test_build_info_says_what_was_built():
    info = parsimon.build_info()
    assert info["version"] == parsimon.__version__
    assert info["simd"] in info["simd_available"]
    assert info["eigen"].startswith("3.4.")
    assert info["cxx_standard"] >= 17
    assert info["compiler"]
    assert info["build_type"]


@pytest.mark.parametrize("level", parsimon.build_info()["simd_available"])
def test_every_instruction_set_loads(level, tmp_path):
    program = "import parsimon; print(parsimon.build_info()['simd'])"
    assert run(sys.executable, "-c", program, cwd=tmp_path, PARSIMON_SIMD=level).strip() == level


def test_unknown_instruction_set_is_refused_with_the_choice(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import parsimon"],
        env={**os.environ, "PARSIMON_SIMD": "mmx"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "PARSIMON_SIMD is 'mmx'" in done.stderr
    assert "baseline" in done.stderr


def test_the_include_dir_alone_is_enough_for_a_compiler(tmp_path):
    compiler = tool(os.environ.get("CXX", "c++"))
    folder = run(sys.executable, "-m", "parsimon", "--include-dir", cwd=tmp_path).strip()
    (tmp_path / "it.cpp").write_text("#include <parsimon/types.hpp>\nparsimon::Vector x;\n")
    run(compiler, "-std=c++17", "-fsyntax-only", f"-I{folder}", "it.cpp", cwd=tmp_path)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--cmake-dir", parsimon.get_cmake_dir()),
        ("--include-dir", parsimon.get_include()),
        ("--version", parsimon.__version__),
    ],
)
def test_command_line(option, expected, tmp_path):
    assert run(sys.executable, "-m", "parsimon", option, cwd=tmp_path).strip() == expected
