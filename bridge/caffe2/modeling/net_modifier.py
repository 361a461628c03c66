# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.modeling.net_modifier``: changes of a net that is complete."""

from __future__ import annotations

from abc import ABC, abstractmethod

from bridge.annotation import Any

__all__ = ["NetModifier"]


class NetModifier(ABC):
    """Adds operators to a net: ``modifier(net)`` calls `modify_net`, which a subclass defines."""

    @abstractmethod
    def modify_net(
        self,
        net: Any,
        init_net: Any = None,
        grad_map: Any = None,
        blob_to_device: Any = None,
        modify_output_record: bool = False,
    ) -> None:
        """Add operators to `net`.

        grad_map: gradients by blob. blob_to_device: DeviceOptions by blob. modify_output_record:
        whether the blobs that are added become fields of the net's output record.
        """

    def __call__(
        self,
        net: Any,
        init_net: Any = None,
        grad_map: Any = None,
        blob_to_device: Any = None,
        modify_output_record: bool = False,
    ) -> None:
        """Call `modify_net`."""
        self.modify_net(
            net,
            init_net=init_net,
            grad_map=grad_map,
            blob_to_device=blob_to_device,
            modify_output_record=modify_output_record,
        )
