# SPDX-License-Identifier: Apache-2.0
"""The places in a script that added the operators of nets, for errors when they run.

Follows operator_tracebacks, caffe2/python/workspace.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable

from bridge.annotation import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    Place = tuple[str, int, str]

# By name of the net and position of the operator: (file, line, function), innermost first.
operator_tracebacks: defaultdict[str, dict[int, list[Place]]] = defaultdict(dict)

# The innermost callers identify an operator; the table is never cleared, so it keeps no more.
_MAX_PLACES = 16


def extract_stacktrace(skipped: int) -> list[Place]:
    """Return the places of the callers, innermost first, without the `skipped` innermost."""
    frame: FrameType | None = sys._getframe(skipped + 1)
    places: list[Place] = []
    while frame is not None and len(places) < _MAX_PLACES:
        places.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return places


def CallWithExceptionIntercept(
    func: Callable[..., Any],
    op_id_fetcher: Callable[[], int],
    net_name: str,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call ``func(*args, **kwargs)``; if it raises, log where the failed operator was added.

    The operator is at the position that ``op_id_fetcher()`` returns, in the net `net_name`. The
    error is raised again.
    """
    try:
        return func(*args, **kwargs)
    except Exception:
        import logging  # takes a while to import, and is needed here only

        logger = logging.getLogger(__name__)
        position = op_id_fetcher()
        logger.warning(
            "Original python traceback for operator `%s` in network `%s` in exception above "
            "(most recent call last):",
            position,
            net_name,
        )
        for place in reversed(operator_tracebacks.get(net_name, {}).get(position, [])):
            logger.warning('  File "%s", line %s, in %s', *place)
        raise
