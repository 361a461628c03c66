# SPDX-License-Identifier: Apache-2.0
"""Compile every .pyx of the package; everything else is configured in pyproject.toml."""

import json
import os
import platform
import re
import sys
import sysconfig
from pathlib import Path
from typing import ClassVar

import Cython
import setuptools
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

# `make sanitize` sets its own, and line numbers for the reports.
SANITIZED = "-fsanitize" in os.environ.get("CFLAGS", "")
# Unwinding is for exceptions of C++, which no call of ours lets through: a twentieth of the size.
OPTIMIZED = [] if SANITIZED else ["-O2", "-g0", "-fno-asynchronous-unwind-tables"]
# A quarter smaller. Alone it makes a conversion take 1.15 to 1.3 of its time; the others inline
# small functions, align functions, and avoid slow instructions for strings (`rep stos`).
GCC = "clang" not in (os.environ.get("CC") or sysconfig.get_config_var("CC") or "")
SMALL = [] if SANITIZED or sys.platform == "win32" else ["-Os"]
if SMALL and GCC:
    SMALL += ["--param=max-inline-insns-size=20", "-falign-functions=16"]
    SMALL += ["-mstringop-strategy=libcall"] if platform.machine() == "x86_64" else []
# Modules whose calls take longer even so: doors, views, torch's tensors, tapes and loops.
FAST = re.compile(
    r"bridge\.(at\.(indexing|storage_ops|tensor)|c10\.(dims|raw_parts|storage|tensor_impl|views)"
    r"|exchange\.(numpy|torch_(export|views))|front|single|wire\.|.*_kernels$"
    r"|caffe2\.(blobs\.put|workspaces\.(feed_fetch|run_once))"
    r"|caffe2\.execution\.(tape|taped_operator))"
)
# -O3 is for loops: the rest takes a fifth longer to compile with it and is no faster. A loop of a
# few instructions takes up to twice as long when it crosses a line of the cache.
LOOPS = [] if SANITIZED else ["-O3", "-falign-loops=64"]
# Macros of bridge/c10 read and write fields of Cython's classes as PyObject *.
PUNS = ["-fno-strict-aliasing"]
# They correct a function of Cython's, and one of CPython 3.13.
FIRST_INCLUDED = ["bridge/c10/list_append.h", "bridge/c10/nested_sections.h"]
FLAGS = [
    *(flag for header in FIRST_INCLUDED for flag in ("-include", header)),
    *OPTIMIZED,
    "-DCYTHON_COMPRESS_STRINGS=0",  # a wheel compresses them
    "-fno-math-errno",  # nobody reads it, and with it sqrt() is a call for each element
    # bridge/c10/slots.pxd sets tp_new and tp_vectorcall of some types; Cython's own
    # tp_vectorcall would bypass them.
    "-DCYTHON_VECTORCALL_TPNEW=0",
]

# Symbols that nobody looks up are a fifth of the size; start files, which only programs and C++
# need, and a segment for code alone are another tenth.
LINK_FLAGS = [] if SANITIZED else ["-Wl,-s"]

if sys.platform == "linux":
    FLAGS.append("-fno-plt")
    LINK_FLAGS += [] if SANITIZED else ["-nostartfiles", "-Wl,-z,noseparate-code,--build-id=none"]
elif sys.platform == "win32":
    # Microsoft's compiler, or clang-cl. Not tried.
    FIRST_INCLUDED.insert(0, "bridge/c10/windows.h")
    FLAGS = [*(f"/FI{header}" for header in FIRST_INCLUDED), "-DCYTHON_VECTORCALL_TPNEW=0"]
    LOOPS, PUNS, LINK_FLAGS = [], [], []
elif sys.platform == "darwin":
    LINK_FLAGS = ["-Wl,-x"]

# docs/threads.md says what is safe without the lock that most Pythons have.
# Annotations are for the stubs (tools/make_stubs.py), not declarations of C types. A class without
# __reduce__ is not pickled, unless it says so: Cython does it by the fields of one version.
DIRECTIVES = {"freethreading_compatible": True, "annotation_typing": False, "auto_pickle": False}

# Memory that processes share is POSIX's; bridge/shared says so where it is missing. The kit forks.
LEFT_OUT = re.compile(r"bridge\.(shared|conform)\." if sys.platform == "win32" else r"(?!)")

# Cython's own functions, once for all modules: a third less to compile, and to load.
SHARED = "bridge._cyutility"


class WheelWithBill(bdist_wheel):
    """A wheel with a software bill of materials (PEP 770, CycloneDX) in its dist-info."""

    def egg2dist(self, egginfo_path, distinfo_path):
        """Write the metadata, and the bill beside it: the package, and what it was made with."""
        super().egg2dist(egginfo_path, distinfo_path)
        metadata = self.distribution.metadata

        def component(name, version, kind="library"):
            purl = f"pkg:pypi/{name.lower()}@{version}"
            return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}

        bill = {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {
                "component": {
                    **component(metadata.get_name(), metadata.get_version()),
                    "licenses": [{"license": {"id": "Apache-2.0"}}],
                },
                "tools": {"components": [component("setuptools", setuptools.__version__)]},
            },
            # Its shared functions are compiled into the package.
            "components": [component("Cython", Cython.__version__)],
        }
        folder = Path(distinfo_path, "sboms")
        folder.mkdir(exist_ok=True)
        (folder / "bridge.cdx.json").write_text(json.dumps(bill, indent=2) + "\n")


class BuildModules(build_ext):
    """Write the C code of all modules, then compile them; both on all cores."""

    user_options: ClassVar = [*build_ext.user_options, ("only-write", None, "only write C code")]
    boolean_options: ClassVar = [*build_ext.boolean_options, "only-write"]

    def initialize_options(self):
        """Compile, unless told otherwise."""
        super().initialize_options()
        self.only_write = False

    def build_extensions(self):
        """Do it; the modules that are up to date are left alone."""
        self.parallel = self.parallel or True  # editable builds lose what setup() is told
        # Cython has settings that are global: processes can share the work, threads cannot.
        written = cythonize(
            self.extensions,
            nthreads=os.cpu_count(),
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
            force=self.force,
            quiet=True,
        )
        sources = {extension.name: extension.sources for extension in written}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
        if not self.only_write:
            super().build_extensions()


def module(name, sources):
    """Return what setuptools has to know of a compiled module."""
    return Extension(
        name,
        sources,
        depends=[*FIRST_INCLUDED, "bridge/include/bridge.h"]
        if name == "bridge.c_api"
        else FIRST_INCLUDED,
        extra_compile_args=[
            *FLAGS,
            *(LOOPS if name.endswith("_kernels") or ".wire." in name else []),
            *([] if name.endswith("_kernels") else PUNS),
            *([] if FAST.match(name) else SMALL),
        ],
        extra_link_args=LINK_FLAGS,
    )


# Processes that write C code load this file too, where they are not forks: macOS, Python 3.14.
if __name__ == "__main__":
    setup(
        cmdclass={"bdist_wheel": WheelWithBill, "build_ext": BuildModules},
        ext_modules=[
            module(SHARED, []),
            *(
                module(name, [str(path)])
                for path in sorted(Path("bridge").rglob("*.pyx"))
                if not LEFT_OUT.match(name := ".".join(path.with_suffix("").parts))
            ),
        ],
    )
