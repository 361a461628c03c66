# SPDX-License-Identifier: Apache-2.0
"""Compile every .pyx of the package; everything else is configured in pyproject.toml."""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

# `make sanitize` sets its own, and line numbers for the reports.
SANITIZED = "-fsanitize" in os.environ.get("CFLAGS", "")
OPTIMIZED = [] if SANITIZED else ["-O3", "-g0"]
# Corrects a function of Cython's.
FIRST_INCLUDED = "bridge/c10/list_append.h"
FLAGS = [
    *("-include", FIRST_INCLUDED),
    *OPTIMIZED,
    "-fno-math-errno",  # nobody reads it, and with it sqrt() is a call for each element
    # bridge/c10/slots.pxd sets tp_new and tp_vectorcall of some types; Cython's own
    # tp_vectorcall would bypass them.
    "-DCYTHON_VECTORCALL_TPNEW=0",
]

# Symbols that nobody looks up are a fifth of the size.
LINK_FLAGS = [] if SANITIZED else ["-Wl,-s"]

if sys.platform == "linux":
    FLAGS.append("-fno-plt")
elif sys.platform == "darwin":
    LINK_FLAGS = ["-Wl,-x"]

# docs/threads.md says what is safe without the lock that most Pythons have.
DIRECTIVES = {"freethreading_compatible": True}

setup(
    # On all cores, also when pip builds: a hundred modules take three minutes on one.
    options={"build_ext": {"cython_directives": DIRECTIVES, "parallel": True}},
    ext_modules=[
        Extension(
            ".".join(path.with_suffix("").parts),
            [str(path)],
            depends=[FIRST_INCLUDED],
            extra_compile_args=FLAGS,
            extra_link_args=LINK_FLAGS,
        )
        for path in sorted(Path("bridge").rglob("*.pyx"))
    ],
)
