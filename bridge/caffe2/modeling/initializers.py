# SPDX-License-Identifier: Apache-2.0
"""Initializers, which create the parameters of a model.

Follows caffe2/python/modeling/initializers.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.core.net import Net
from bridge.caffe2.definitions.blob_reference import BlobReference, ScopedBlobReference
from bridge.caffe2.modeling.parameter_info import ParameterInfo

__all__ = [
    "ExternalInitializer",
    "Initializer",
    "PseudoFP16Initializer",
    "ReversePseudoFP16Initializer",
    "update_initializer",
]


class Initializer:
    """Creates a parameter by an operator, such as ``Initializer("GaussianFill", std=0.1)``."""

    def __init__(self, operator_name: str | None = None, **kwargs: Any) -> None:
        self.operator_name = operator_name
        self.operator_kwargs = kwargs

    def update(self, operator_name: str, kwargs: dict[str, Any]) -> None:
        """Set the operator and its arguments. Raises EnforceNotMet: they are already set."""
        if self.operator_name is not None:
            raise EnforceNotMet("Operator name overwrites are not allowed", "Initializer.update")
        self.operator_name = operator_name
        self.operator_kwargs = kwargs

    def _fill(self, name: Any, init_net: Net, shape: list[int]) -> BlobReference:
        if self.operator_name is None:
            raise EnforceNotMet(
                "The initializer has no operator; update(operator_name, kwargs) sets one.",
                "Initializer.create_param",
                condition="operator_name is not None",
            )
        blob: BlobReference = getattr(init_net, self.operator_name)(
            [], name, shape=shape, **self.operator_kwargs
        )
        return blob

    def create_param(self, param_name: Any, init_net: Net, shape: list[int]) -> ParameterInfo:
        """Add the operator to `init_net`; return the ParameterInfo of its output.

        Raises EnforceNotMet: the initializer has no operator.
        """
        return ParameterInfo(None, self._fill(param_name, init_net, shape), shape=shape)


class ExternalInitializer:
    """Creates nothing: the parameter is expected in the workspace when the model runs."""

    def create_param(self, param_name: Any, init_net: Net, shape: list[int]) -> ParameterInfo:
        """Return the ParameterInfo of the blob `param_name`, a BlobReference or a str.

        Raises EnforceNotMet, also a TypeError: `param_name` is neither.
        """
        if isinstance(param_name, BlobReference):
            blob = BlobReference(str(param_name), init_net)
        elif isinstance(param_name, str):
            blob = ScopedBlobReference(param_name, init_net)
        else:
            raise EnforceTypeError(
                f"param_name must be a str or a BlobReference, not {type(param_name).__name__}.",
                "ExternalInitializer.create_param",
            )
        return ParameterInfo(None, blob, shape=shape)


class PseudoFP16Initializer(Initializer):
    """Creates a float16 parameter, and a float32 copy ``NAME_fp32``, which is the one trained."""

    def create_param(self, param_name: Any, init_net: Net, shape: list[int]) -> ParameterInfo:
        """Add both to `init_net`; return the ParameterInfo of the float16 one."""
        master = self._fill(param_name + "_fp32", init_net, shape)
        half = init_net.FloatToHalf(master, param_name)
        return ParameterInfo(None, half, shape=shape, blob_copy={DataType.FLOAT: master})


class ReversePseudoFP16Initializer(Initializer):
    """Creates a float32 parameter, and a float16 copy ``NAME_fp16``."""

    def create_param(self, param_name: Any, init_net: Net, shape: list[int]) -> ParameterInfo:
        """Add both to `init_net`; return the ParameterInfo of the float32 one."""
        blob = self._fill(param_name, init_net, shape)
        half = init_net.FloatToHalf(blob, param_name + "_fp16")
        return ParameterInfo(None, blob, shape=shape, blob_copy={DataType.FLOAT16: half})


def update_initializer(
    initializer_class: Any,
    operator_name_and_kwargs: tuple[str, dict[str, Any]] | None,
    default_operator_name_and_kwargs: tuple[str, dict[str, Any]],
) -> Any:
    """Return an initializer of a class, with an operator and its arguments, or a default of both.

    initializer_class: None is `Initializer`.
    """
    name, kwargs = operator_name_and_kwargs or default_operator_name_and_kwargs
    return (initializer_class or Initializer)(name, **kwargs)
