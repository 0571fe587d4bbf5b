# tenfold: two commands on a fresh machine. `make demo` sets up and runs the main job, `make test` sets up and runs the tests.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
BENCH  := .venv-bench/.installed

.PHONY: demo test full spark spark-full venv lint types layers check notebooks notebooks-rendered lab agreement lock bench bench-check clean

demo: venv
	$(BIN)/tenfold demo --out demo-out

test: venv
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not full"

full: venv
	$(BIN)/python -m pytest -n 2 --dist loadfile

# Every shared step on DuckDB and on Spark; `make spark-full` with whole plans besides. Needs Java 17; downloads pyspark
# (450 MB) the first time.
spark: SPARK = -m "not full"
spark spark-full: venv
	@command -v java >/dev/null || { echo "make spark needs Java 17 or newer on PATH, such as the package openjdk-17-jre-headless"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-spark.lock
	$(BIN)/python -m pytest tests/spark $(SPARK)

venv: $(STAMP)

# requirements-peers.lock: litellm without its dependencies; tests read one JSON file of it and never import it.
$(STAMP): requirements.lock requirements-peers.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"tenfold needs Python 3.11 or newer; {sys.executable} is {v[0]}.{v[1]}. Try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-peers.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

lint: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: venv
	$(BIN)/basedpyright

layers: venv
	$(BIN)/lint-imports

notebooks: venv
	$(BIN)/python -m pytest -n 2 tests/notebooks

# What the notebooks show, for those who do not run them: notebooks/rendered/.
notebooks-rendered: venv
	$(BIN)/python tests/rendered_notebooks.py

lab: venv
	$(BIN)/jupyter lab notebooks

check: lint types layers

agreement: venv
	$(BIN)/python tests/prices/agreement.py

bench: $(BENCH)
	.venv-bench/bin/python -m benchmarks

$(BENCH): requirements-bench.lock pyproject.toml | venv
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(BENCH)

# 2,000,000 requests, a quarter of slack, nothing written; loops of litellm only where it is installed.
bench-check: venv
	$(BIN)/python -m benchmarks --check

lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --quiet -o requirements.lock
	uv pip compile pyproject.toml --extra dev --extra bench --universal --python-version 3.11 --generate-hashes --no-emit-index-url --quiet -o requirements-bench.lock
	printf 'pyarrow\npyspark\n' | uv pip compile - --constraints requirements.lock --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet -o requirements-spark.lock
	echo "litellm==1.110.2" | uv pip compile - --no-deps --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet -o requirements-peers.lock

clean:
	rm -rf $(VENV) .venv-bench demo-out dist
