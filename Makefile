# make demo, make test: everything from a bare python3, a C++ compiler and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILD := build

CXX_FILES = $(shell find cpp -name '*.hpp' -o -name '*.cpp')
PY_DIRS = $(wildcard python tests bench docs)
# pytest of an environment: a process on every core, with one thread each.
PYTEST = OPENBLAS_NUM_THREADS=1 $(1)/bin/python -m pytest --numprocesses=auto --dist=worksteal
LOWEST := $(BUILD)/lowest
# Only the instruction sets that this machine runs: a wheel for all (pip wheel .) takes half as long
# again.
HAS = $(if $(shell grep -m1 -ow $(1) /proc/cpuinfo 2>/dev/null),;$(2))
SIMD_LEVELS := baseline$(call HAS,avx2,avx2)$(call HAS,avx512dq,avx512)
SOURCES := $(shell find cpp/include cpp/bindings cmake licenses python -type f ! -name '*.pyc') \
           CMakeLists.txt pyproject.toml README.md LICENSE

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export CMAKE_GENERATOR := Ninja

COMMA := ,
SPACE := $(subst ,, )

.NOTPARALLEL:
.PHONY: help demo test test-python test-cpp test-slow test-lowest lint format bench clean \
        sanitize sanitize-thread fuzz docs docs-serve test-docs wheel

help:
	@echo "make demo         train on a stream, compare with SVC, write demo.png"
	@echo "make test         linters, pytest and the C++ tests"
	@echo "                  (one of them: make lint, make test-python ARGS='-k komp', make test-cpp)"
	@echo "make test-slow    what takes minutes: statistical tests, and those of packaging"
	@echo "make test-lowest  pytest with the lowest versions that pyproject.toml declares"
	@echo "make bench        benchmarks"
	@echo "make sanitize     the C++ tests under the address and undefined-behaviour sanitizers"
	@echo "make sanitize-thread  those of threads under the thread sanitizer"
	@echo "make fuzz SECONDS=600  model files that are changed at random, with libFuzzer"
	@echo "make docs         the site, into build/docs (make docs-serve shows it)"
	@echo "make test-docs    the site in a browser: links, pictures, search (needs chromium)"
	@echo "make wheel        a wheel for any Linux of this processor, into build/wheelhouse, and its tests"
	@echo "make format       format all C++ and Python"
	@echo "make clean        remove everything that make built"
	@echo "PYTHON=python3.12 make ...  uses another interpreter (after make clean)"

demo: $(VENV)/.installed
	$(BIN)/python -m parsimon.demo

test: lint test-python test-cpp

test-python: SELECT = not slow
test-slow: SELECT = slow
test-python test-slow: $(VENV)/.dev
	PARSIMON_WHEEL="$$(ls $(CURDIR)/$(BUILD)/dist/*.whl)" \
	  $(call PYTEST,$(VENV)) -m "$(SELECT)" $(ARGS)

# The newest versions of all else deprecate what these old ones call: no deprecation is an error here, and
# the one test that runs a program with every warning as an error is left out.
test-lowest: $(VENV)/.dev
	$(BIN)/python -m venv --clear $(LOWEST)
	$(BIN)/python tests/declared.py > $(LOWEST)/versions.txt
	$(LOWEST)/bin/python -m pip install --quiet --only-binary=:all: \
	  --constraint $(LOWEST)/versions.txt "$$(ls $(BUILD)/dist/*.whl)[test]"
	$(call PYTEST,$(LOWEST)) -m "not slow" -W ignore::DeprecationWarning \
	  --deselect=tests/test_demo.py::test_shows_a_progress_bar_and_writes_where_it_is_told $(ARGS)

test-cpp: $(BUILD)/cpp/.stamp
	$(BIN)/cmake --build $(BUILD)/cpp
	$(BIN)/ctest --test-dir $(BUILD)/cpp --output-on-failure --parallel 2

lint: $(VENV)/.dev
	$(BIN)/ruff check $(PY_DIRS)
	$(BIN)/ruff format --check $(PY_DIRS)
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only --quiet $(PY_DIRS)
	$(BIN)/ruff format $(PY_DIRS)
	$(BIN)/clang-format -i $(CXX_FILES)

bench: $(VENV)/.dev
	$(BIN)/python -m pytest bench --benchmark-enable $(ARGS)

# Nothing is optimised much: compiling takes longer than running.
SANITIZE = $(BIN)/cmake -S . -B $(BUILD)/$(1) -DPARSIMON_TESTS=ON -DCMAKE_BUILD_TYPE=None \
	  -DCMAKE_PREFIX_PATH="$$(cat $(VENV)/.tools)" \
	  -DCMAKE_CXX_FLAGS="-O1 -g1 -fsanitize=$(2) -fno-sanitize-recover=all"

sanitize: $(VENV)/.tools
	$(call SANITIZE,sanitize,address$(COMMA)undefined)
	$(BIN)/cmake --build $(BUILD)/sanitize
	$(BIN)/ctest --test-dir $(BUILD)/sanitize --output-on-failure --parallel 2

# What several threads do: products of matrices, and models and their traces that they share. One
# test forks while there are threads, which the sanitizer takes for the end unless it is told.
THREADED := test_products test_threads
sanitize-thread: $(VENV)/.tools
	$(call SANITIZE,sanitize-thread,thread)
	$(BIN)/cmake --build $(BUILD)/sanitize-thread --target $(THREADED)
	TSAN_OPTIONS=die_after_fork=0 $(BIN)/ctest --test-dir $(BUILD)/sanitize-thread --output-on-failure \
	  -R '^($(subst $(SPACE),|,$(THREADED)))$$'

# Files of all algorithms, changed and changed again. Seeds are made; what is found stays in
# build/fuzz/corpus, and a file that breaks something is written to build/fuzz.
SECONDS ?= 60
FUZZ_CXX ?= clang++
FUZZ = $(FUZZ_CXX) -std=c++17 -O1 -g1 -DEIGEN_MPL2_ONLY -Icpp/include \
	  -isystem "$$(cat $(VENV)/.tools)/cmeel.prefix/include/eigen3" -pthread
fuzz: $(VENV)/.tools
	mkdir -p $(BUILD)/fuzz/corpus $(BUILD)/fuzz/seeds
	@echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' \
	  | $(FUZZ_CXX) -x c++ -fsanitize=fuzzer,address,undefined - -o $(BUILD)/fuzz/probe 2>/dev/null \
	  || { echo "make fuzz needs clang with libFuzzer, which is not here; on Debian, install clang" \
	       "and libclang-rt-dev. FUZZ_CXX names another compiler."; exit 1; }
	$(FUZZ) cpp/tests/make_seeds.cpp -o $(BUILD)/fuzz/make_seeds
	$(BUILD)/fuzz/make_seeds $(BUILD)/fuzz/seeds
	$(FUZZ) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	  cpp/tests/fuzz_reader.cpp -o $(BUILD)/fuzz/fuzz_reader
	$(BUILD)/fuzz/fuzz_reader -max_total_time=$(SECONDS) -timeout=20 -max_len=60000 \
	  -rss_limit_mb=2048 -artifact_prefix=$(BUILD)/fuzz/ -print_final_stats=1 \
	  $(BUILD)/fuzz/corpus $(BUILD)/fuzz/seeds

# The site is made of a copy, so that nothing is written beside its sources. It needs no network.
SITE := $(BUILD)/docs-source
docs: $(VENV)/.docs
	mkdir -p $(SITE)
	cp -r docs/. $(SITE)
	cp bench/README.md $(SITE)/bench.md
	cp CONTRIBUTING.md $(SITE)/contributing.md
	cp CHANGELOG.md $(SITE)/changelog.md
	OPENBLAS_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python -m sphinx -W --keep-going --quiet \
	  -b html -d $(BUILD)/docs-doctrees $(SITE) $(BUILD)/docs

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(BUILD)/docs 8000

test-docs: docs
	PARSIMON_BROWSER=required $(BIN)/python -m pytest docs/test_site.py $(ARGS)

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

# All instruction sets, in the oldest manylinux that this compiler's libraries allow; then installed
# in an environment of its own, where the tests run against it.
WHEELS := $(BUILD)/wheelhouse
wheel: $(VENV)/.tools
	rm -rf $(WHEELS)
	$(BIN)/python -m pip install --quiet --group wheel
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(WHEELS)/plain \
	  -Cbuild-dir=$(BUILD)/python-wheel .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m auditwheel repair --wheel-dir $(WHEELS) $(WHEELS)/plain/*.whl
	$(BIN)/python -m venv --clear $(WHEELS)/venv
	$(WHEELS)/venv/bin/python -m pip install --quiet "$$(ls $(CURDIR)/$(WHEELS)/*.whl)[test]"
	PARSIMON_WHEEL="$$(ls $(CURDIR)/$(WHEELS)/*.whl)" \
	  $(call PYTEST,$(CURDIR)/$(WHEELS)/venv) -m "not slow" $(ARGS)

clean:
	rm -rf $(VENV) $(BUILD) .mypy_cache .pytest_cache .ruff_cache

# What a build needs, in the environment itself rather than in pip's throw-away one: the paths of
# the headers stay the same, and a second build compiles only what has changed. The stamp holds the
# path of site-packages.
$(VENV)/.tools: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group build
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" > $@

$(BUILD)/dist/.stamp: $(VENV)/.tools $(SOURCES)
	rm -rf $(BUILD)/dist
	$(BIN)/python -m pip wheel --verbose --no-deps --no-build-isolation --wheel-dir $(BUILD)/dist \
	  -Cbuild-dir=$(BUILD)/python -Ccmake.define.PARSIMON_WERROR=ON \
	  -Ccmake.define.PARSIMON_SIMD_LEVELS="$(SIMD_LEVELS)" .
	touch $@

$(VENV)/.installed: $(BUILD)/dist/.stamp
	$(BIN)/python -m pip install --quiet "$$(ls $(BUILD)/dist/*.whl)[all]"
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps $(BUILD)/dist/*.whl
	touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet "$$(ls $(BUILD)/dist/*.whl)[dev]"
	touch $@

$(BUILD)/cpp/.stamp: $(VENV)/.tools
	$(BIN)/cmake -S . -B $(BUILD)/cpp -DPARSIMON_TESTS=ON -DPARSIMON_WERROR=ON \
	  -DCMAKE_PREFIX_PATH="$$(cat $(VENV)/.tools)"
	touch $@
