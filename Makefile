# One place for what people and CI run. `make demo` and `make test` need Python 3.10-3.12, git and make.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
ARGS ?=
SECONDS ?= 60
JOBS ?= 2
TEST_PARTS = demo acting ways structure models core
PART_acting = tests/on_mindspore/test_[a-c]*.py
PART_demo = tests/on_mindspore/test_[d-m]*.py
PART_structure = tests/on_mindspore/test_[n-t]*.py
PART_ways = tests/on_mindspore/test_[u-z]*.py
PART_models = tests/models
PART_core = tests/test_*.py
BENCHMARKS = training_thread overhead read events export compare report rules watching ascend

FAULTS = build/faults

.PHONY: help demo test test-fast test-models lint format bench bench-quick bench-durability bench-faults bench-rules calibrate fuzz venv clean

help:
	@echo "make demo       train a small BERT under MindPulse and show its health report"
	@echo "make test       run the whole test suite        make test-fast  a subset in a minute or two"
	@echo "make test-models  MindFormers' LLaMA, GLM2, BERT and GPT-2, each in an environment of its own"
	@echo "make lint       ruff and mypy                   make format     ruff format"
	@echo "make bench      all benchmarks                  make bench-quick  each within a minute"
	@echo "make bench-durability  500 kills, 200 power losses, a million rows under three readers"
	@echo "make bench-rules  how good the rules are on recorded faults: ARGS=\"--part tune\", --explain RUN"
	@echo "make calibrate  fits the health score to recorded faults: ARGS=\"RECORDINGS --write\""
	@echo "make bench-faults  records the fault benchmark, hours; goes on where it was interrupted"
	@echo "make fuzz       fuzzes every reader, SECONDS=60 each"

venv:
	@$(PYTHON) tools/bootstrap.py --venv $(VENV)

demo: venv
	@$(BIN)/mindpulse demo bert $(ARGS)

# In parts: MindSpore keeps every graph that it compiled, so one process would grow to many gigabytes.
# Two parts at a time: compiling a graph keeps one core busy.
test: venv
	@if [ -n "$(ARGS)" ]; then $(BIN)/python -m pytest $(ARGS); else \
		$(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) --output-sync=target $(TEST_PARTS:%=.test-%); fi

.test-%:
	@$(BIN)/python -m pytest -p no:cacheprovider $(PART_$*)

test-fast: venv
	@$(BIN)/python -m pytest -m "not mindspore and not browser and not slow" $(ARGS)

test-models: venv
	@$(BIN)/python -m pytest tests/models $(ARGS)

lint: venv
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: venv
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: venv
	@for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py --json build/$$name.json || exit 1; done

bench-quick: venv
	@for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py --quick || exit 1; done

bench-durability: venv
	@$(BIN)/python benchmarks/durability.py --json build/durability.json

bench-rules: venv
	@$(BIN)/python -m benchmarks.faults.bench_rules $(ARGS)

calibrate: venv
	@$(BIN)/python -m benchmarks.faults.calibrate $(ARGS)

bench-faults: venv
	@$(BIN)/python -m benchmarks.faults.record $(FAULTS) --jobs 2 $(ARGS)

fuzz: venv
	@$(BIN)/python -m pip install -q -e .[fuzz]
	@$(BIN)/python fuzz/run.py --seconds $(SECONDS)

clean:
	rm -rf $(VENV) build summary demo-runs
