# SPDX-License-Identifier: Apache-2.0
"""The observers of a net that has been created in the current workspace."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.base.created_nets import created_net

TYPE_CHECKING = False


class NetObserving:
    """The base class of `Net` for its observers."""

    if TYPE_CHECKING:

        def Name(self) -> str: ...  # noqa: D102

    def AddObserver(self, observer_type: str) -> Any:
        """Add an observer to the created net of this name, and return it.

        observer_type: "TimeObserver", whose `average_time()` and `average_time_children()` are in
        milliseconds; "RunCountObserver", whose `debug_info()` has the number of runs of operators;
        "ProfileObserver", which logs each operator. Operators then run one by one, a net of type
        "compiled" too.

        Raises EnforceNotMet: no such kind (also a ValueError), or the net is not created in the
        current workspace (also a KeyError).

        >>> import numpy as np
        >>> from bridge.caffe2 import core, workspace
        >>> net = core.Net("observed_doc")
        >>> _ = net.Relu(net.Relu("x", "y"), "z")
        >>> workspace.FeedBlob("x", np.ones(2, np.float32)), workspace.CreateNet(net)
        (True, True)
        >>> observer = net.AddObserver("RunCountObserver")
        >>> workspace.RunNet(net, 3), observer.debug_info(), net.NumObservers()
        (True, 'This operator runs 6 times.', 1)
        >>> net.RemoveObserver(observer)
        >>> net.NumObservers(), workspace.ResetWorkspace()
        (0, True)
        """
        return self._created("AddObserver").add_observer(observer_type, "Net.AddObserver")

    def RemoveObserver(self, observer: Any) -> None:
        """Remove an observer, if the created net of this name has it.

        Raises EnforceNotMet, also a KeyError: the net is not created in the current workspace.
        """
        self._created("RemoveObserver").remove_observer(observer)

    def NumObservers(self) -> int:
        """Return the number of observers; raise EnforceNotMet as `RemoveObserver`."""
        return len(self._created("NumObservers").observers)

    def _created(self, method: str) -> Any:
        return created_net(self.Name(), f"Net.{method}")
