# SPDX-License-Identifier: Apache-2.0
#
#   make demo            build the package and run examples/quickstart.py
#   make test            build the package and run the tests, on all cores
#   make bench           build the package and print the table of ratios
#   make docs            build the package and the site of docs/, in build/docs
#   make matrix          build the package and run the core suite with each Python that is here
#   make aarch64         compile the package for aarch64, and try it under qemu
#   make sanitize-quick  run the tests nearest to memory under AddressSanitizer and UBSan
#   make clean           remove the virtual environment and what the build left
#
# All of it happens in one virtual environment inside the checkout, so that the large packages are
# fetched and the core is compiled once. A second run starts at once: the files made-* in the
# environment record which interpreter it was made with and what was installed into it.
#
#   PYTHON=python3.12 make test     another interpreter (the environment is then made anew)
#   VENV=/elsewhere make test       another place for the environment
#   WORKERS=0 make test             one process (the default is one per core, eight at most)
#   PYTEST_ARGS='-k extend' make test
#                                   more arguments of pytest
#
# docs/development.md has more: sanitizers, fuzzers, threads.

PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= test
PYTEST_ARGS ?=
WORKERS ?= auto

# Empty where $(PYTHON) does not run; the recipe below then says so.
tag := $(shell $(PYTHON) -c 'import sys; print("%s-%d.%d.%d" % ((sys.implementation.name,) + sys.version_info[:3]))' 2>/dev/null)
native := pyproject.toml setup.py $(shell find bridge -name '*.pyx' -o -name '*.pxd' -o -name '*.h')
environment := $(VENV)/made-with-$(tag)
installed := $(VENV)/made-package-$(EXTRAS)
# The demo needs none of the other frameworks that the tests are run against.
shown := $(VENV)/made-package-demo
documented := $(VENV)/made-package-docs
run := $(VENV)/bin/python

.PHONY: demo test bench docs matrix aarch64 sanitize-quick clean help

help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' Makefile

demo: $(shown)
	@echo "Training a classifier on memory of a Caffe2 blob, in some 10 seconds:"
	@$(run) examples/quickstart.py

# Contiguous parts of the suite go to the workers, so that a file stays in one process mostly. The
# workers share the cores; threads of torch's beside them would only get in their way.
# What forks runs by itself: other frameworks' threads do not survive it.
test: $(installed)
	OMP_NUM_THREADS=1 $(run) -m pytest --numprocesses=$(WORKERS) --maxprocesses=8 --dist=worksteal \
		$(or $(PYTEST_ARGS),--ignore=tests/shared)
	$(if $(PYTEST_ARGS),,OMP_NUM_THREADS=1 $(run) -m pytest tests/shared)

bench: $(installed)
	$(run) -m tests.benchmarks

docs: $(documented)
	$(run) -m sphinx -W --keep-going -b html -d build/doctrees docs build/docs

sanitize-quick: $(installed)
	VENV="$(VENV)" WORKERS="$(WORKERS)" PYTEST_ARGS="$(PYTEST_ARGS)" tools/sanitize.sh quick

# Environments of its own, in build/matrix; $(PYTHON) only runs the tool.
matrix:
	$(PYTHON) tools/matrix.py

# On Debian, with packages that the script names.
aarch64:
	PYTHON=$(PYTHON) tools/aarch64.sh

clean:
	rm -rf $(VENV) .venv-fuzz .venv-threads build dist *.egg-info
	find bridge \( -name '*.so' -o -name '*.c' \) -exec rm -f {} +

# What a bare Debian or Ubuntu may lack is asked for by its package name before anything is made.
$(environment):
	@test -n "$(tag)" || { echo "$(PYTHON) does not run: install Python 3.10 or newer (apt-get install python3), or name one: PYTHON=/path/to/python3 make" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "$(PYTHON) is older than Python 3.10; name a newer one: PYTHON=python3.12 make" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || { echo "$(PYTHON) comes without Python.h, which the compiler needs: apt-get install python3-dev" >&2; exit 1; }
	@command -v $${CC:-cc} >/dev/null || { echo "There is no C compiler: apt-get install gcc libc6-dev" >&2; exit 1; }
	@test ! -e "$(VENV)" || test -e "$(VENV)/pyvenv.cfg" || { echo "$(VENV) exists and is no virtual environment: name another, VENV=... make" >&2; exit 1; }
	rm -rf "$(VENV)"
	$(PYTHON) -m venv "$(VENV)"
	@touch $@

# Editable, so that a changed .py needs no step; a changed .pyx, .pxd or .h compiles again. By a .pth
# file (compat), as type checkers read nothing else. Python compiles what is imported when it is
# imported: all of torch and SciPy would take half a minute.
$(VENV)/made-package-%: $(environment) constraints.txt $(native)
	@echo "Fetching what '$*' needs into $(VENV), then compiling some $(words $(filter %.pyx,$(native))) modules."
	@echo "The first time takes minutes, on two cores some ten; pip says nothing while it compiles."
	$(run) -m pip install --disable-pip-version-check --no-compile --constraint constraints.txt \
		--config-settings editable_mode=compat --editable '.[$*]'
	@touch $@
