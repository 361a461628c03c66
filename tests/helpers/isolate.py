# SPDX-License-Identifier: Apache-2.0
"""Run a test in a process of its own, so that a crash fails one test and not the run.

`@isolated` sends the test's name and arguments to a server process that has the frameworks
imported already; it forks a child for each test (milliseconds, where a fresh interpreter with
torch takes seconds) and reports how the child ended, also by a signal or by hanging.
`run_python` is for what needs an interpreter from start to exit.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.helpers.seeds import seed_generators

TIME_LIMIT_S = 300
_ROOT = Path(__file__).parents[2]
# What a child would otherwise import for itself, at up to seconds each.
_IMPORTED_ONCE = (
    "numpy",
    "ml_dtypes",
    "torch",
    "torch._decomp.decompositions_for_jvp",
    "torch._dynamo",
    "torch._functorch.eager_transforms",
    "torch._subclasses",
    "torch.fx.experimental.proxy_tensor",
    "torch.nested._internal.nested_tensor",
    "torch.testing._internal.two_tensor",
    "bridge.at",
    "bridge.caffe2",
    "tests.conftest",  # which tells Hypothesis to repeat itself, and to take its time
)

Request = tuple[str, str, dict[str, Any]]
# How it ended ("passed", "failed", "skipped"), and the traceback or the reason.
Outcome = tuple[str, str]


def isolated(test: Callable[..., None]) -> Callable[..., None]:
    """Run `test` in a child process; its arguments must be picklable, its module importable."""
    return isolated_with()(test)


def isolated_with(**environment: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator as `isolated`, for a child whose environment has these variables, too."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**arguments: Any) -> None:
            server = _server(tuple(environment.items()))
            outcome, text = server.run((test.__module__, test.__qualname__, arguments))
            if outcome == "skipped":
                pytest.skip(text)
            if outcome != "passed":
                pytest.fail(text, pytrace=False)

        return run

    return decorate


def run_python(code: str, *arguments: str, options: Sequence[str] = ()) -> str:
    """Run `code` in a fresh interpreter with warnings as errors; its standard output.

    `options` are the interpreter's own, such as ``("-X", "dev")``.
    Fails the test on a nonzero exit, and on anything written to standard error, where ignored
    exceptions and complaints of a dying interpreter end up.
    """
    done = subprocess.run(
        [sys.executable, *options, "-W", "error", "-c", code, *arguments],
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    if done.returncode != 0 or done.stderr:
        pytest.fail(f"exit status {done.returncode}\n{done.stdout}{done.stderr}", pytrace=False)
    return done.stdout


def _environment() -> dict[str, str]:
    """This process's import path, and libraries without threads of their own (they do not fork)."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    path = os.pathsep.join([str(_ROOT), *filter(None, sys.path)])
    return {**os.environ, **threads, "PYTHONPATH": path}


class _Server:
    """The parent's end of the server process: a request goes in, an outcome comes back."""

    def __init__(self, environment: tuple[tuple[str, str], ...]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.isolate"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**_environment(), **dict(environment)},
            cwd=_ROOT,
        )
        atexit.register(self.close)

    def run(self, request: Request) -> Outcome:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            pickle.dump(request, self.process.stdin)
            self.process.stdin.flush()
            outcome: Outcome = pickle.load(self.process.stdout)
        except (EOFError, BrokenPipeError) as error:
            _server.cache_clear()
            pytest.fail(f"the server of isolated tests ended: {error!r}", pytrace=False)
        return outcome

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@functools.cache
def _server(environment: tuple[tuple[str, str], ...]) -> _Server:
    return _Server(environment)


def _serve(requests: BinaryIO, outcomes: BinaryIO) -> None:
    """Fork a child for each request until the parent closes the pipe."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts of torch that call themselves deprecated
        for module in _IMPORTED_ONCE:
            importlib.import_module(module)
    # What is loaded now stays: children that collect their garbage need not look through it.
    gc.freeze()
    while True:
        try:
            request: Request = pickle.load(requests)
        except EOFError:
            return
        # Here and not in the child, once for all of its tests; errors are the child's to report.
        with contextlib.suppress(Exception):
            importlib.import_module(request[0])
        pickle.dump(_run_in_child(request), outcomes)
        outcomes.flush()


def _run_in_child(request: Request) -> Outcome:
    # Files, not pipes: a child that crashes half-way or writes much blocks no other process.
    with tempfile.TemporaryFile() as report, tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            signal.alarm(TIME_LIMIT_S)
            pickle.dump(_attempt(request), report)
            report.flush()
            # Not sys.exit: the child must not run the server's exit handlers.
            os._exit(0)
        _, status = os.waitpid(child, 0)
        report.seek(0)
        output.seek(0)
        printed = output.read().decode(errors="replace")
        if os.WIFSIGNALED(status):
            cause = signal.Signals(os.WTERMSIG(status)).name
            return "failed", f"{request[1]} {request[2]}: ended by {cause}\n{printed}"
        if os.WEXITSTATUS(status) != 0:
            return "failed", f"{request[1]}: exit status {os.WEXITSTATUS(status)}\n{printed}"
        outcome, text = pickle.load(report)
        return outcome, f"{text}\n{printed}" if outcome == "failed" else text


def _attempt(request: Request) -> Outcome:
    """Run the test itself, in the child, with warnings and unraisable errors as failures."""
    module_name, test_name, arguments = request
    ignored: list[str] = []

    def remember(unraisable: Any) -> None:
        message, error = unraisable.err_msg or "", unraisable.exc_value
        if "PyObject_HasAttrString" in message and isinstance(error, MemoryError):
            return  # of NumPy, which takes it for "no"; Python 3.13 began to tell
        # Text only: the object it names may be half gone, and must not be kept alive.
        ignored.append(f"{message}: {error!r}")

    try:
        test: Any = importlib.import_module(module_name)
        for name in test_name.split("."):
            test = getattr(test, name)
        sys.unraisablehook = remember
        seed_generators()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # As in pyproject.toml: Hypothesis does not find what frozen objects hold.
            warnings.filterwarnings("ignore", "It looks like `register_random` was passed")
            _unwrapped(test)(**arguments)
    except pytest.skip.Exception as skipped:
        return "skipped", str(skipped)
    # A failed assertion, a failure of pytest (a BaseException) or any error: all are the report.
    except BaseException:  # noqa: BLE001
        return "failed", traceback.format_exc()
    if ignored:
        return "failed", "errors that nobody could raise:\n" + "\n".join(ignored)
    return "passed", ""


def _unwrapped(test: types.FunctionType) -> Callable[..., None]:
    """The test under `@isolated`."""
    inner: Callable[..., None] = test.__wrapped__  # type: ignore[attr-defined]
    return inner


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
