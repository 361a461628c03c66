# SPDX-License-Identifier: Apache-2.0
#
#   make demo            build the package and run examples/quickstart.py
#   make test            build the package and run the tests, on all cores
#   make test-shuffled   the same in a random order, which it prints as a seed
#   make bench           build the package and print the table of ratios
#   make docs            build the package and the site of docs/, in build/docs
#   make fuzz            build the package with clang and fuzz the reader of blobs and the doors
#   make sanitize        build the package with AddressSanitizer and UBSan, and run the tests of the
#                        core, exchange, blobs and operators and the doors on it, in an hour or two;
#                        make sanitize-quick runs a selection
#   make sanitize-threads
#                        build CPython without the GIL and the package with ThreadSanitizer, and run
#                        the tests of threads and a minute of stress on it; needs clang, 10 GB of
#                        disk where torch comes with CUDA's libraries, and PYTHON_SOURCE, an archive
#                        of CPython's sources, where python.org is far
#   make stress          build the package and have eight threads do random things to shared objects
#                        for ten minutes; a Python without the GIL (PYTHON=python3.14t) says most
#   make matrix          build the package and run the core suite with each Python from 3.10 to 3.15
#                        that is here, with and without the GIL, and say which were not found
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
#   FUZZ_SECONDS=3600 make fuzz     longer than a minute each; what is found stays in .venv-fuzz
#   FUZZ_DOORS=minidb make fuzz     some of the doors of tests/fuzz/doors.py
#   STRESS_SECONDS=60 make stress   another time
#   CLANG=clang-19 make fuzz        another clang; for sanitize-threads too
#   MATRIX='3.10 3.14t' make matrix
#                                   only these

PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= test
PYTEST_ARGS ?=
WORKERS ?= auto
FUZZ_VENV ?= .venv-fuzz
FUZZ_SECONDS ?= 60
FUZZ_DOORS ?= capsule table exchange_table array_interface array_struct cuda_interface producer \
	buffer arrow_array tensor_proto net operators minidb predictor chunks convert pickled shell
STRESS_SECONDS ?= 600
MATRIX ?=
SANITIZED ?= $(VENV)/sanitized
SANITIZED_TESTS ?= tests/dlpack tests/c10 tests/wire tests/exchange tests/at tests/see tests/tf \
	tests/libraries tests/caffe2/tensor tests/caffe2/blobs tests/caffe2/files \
	tests/test_wrapper.py tests/test_front.py tests/test_pickling.py \
	tests/test_exchange_table_export.py tests/test_exchange_table_import.py \
	tests/caffe2/operators tests/conformance/operators tests/fuzz
# What is nearest to memory and takes a few minutes of two cores with the build: sizes, descriptors,
# storages, allocators, and the structures that others hand in.
SANITIZED_QUICKLY ?= tests/c10 tests/dlpack tests/exchange/test_numpy.py \
	tests/exchange/test_buffer_import.py tests/exchange/test_arrow_import.py \
	tests/test_exchange_table_import.py
THREADS_VENV ?= .venv-threads
THREADS_SECONDS ?= 60
THREADS_TESTS ?= tests/test_threads.py tests/caffe2/tensor/test_tensor_threads.py \
	tests/caffe2/workspaces/test_feed_fetch_threads.py \
	tests/caffe2/workspaces/test_workspace_threads.py tests/exchange/test_concurrent_routes.py
CLANG ?= clang
PYTHON_SOURCE ?= https://www.python.org/ftp/python/3.14.7/Python-3.14.7.tar.xz

# Empty where $(PYTHON) does not run; the recipe below then says so.
tag := $(shell $(PYTHON) -c 'import sys; print("%s-%d.%d.%d" % ((sys.implementation.name,) + sys.version_info[:3]))' 2>/dev/null)
native := pyproject.toml setup.py $(shell find bridge -name '*.pyx' -o -name '*.pxd' -o -name '*.h')
environment := $(VENV)/made-with-$(tag)
installed := $(VENV)/made-package-$(EXTRAS)
# The demo needs none of the other frameworks that the tests are run against.
shown := $(VENV)/made-package-demo
documented := $(VENV)/made-package-docs
run := $(VENV)/bin/python
fuzzed := $(FUZZ_VENV)/made-fuzz
# Contiguous parts of the suite go to the workers, so that a file stays in one process mostly.
pytest := -m pytest --numprocesses=$(WORKERS) --maxprocesses=8 --dist=worksteal
# What libFuzzer reads, without what only its own main program has.
coverage := -fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp

# Builds a copy of the tree in a place of its own, as neither build may see what the other left, and
# runs the tests there: $(call sanitize,NAME,FLAGS,LIBRARY,OPTIONS,TESTS). The C files are those of
# the usual build, where it has made them. Python itself is not instrumented, so the library is
# loaded before it; libstdc++ too, whose exceptions it intercepts.
# pytest captures nothing (-s), or what a sanitizer says of a dying process would be lost.
sources := bridge tests tools examples docs pyproject.toml setup.py README.md LICENSE CHANGELOG.md \
	CONTRIBUTING.md Makefile
define sanitize
	rm -rf "$(SANITIZED)/$(1)"
	mkdir -p "$(SANITIZED)/$(1)"
	tar -c --exclude='*.so' --exclude=__pycache__ $(sources) | tar -x -C "$(SANITIZED)/$(1)"
	cd "$(SANITIZED)/$(1)" && CFLAGS="$(2) -g1 -fno-omit-frame-pointer" LDFLAGS="$(2)" \
		"$(abspath $(run))" setup.py -q build_ext --inplace --parallel $$(nproc) 2>build.log || { tail build.log >&2; exit 1; }
	cd "$(SANITIZED)/$(1)" && LD_PRELOAD="$$($${CC:-cc} -print-file-name=$(3)) $$($${CC:-cc} -print-file-name=libstdc++.so)" \
		OMP_NUM_THREADS=1 PYTHONPATH=. PYTHONMALLOC=malloc $(4) \
		"$(abspath $(run))" $(pytest) -s -p no:cacheprovider $(PYTEST_ARGS) $(5)
endef

.PHONY: demo test test-shuffled bench docs fuzz sanitize sanitize-quick sanitize-threads stress matrix clean help

help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' Makefile

demo: $(shown)
	$(run) examples/quickstart.py

# The workers share the cores; threads of torch's beside them would only get in their way.
test: $(installed)
	OMP_NUM_THREADS=1 $(run) $(pytest) $(PYTEST_ARGS)

test-shuffled: $(installed)
	OMP_NUM_THREADS=1 $(run) $(pytest) -p randomly $(PYTEST_ARGS)

bench: $(installed)
	$(run) -m tests.benchmarks

docs: $(documented)
	$(run) -m sphinx -W --keep-going -b html -d build/doctrees docs build/docs

fuzz: $(fuzzed)
	$(FUZZ_VENV)/bin/python tests/fuzz/fuzz_blob.py -max_total_time=$(FUZZ_SECONDS) \
		-artifact_prefix=$(FUZZ_VENV)/ $(FUZZ_VENV)/corpus
	for door in $(FUZZ_DOORS); do \
		$(FUZZ_VENV)/bin/python tests/fuzz/fuzz_door.py $$door -max_total_time=$(FUZZ_SECONDS) \
			-artifact_prefix=$(FUZZ_VENV)/$$door- $(FUZZ_VENV)/corpus-$$door || exit 1; done

# Leaks are not looked for: Python and the frameworks keep what they have until the process ends.
# Sizes that nobody can allocate are asked for on purpose. Paddle 3.3 deletes an array as a single
# object when the process ends, bridge or not (~IrContext in libpaddle); our modules are C, which has
# no two ways to allocate.
addresses = $(call sanitize,addresses,-fsanitize=address$(comma)undefined $(2),libasan.so,\
	ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0:allocator_may_return_null=1:alloc_dealloc_mismatch=0 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1,$(1))
comma := ,

sanitize: $(installed)
	$(call addresses,$(SANITIZED_TESTS),-O1)

sanitize-quick: $(installed)
	$(call addresses,$(SANITIZED_QUICKLY),-O0)

# Reads and writes that nothing orders are seen in instrumented code only, and what orders them, such
# as the locks of Python's objects, must be instrumented too: hence a Python of its own. What is said
# goes to files, as the tests look at standard error. Bytecode is kept: torch takes minutes to compile.
threaded := $(abspath $(THREADS_VENV))
threads_python := $(threaded)/python/bin/python3
threads_made := $(threaded)/made-python
reports := $(threaded)/reports

sanitize-threads: $(threads_made)
	rm -rf "$(threaded)/tree" "$(reports)"
	mkdir -p "$(threaded)/tree" "$(reports)"
	tar -c --exclude='*.so' --exclude=__pycache__ $(sources) | tar -x -C "$(threaded)/tree"
	"$(run)" -m pip install -q --disable-pip-version-check --constraint constraints.txt setuptools Cython
	cd "$(threaded)/tree" && "$(abspath $(run))" setup.py -q build_ext --only-write
	cd "$(threaded)/tree" && CC=$(CLANG) CFLAGS="-fsanitize=thread -O1 -g1" \
		"$(threads_python)" setup.py -q build_ext --inplace 2>build.log || { tail build.log >&2; exit 1; }
	cd "$(threaded)/tree" && export OMP_NUM_THREADS=1 PYTHONPATH=. PYTHONDONTWRITEBYTECODE= \
		TSAN_OPTIONS="suppressions=tests/helpers/thread_sanitizer.supp die_after_fork=0 log_path=$(reports)/of"; \
		"$(threads_python)" -m pytest -p no:cacheprovider $(PYTEST_ARGS) $(THREADS_TESTS) && \
		"$(threads_python)" -m tests.helpers.stress $(THREADS_SECONDS); \
		code=$$?; cat "$(reports)"/* 2>/dev/null && exit 1; exit $$code

# torch and NumPy are those of other Pythons: no instrumented ones are published. The usual Python
# installs them for the instrumented one, and writes the C code: pip and Cython are slow in that.
# The pip is the one that comes with the instrumented Python's sources: older ones, as a venv may have,
# take wheels for the stable ABI, which crash without the GIL.
platforms := import pip._vendor.packaging.tags as t; print(*("--platform=" + p for p in t.platform_tags()))
threads_abi := import sysconfig as s; print("--python-version", s.get_python_version(), "--abi", "cp" + s.get_config_var("SOABI").split("-")[1])
threads_packages := import sysconfig as s; print(s.get_path("platlib"))

$(threads_made): | $(environment)
	@command -v $(CLANG) >/dev/null || { echo "ThreadSanitizer needs clang: apt-get install clang, or CLANG=clang-19" >&2; exit 1; }
	rm -rf "$(threaded)"
	mkdir -p "$(threaded)/source"
	$(if $(filter http%,$(PYTHON_SOURCE)),curl -fsSL,cat) "$(PYTHON_SOURCE)" >"$(threaded)/source.tar.xz"
	tar -xf "$(threaded)/source.tar.xz" --strip-components 1 -C "$(threaded)/source"
	cd "$(threaded)/source" && ./configure -q --disable-gil --with-thread-sanitizer --without-ensurepip \
		--prefix="$(threaded)/python" CC=$(CLANG) CFLAGS=-O1 && \
		$(MAKE) -s -j $$(nproc) && $(MAKE) -s install COMPILEALL_OPTS=--help >install.log
	export PYTHONPATH="$$(echo "$(threaded)"/python/lib/python3*/ensurepip/_bundled/pip-*.whl)"; \
	"$(run)" -m pip install --disable-pip-version-check --no-compile --only-binary=:all: \
		--implementation cp $$("$(threads_python)" -c '$(threads_abi)') $$("$(run)" -c '$(platforms)') \
		--target "$$("$(threads_python)" -c '$(threads_packages)')" \
		numpy protobuf torch hypothesis ml_dtypes pytest setuptools Cython
	@touch $@

stress: $(installed)
	OMP_NUM_THREADS=1 $(run) -m tests.helpers.stress $(STRESS_SECONDS)

# Environments of its own, in build/matrix; $(PYTHON) only runs the tool.
matrix:
	$(PYTHON) tools/matrix.py $(MATRIX)

clean:
	rm -rf $(VENV) $(FUZZ_VENV) $(THREADS_VENV) build dist *.egg-info
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

# Editable, so that a changed .py needs no step; a changed .pyx, .pxd or .h compiles again. Python
# compiles what is imported when it is imported: all of torch and SciPy would take half a minute.
$(VENV)/made-package-%: $(environment) constraints.txt $(native)
	$(run) -m pip install --disable-pip-version-check --no-compile --constraint constraints.txt --config-settings editable_mode=compat --editable '.[$*]'
	@touch $@

# An environment of its own: the compiled modules tell libFuzzer what they cover, which only clang
# can make them do, and which slows them down. Built from a copy, so that neither build sees what
# the other left.
$(fuzzed): Makefile constraints.txt $(native) $(shell find bridge -name '*.py')
	@command -v $(CLANG) >/dev/null || { echo "Fuzzing needs clang: apt-get install clang, or CLANG=clang-19" >&2; exit 1; }
	rm -rf "$(FUZZ_VENV)/src"
	test -x "$(FUZZ_VENV)/bin/python" || $(PYTHON) -m venv "$(FUZZ_VENV)"
	mkdir -p "$(FUZZ_VENV)/src"
	cp -R bridge pyproject.toml setup.py README.md LICENSE "$(FUZZ_VENV)/src"
	find "$(FUZZ_VENV)/src" \( -name '*.so' -o -name '*.c' \) -exec rm -f {} +
	CC=$(CLANG) CFLAGS="$(coverage)" $(FUZZ_VENV)/bin/python -m pip install \
		--disable-pip-version-check --force-reinstall --constraint constraints.txt \
		atheris ml_dtypes pytest torch "$(FUZZ_VENV)/src"
	@touch $@
