# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.transformations``: nets rewritten to run faster.

>>> from bridge.caffe2 import core, transformations
>>> net = core.Net("transformed")
>>> y = net.Conv(["x", "w", "b"], "y", kernel=3)
>>> transformations.Transformer().AddNNPACK(net)
>>> net.Proto().op[0].engine
'NNPACK'
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.caffe2 import c_extension as C
from bridge.caffe2.base.wrapped_errors import EnforceAttributeError

__all__ = ["Transformer", "fuseConvBN", "fuseNNPACKConvRelu", "optimizeForMKLDNN"]


class Transformer:
    """Rewrites nets in place: ``Transformer().NAME(net)``, of a `core.Net`."""

    @classmethod
    def runTransform(cls, transform_name: str, net: Any) -> None:
        """Apply a transform; raise EnforceNotMet, also an AttributeError, for an unknown name."""
        serialized = net.Proto().SerializeToString()
        if C.transform_exists(transform_name):
            serialized = C.run_transform(transform_name, serialized)
        elif C.workspace_transform_exists(transform_name):
            serialized = C.run_workspace_transform(transform_name, serialized)
        else:
            raise EnforceAttributeError(
                f"Transformation {transform_name} not found.", "Transformer"
            )
        net.Proto().ParseFromString(serialized)

    def __getattr__(self, transform_name: str) -> Callable[[Any], None]:
        if transform_name.startswith("__"):
            raise AttributeError(transform_name)
        return lambda net: self.runTransform(transform_name, net)


def fuseNNPACKConvRelu(net: Any) -> None:
    """Replace a Conv of the engine NNPACK and the Relu of its output by one operator, in place."""
    net.Proto().ParseFromString(C.transform_fuseNNPACKConvRelu(net.Proto().SerializeToString()))


def fuseConvBN(net: Any) -> None:
    """Replace a Conv and the SpatialBN of its output by one Conv, in place.

    The weights in the current workspace become the weights of both.
    """
    net.Proto().ParseFromString(C.transform_fuseConvBN(net.Proto().SerializeToString()))


def optimizeForMKLDNN(net: Any, training_mode: bool = False) -> None:
    """Make normalizations, sums and Relu part of convolutions on the device type MKLDNN, in place.

    The weights in the current workspace stay, the weights of both are new blobs. training_mode:
    change nothing; Caffe2 only converts filters to another layout then.
    """
    serialized = net.Proto().SerializeToString()
    net.Proto().ParseFromString(C.transform_optimizeForMKLDNN(serialized, training_mode))
