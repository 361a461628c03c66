# SPDX-License-Identifier: Apache-2.0
"""ModelHelper: a net, the net that makes its parameters, and a list of the parameters.

Contexts for optimizers, regularizers and for the sharing of parameters between scopes are not here.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.c10.errors import EnforceAssertionError, EnforceNotMet, EnforceTypeError
from bridge.caffe2.definitions import scopes
from bridge.caffe2.definitions.blob_reference import BlobReference, ScopedName
from bridge.caffe2.models.initializers import ExternalInitializer, Initializer
from bridge.caffe2.models.parameter_info import ParameterInfo, ParameterTags
from bridge.caffe2.nets.net import Net
from bridge.caffe2.nets.predictor_net import ExtractPredictorNet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "ExternalInitializer",
    "ExtractPredictorNet",
    "Initializer",
    "ModelHelper",
    "ParameterInfo",
    "ParameterTags",
]


# In a net that has both, what debug_info of the operators that make parameters ends in.
_INIT_MARK = "/param_init_net"

# Operators that a model may add that was made with allow_not_known_ops=False.
_KNOWN_TEXT = (
    "Accuracy Adadelta Adagrad Adam Add AveragedLoss Cast Checkpoint ConstantFill Copy "
    "CopyCPUToGPU CopyGPUToCPU DequeueBlobs EnsureCPUOutput ExpandDims Flatten "
    "FlattenToVec LabelCrossEntropy LearningRate MakeTwoClass MatMul NCCLAllreduce "
    "NHWC2NCHW PRelu PackSegments Print ReduceFrontSum Scale ScatterWeightedSum Sigmoid "
    "Snapshot Softmax SoftmaxWithLoss SortedSegmentSum SparseAdadelta SparseAdagrad "
    "SquaredL2Distance Squeeze StopGradient Summarize Tanh Transpose UnpackSegments "
    "WeightedSum YellowFin"
)
_KNOWN_TYPES = frozenset(_KNOWN_TEXT.split())


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
        self.skip_sparse_optim = skip_sparse_optim
        self.gradient_ops_added = False
        self.grad_map: dict[str, Any] = {}
        self._devices: list[int] = []
        self.weights: list[BlobReference] = []
        self.biases: list[BlobReference] = []
        if param_model is None:
            self.param_init_net = Net(self.name + "_init")
            self.params: list[BlobReference] = []
            self._computed_params: list[BlobReference] = []
            self._parameters_info: dict[str, ParameterInfo] = {}
            # For each parameter its gradient, a blob or a slice, once gradients were added.
            self.param_to_grad: dict[BlobReference, Any] = {}
        else:
            self.param_init_net = param_model.param_init_net
            self.params = param_model.params
            self._computed_params = param_model._computed_params
            self._parameters_info = param_model._parameters_info
            self.param_to_grad = param_model.param_to_grad
        self.arg_scope: dict[str, Any] = {
            "order": "NCHW",
            "use_cudnn": True,
            "cudnn_exhaustive_search": False,
            **(arg_scope or {}),
        }

    def get_name(self) -> str:
        """Return the name."""
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
                "ModelHelper.create_param",
            )
        name = str(param_name) if isinstance(param_name, BlobReference) else ScopedName(param_name)
        known = self._parameters_info.get(name)
        if known is not None:
            if known.shape != shape:
                raise EnforceAssertionError(
                    f"Parameter {name!r} is of shape {known.shape}, not {shape}.",
                    "ModelHelper.create_param",
                )
            found: BlobReference = known.blob
            return found
        made = initializer.create_param(BlobReference(name), self.param_init_net, shape)
        # An initializer of a script's own may give the blob alone.
        blob: BlobReference = made if isinstance(made, BlobReference) else made.blob
        info = ParameterInfo(None, blob, shape=shape) if made is blob else made
        self._parameters_info[name] = info
        self.AddParameter(blob, tags)
        return blob

    def get_param_info(self, param: BlobReference) -> ParameterInfo | None:
        """Return what is known of a parameter; None of one that `create_param` did not make."""
        if not isinstance(param, BlobReference):
            raise EnforceAssertionError(
                f"Param {param} is not a BlobReference", "ModelHelper.get_param_info"
            )
        return self._parameters_info.get(str(param))

    def AddParameter(self, param: Any, tags: Any = None) -> None:
        """List a blob as a parameter; `tags` are of `ParameterTags`, one or a list."""
        if not isinstance(param, BlobReference):
            raise EnforceAssertionError(
                f"A parameter is a BlobReference, not {type(param).__name__}.",
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

    def _Validate(self) -> list[str]:
        """List the names of the parameters that are listed twice."""
        names = [str(param) for param in self.params]
        return sorted({name for name in names if names.count(name) > 1})

    def Validate(self) -> None:
        """Raise EnforceNotMet, also an AssertionError, where a parameter is listed twice."""
        twice = self._Validate()
        if twice:
            raise EnforceAssertionError(f"Duplicate params: {twice}", "ModelHelper.Validate")

    def Proto(self) -> Any:
        """Return the NetDef of the net."""
        return self.net.Proto()

    def InitProto(self) -> Any:
        """Return the NetDef of the net that makes the parameters."""
        return self.param_init_net.Proto()

    def RunAllOnGPU(self, *args: Any, **kwargs: Any) -> None:
        """Have both nets run on a CUDA device."""
        self.param_init_net.RunAllOnGPU(*args, **kwargs)
        self.net.RunAllOnGPU(*args, **kwargs)

    def AddGradientOperators(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Add operators that compute gradients; give, for each blob that has one, its gradient.

        `param_to_grad` has those of the parameters from then on. Raises EnforceNotMet: a second
        time, a parameter that is listed twice, or what ``Net.AddGradientOperators`` raises.
        """
        if self.gradient_ops_added:
            raise EnforceNotMet(
                "You cannot run AddGradientOperators twice.", "ModelHelper.AddGradientOperators"
            )
        self.Validate()
        self.grad_map = self.net.AddGradientOperators(*args, **kwargs)
        self.gradient_ops_added = True
        self.param_to_grad = self.get_param_to_grad(self.params)
        for param, gradient in self.param_to_grad.items():
            info = self._parameters_info.setdefault(str(param), ParameterInfo(None, param))
            info.grad = gradient
        return self.grad_map

    def get_param_to_grad(self, params: list[BlobReference]) -> dict[BlobReference, Any]:
        """Return the gradients of those parameters that have one.

        Raises EnforceNotMet: no gradients were added.
        """
        self._refuse_without_gradients("get_param_to_grad")
        return {param: self.grad_map[str(param)] for param in params if str(param) in self.grad_map}

    def GetOptimizationParamInfo(self, params: list[BlobReference] | None = None) -> list[Any]:
        """List what is known of the parameters that have gradients, of all or of `params`.

        With skip_sparse_optim without those whose gradients are slices. Raises EnforceNotMet: no
        gradients were added.
        """
        self._refuse_without_gradients("GetOptimizationParamInfo")
        found = self.get_param_to_grad(params) if params else self.param_to_grad
        return [
            self._parameters_info[str(param)]
            for param, gradient in found.items()
            if isinstance(gradient, BlobReference) or not self.skip_sparse_optim
        ]

    def _refuse_without_gradients(self, caller: str) -> None:
        if not self.gradient_ops_added:
            raise EnforceNotMet(
                "You need to run AddGradientOperators first.", f"ModelHelper.{caller}"
            )

    def CreateDB(self, blob_out: Any, db: str, db_type: str, **kwargs: Any) -> Any:
        """Add what opens a database to the net that makes the parameters."""
        return self.param_init_net.CreateDB([], blob_out, db=db, db_type=db_type, **kwargs)

    def TensorProtosDBInput(
        self, unused_blob_in: Any, blob_out: Any, batch_size: int, db: str, db_type: str
    ) -> Any:
        """Add what reads batches of TensorProtos from a database; `unused_blob_in` is empty."""
        if len(unused_blob_in):
            raise EnforceAssertionError(
                "A reader that is open is given to model.net.TensorProtosDBInput.",
                "ModelHelper.TensorProtosDBInput",
                condition="not unused_blob_in",
            )
        reader = self.CreateDB(f"dbreader_{db}", db, db_type)
        return self.net.TensorProtosDBInput(reader, blob_out, batch_size=batch_size)

    def GetDevices(self) -> list[int]:
        """Raise EnforceNotMet, also an AssertionError: a model runs on one device."""
        if not self._devices:
            raise EnforceAssertionError(
                "Use data_parallel_model to run model on multiple GPUs.",
                "ModelHelper.GetDevices",
            )
        return self._devices

    def GetCompleteNet(self) -> Net:
        """Make one net of both, that which makes the parameters first."""
        complete = self.param_init_net.Clone(self.name + "_complete_net")
        for operator in complete.Proto().op:
            operator.debug_info += _INIT_MARK
        complete.AppendNet(self.net)
        if self.net.Proto().HasField("type"):
            complete.Proto().type = self.net.Proto().type
        return complete

    def ConstructInitTrainNetfromNet(self, net: Net) -> None:
        """Take both nets from one that `GetCompleteNet` made."""
        ids: dict[bool, list[int]] = {True: [], False: []}
        for position, operator in enumerate(net.Proto().op):
            ids[operator.debug_info.endswith(_INIT_MARK)].append(position)
        self.param_init_net = net.Clone(
            net.Name() + "/generated_param_init_net",
            op_id_mask=ids[True],
            update_external_list=True,
        )
        self.net = net.Clone(
            net.Name() + "/generated_net", op_id_mask=ids[False], update_external_list=True
        )

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("_") or op_type == "net":
            raise AttributeError(f"A ModelHelper has no attribute {op_type!r}.")
        added: Callable[..., Any] = getattr(self.net, op_type)
        if not self.allow_not_known_ops and op_type not in _KNOWN_TYPES:
            raise AttributeError(
                f"Operator {op_type} is not known to be safe; the model was made with "
                "allow_not_known_ops=False."
            )
        return added


def _within(params: list[BlobReference], namescope: str | None) -> list[BlobReference]:
    prefix = scopes.CurrentNameScope() if namescope is None else namescope
    if prefix and not prefix.endswith("/"):
        prefix += "/"
    return [param for param in params if param.GetNameScope().startswith(prefix)]
