# SPDX-License-Identifier: Apache-2.0
"""ModelHelper: a net, the net that makes its parameters, and a list of the parameters.

The part of ``caffe2.python.model_helper`` that builds models to run. What trains them there,
gradients, optimizers, regularizers and sharing of parameters between scopes, is not here.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.c10.errors import EnforceAssertionError, EnforceTypeError
from bridge.caffe2 import scope
from bridge.caffe2.blob_reference import BlobReference, ScopedName
from bridge.caffe2.net import Net

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any, Final

__all__ = ["ExternalInitializer", "Initializer", "ModelHelper", "ParameterTags"]


class ParameterTags:
    """What a parameter is to its model."""

    BIAS: Final = "BIAS"
    WEIGHT: Final = "WEIGHT"
    COMPUTED_PARAM: Final = "COMPUTED_PARAM"


class Initializer:
    """Makes a parameter by an operator: ``Initializer("GaussianFill", std=0.1)``."""

    def __init__(self, operator_name: str, **kwargs: Any) -> None:
        self.operator_name = operator_name
        self.operator_kwargs = kwargs

    def create_param(self, param_name: Any, init_net: Net, shape: list[int]) -> BlobReference:
        """Add the operator to `init_net`; refer to what it makes."""
        made: BlobReference = getattr(init_net, self.operator_name)(
            [], param_name, shape=shape, **self.operator_kwargs
        )
        return made


class ExternalInitializer:
    """Makes nothing: the parameter is in the workspace when the model runs."""

    def create_param(self, param_name: Any, init_net: Net, shape: list[int]) -> BlobReference:
        """Refer to the parameter."""
        return BlobReference(str(param_name), init_net)


class ModelHelper:
    """A model under construction: ``model.net`` is run, ``model.param_init_net`` once before it.

    ``model.Relu(...)`` is ``model.net.Relu(...)``; the functions of `brew` add operators with
    parameters. With init_params=False, parameters are expected in the workspace. `arg_scope`:
    arguments that brew gives to every operator. `param_model`: a model to share parameters with.

    Follows ModelHelper, caffe2/python/model_helper.py, PyTorch 1.8.1.

    >>> from bridge.caffe2 import brew, model_helper
    >>> model = model_helper.ModelHelper(name="doc_model")
    >>> brew.fc(model, "x", "y", dim_in=3, dim_out=2)
    BlobReference("y")
    >>> model.GetParams()
    [BlobReference("y_w"), BlobReference("y_b")]
    """

    def __init__(
        self,
        name: str | None = None,
        init_params: bool = True,
        allow_not_known_ops: bool = True,
        skip_sparse_optim: bool = False,
        param_model: ModelHelper | None = None,
        arg_scope: dict[str, Any] | None = None,
    ) -> None:
        self.name = name or "model"
        self.net = Net(self.name)
        self.init_params = init_params
        self.allow_not_known_ops = allow_not_known_ops
        self.weights: list[BlobReference] = []
        self.biases: list[BlobReference] = []
        if param_model is None:
            self.param_init_net = Net(self.name + "_init")
            self.params: list[BlobReference] = []
            self._computed_params: list[BlobReference] = []
            self._parameters: dict[str, tuple[BlobReference, list[int]]] = {}
        else:
            self.param_init_net = param_model.param_init_net
            self.params = param_model.params
            self._computed_params = param_model._computed_params
            self._parameters = param_model._parameters
        self.arg_scope: dict[str, Any] = {
            "order": "NCHW",
            "use_cudnn": True,
            "cudnn_exhaustive_search": False,
            **(arg_scope or {}),
        }

    def get_name(self) -> str:
        """Give the name."""
        return self.name

    def create_param(
        self, param_name: Any, shape: list[int], initializer: Any, tags: Any = None
    ) -> BlobReference:
        """Make a parameter by `initializer`, or give the one of that name and shape.

        A name is of the current name scope, a reference is as it is. Raises EnforceNotMet: it is
        neither (also a TypeError), or there is one of another shape (also an AssertionError).
        """
        if not isinstance(param_name, (str, BlobReference)):
            raise EnforceTypeError(
                f"A parameter has a name, not {type(param_name).__name__}.",
                "",
                "ModelHelper.create_param",
            )
        name = str(param_name) if isinstance(param_name, BlobReference) else ScopedName(param_name)
        if name in self._parameters:
            known, size = self._parameters[name]
            if size != shape:
                raise EnforceAssertionError(
                    f"Parameter {name!r} is of shape {size}, not {shape}.",
                    "",
                    "ModelHelper.create_param",
                )
            return known
        made = initializer.create_param(BlobReference(name), self.param_init_net, shape)
        # Caffe2's initializers give an object that has the blob.
        blob: BlobReference = (
            getattr(made, "blob", made) if not isinstance(made, BlobReference) else made
        )
        self._parameters[name] = (blob, shape)
        self.AddParameter(blob, tags)
        return blob

    def AddParameter(self, param: Any, tags: Any = None) -> None:
        """List a blob as a parameter; `tags` are of `ParameterTags`, one or a list."""
        if not isinstance(param, BlobReference):
            raise EnforceAssertionError(
                f"A parameter is a BlobReference, not {type(param).__name__}.",
                "",
                "ModelHelper.AddParameter",
            )
        tagged = tags if isinstance(tags, list) else [tags]
        computed = ParameterTags.COMPUTED_PARAM in tagged
        (self._computed_params if computed else self.params).append(param)
        if ParameterTags.WEIGHT in tagged:
            self.weights.append(param)
        if ParameterTags.BIAS in tagged:
            self.biases.append(param)

    def GetParams(self, namescope: str | None = None, top_scope: bool = False) -> list[Any]:
        """List the parameters of a name scope, the current one where it is None."""
        return _within(self.params, namescope)

    def GetComputedParams(self, namescope: str | None = None) -> list[Any]:
        """List what is computed from data, as running means are."""
        return _within(self._computed_params, namescope)

    def GetAllParams(self, namescope: str | None = None) -> list[Any]:
        """List the parameters, and then what is computed from data."""
        return self.GetParams(namescope) + self.GetComputedParams(namescope)

    def Validate(self) -> None:
        """Raise EnforceNotMet, also an AssertionError, where a parameter is listed twice."""
        names = [str(param) for param in self.params]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise EnforceAssertionError(f"Duplicate params: {twice}", "", "ModelHelper.Validate")

    def Proto(self) -> Any:
        """Give the NetDef of the net."""
        return self.net.Proto()

    def InitProto(self) -> Any:
        """Give the NetDef of the net that makes the parameters."""
        return self.param_init_net.Proto()

    def RunAllOnGPU(self, *args: Any, **kwargs: Any) -> None:
        """Have both nets run on a CUDA device."""
        self.param_init_net.RunAllOnGPU(*args, **kwargs)
        self.net.RunAllOnGPU(*args, **kwargs)

    def AddGradientOperators(self, *args: Any, **kwargs: Any) -> Any:
        """Raise EnforceNotMet: there are no gradients of nets; see ``Net.AddGradientOperators``."""
        return self.net.AddGradientOperators(*args, **kwargs)

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("_") or op_type == "net":
            raise AttributeError(f"A ModelHelper has no attribute {op_type!r}.")
        added: Callable[..., Any] = getattr(self.net, op_type)
        return added


def _within(params: list[BlobReference], namescope: str | None) -> list[BlobReference]:
    prefix = scope.CurrentNameScope() if namescope is None else namescope
    if prefix and not prefix.endswith("/"):
        prefix += "/"
    return [param for param in params if param.GetNameScope().startswith(prefix)]
