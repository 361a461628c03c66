# SPDX-License-Identifier: Apache-2.0
"""Starting the debugger where a script fails.

Follows DebugMode, caffe2/python/utils.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

from bridge.annotation import Any


class DebugMode:
    """Runs functions, and starts the debugger where they raise."""

    @classmethod
    def run(cls, func: Callable[[], Any]) -> Any:
        """Call `func`. If it raises, print the error, start pdb there, and exit with status 1."""
        try:
            return func()
        except Exception as error:  # noqa: BLE001 - any error is shown
            import pdb
            import traceback

            traceback.print_exception(type(error), error, error.__traceback__)
            pdb.post_mortem(error.__traceback__)
            sys.exit(1)


def debug(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `f` in `DebugMode`."""

    @functools.wraps(f)
    def called(*args: Any, **kwargs: Any) -> Any:
        return DebugMode.run(lambda: f(*args, **kwargs))

    return called
