# SPDX-License-Identifier: Apache-2.0
"""ModelHelper: a net, the net that makes its parameters, and a list of the parameters.

The part of ``caffe2.python.model_helper`` that builds models, to run and to train them; without
regularizers, and without sharing of parameters between scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bridge.c10.errors import EnforceAssertionError, EnforceNotMet, EnforceTypeError
from bridge.caffe2 import scope
from bridge.caffe2.blob_reference import BlobReference, ScopedName
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.net import Net
from bridge.caffe2.parameter_info import ParameterInfo, ParameterTags

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "ExternalInitializer",
    "Initializer",
    "ModelHelper",
    "ParameterInfo",
    "ParameterTags",
]


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
            self._parameters_info: dict[str, ParameterInfo] = {}
        else:
            self.param_init_net = param_model.param_init_net
            self.params = param_model.params
            self._computed_params = param_model._computed_params
            self._parameters_info = param_model._parameters_info
        self.skip_sparse_optim = skip_sparse_optim
        self.gradient_ops_added = False
        # Once there are gradient operators: the gradient by blob; of parameters only.
        self.grad_map: dict[Any, Any] = {}
        self.param_to_grad: dict[Any, Any] = {}
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
        known = self._parameters_info.get(name)
        if known is not None:
            if known.shape != shape:
                raise EnforceAssertionError(
                    f"Parameter {name!r} is of shape {known.shape}, not {shape}.",
                    "",
                    "ModelHelper.create_param",
                )
            found: BlobReference = known.blob
            return found
        made = initializer.create_param(BlobReference(name), self.param_init_net, shape)
        # Caffe2's initializers give an object that has the blob.
        blob: BlobReference = (
            getattr(made, "blob", made) if not isinstance(made, BlobReference) else made
        )
        self._parameters_info[name] = ParameterInfo(None, blob, shape=shape)
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

    def AddGradientOperators(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """Add the operators that compute gradients; takes what ``Net.AddGradientOperators`` takes.

        Then `grad_map`, which this gives, has the gradients by blob, `param_to_grad` those of the
        parameters, and `GetOptimizationParamInfo` lists these. Raises EnforceNotMet: there are
        gradient operators already, a parameter is listed twice (also an AssertionError), or as
        there.

        >>> from bridge.caffe2 import brew, model_helper
        >>> model = model_helper.ModelHelper(name="trained_doc_model")
        >>> _ = brew.fc(model, "x", "y", dim_in=3, dim_out=2)
        >>> loss = model.AveragedLoss("y", "loss")
        >>> _ = model.AddGradientOperators([loss])
        >>> model.param_to_grad
        {BlobReference("y_w"): BlobReference("y_w_grad"), BlobReference("y_b"): \
BlobReference("y_b_grad")}
        """
        if self.gradient_ops_added:
            raise EnforceNotMet(
                "You cannot run AddGradientOperators twice.",
                "not gradient_ops_added",
                "ModelHelper.AddGradientOperators",
            )
        self.Validate()
        self.grad_map = self.net.AddGradientOperators(*args, **kwargs)
        self.gradient_ops_added = True
        self.param_to_grad = self.get_param_to_grad(self.params)
        for param, gradient in self.param_to_grad.items():
            info = self._parameters_info.setdefault(str(param), ParameterInfo(None, param))
            info.grad = gradient
        return self.grad_map

    def get_param_to_grad(self, params: Iterable[Any]) -> dict[Any, Any]:
        """Give the gradients of these parameters, those that have one.

        Raises EnforceNotMet: there are no gradient operators yet.
        """
        if not self.gradient_ops_added:
            raise EnforceNotMet(
                "You need to run AddGradientOperators first.",
                "gradient_ops_added",
                "ModelHelper.get_param_to_grad",
            )
        return {one: self.grad_map[str(one)] for one in params if str(one) in self.grad_map}

    def get_param_info(self, param: Any) -> ParameterInfo | None:
        """Give what is known of a parameter, or None.

        Raises EnforceNotMet, also an AssertionError: `param` is no BlobReference.
        """
        if not isinstance(param, BlobReference):
            raise EnforceAssertionError(
                f"A parameter is a BlobReference, not {type(param).__name__}.",
                "",
                "ModelHelper.get_param_info",
            )
        return self._parameters_info.get(str(param))

    def GetOptimizationParamInfo(self, params: Any = None) -> list[ParameterInfo]:
        """List the parameters that have a gradient; those in `params`, if any are given.

        Without those of sparse gradients where the model skips them. Raises EnforceNotMet: there
        are no gradient operators yet.
        """
        if not self.gradient_ops_added:
            raise EnforceNotMet(
                "Need to call AddGradientOperators first",
                "gradient_ops_added",
                "ModelHelper.GetOptimizationParamInfo",
            )
        gradients = self.get_param_to_grad(params) if params else self.param_to_grad
        return [
            self._parameters_info[str(param)]
            for param, gradient in gradients.items()
            if not (self.skip_sparse_optim and isinstance(gradient, GradientSlice))
        ]

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
