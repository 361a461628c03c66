# SPDX-License-Identifier: Apache-2.0
"""Initializers: how a model's parameters are made.

Follows caffe2/python/modeling/initializers.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.definitions.blob_reference import BlobReference, ScopedBlobReference
from bridge.caffe2.models.parameter_info import ParameterInfo
from bridge.caffe2.nets.net import Net

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "ExternalInitializer",
    "Initializer",
    "PseudoFP16Initializer",
    "ReversePseudoFP16Initializer",
    "update_initializer",
]


class Initializer:
    """Makes a parameter by an operator: ``Initializer("GaussianFill", std=0.1)``."""

    def __init__(self, operator_name: str | None = None, **kwargs: Any) -> None:
        self.operator_name = operator_name
        self.operator_kwargs = kwargs

    def update(self, operator_name: str, kwargs: dict[str, Any]) -> None:
        """Set the operator and its arguments. Raises EnforceNotMet: they are set."""
        if self.operator_name is not None:
            raise EnforceNotMet("Operator name overwrites are not allowed", "Initializer.update")
        self.operator_name = operator_name
        self.operator_kwargs = kwargs

    def _filled(self, name: Any, init_net: Net, shape: list[int]) -> BlobReference:
        if self.operator_name is None:
            raise EnforceNotMet(
                "The initializer has no operator; update(operator_name, kwargs) gives it one.",
                "Initializer.create_param",
                condition="operator_name is not None",
            )
        made: BlobReference = getattr(init_net, self.operator_name)(
            [], name, shape=shape, **self.operator_kwargs
        )
        return made

    def create_param(self, param_name: Any, init_net: Net, shape: list[int]) -> ParameterInfo:
        """Add the operator to `init_net`; tell what it makes."""
        return ParameterInfo(None, self._filled(param_name, init_net, shape), shape=shape)


class ExternalInitializer:
    """Makes nothing: the parameter is in the workspace when the model runs."""

    def create_param(self, param_name: Any, init_net: Net, shape: list[int]) -> ParameterInfo:
        """Tell of the parameter. Raises EnforceNotMet, also a TypeError: it has no name."""
        if isinstance(param_name, BlobReference):
            blob = BlobReference(str(param_name), init_net)
        elif isinstance(param_name, str):
            blob = ScopedBlobReference(param_name, init_net)
        else:
            raise EnforceTypeError(
                f"A parameter has a name, not {type(param_name).__name__}.",
                "ExternalInitializer.create_param",
            )
        return ParameterInfo(None, blob, shape=shape)


class PseudoFP16Initializer(Initializer):
    """Makes a float16 parameter, and beside it a float32 one, ``NAME_fp32``, that is trained."""

    def create_param(self, param_name: Any, init_net: Net, shape: list[int]) -> ParameterInfo:
        """Add both to `init_net`; tell of the float16 one."""
        master = self._filled(param_name + "_fp32", init_net, shape)
        half = init_net.FloatToHalf(master, param_name)
        return ParameterInfo(None, half, shape=shape, blob_copy={DataType.FLOAT: master})


class ReversePseudoFP16Initializer(Initializer):
    """Makes a float32 parameter, and beside it a float16 one, ``NAME_fp16``."""

    def create_param(self, param_name: Any, init_net: Net, shape: list[int]) -> ParameterInfo:
        """Add both to `init_net`; tell of the float32 one."""
        made = self._filled(param_name, init_net, shape)
        half = init_net.FloatToHalf(made, param_name + "_fp16")
        return ParameterInfo(None, made, shape=shape, blob_copy={DataType.FLOAT16: half})


def update_initializer(
    initializer_class: Any,
    operator_name_and_kwargs: tuple[str, dict[str, Any]] | None,
    default_operator_name_and_kwargs: tuple[str, dict[str, Any]],
) -> Any:
    """Make an initializer of a class, `Initializer` where it is None, with an operator."""
    name, kwargs = operator_name_and_kwargs or default_operator_name_and_kwargs
    return (initializer_class or Initializer)(name, **kwargs)
