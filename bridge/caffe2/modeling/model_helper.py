# SPDX-License-Identifier: Apache-2.0
"""ModelHelper: a net, the net that initializes its parameters, and a list of the parameters.

Follows caffe2/python/model_helper.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceNotMet, EnforceTypeError
from bridge.caffe2.core.net import Net
from bridge.caffe2.definitions import scope
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.modeling.initializers import ExternalInitializer, Initializer
from bridge.caffe2.modeling.modifier_context import (
    DEFAULT_OPTIM,
    OptimizerContext,
    RegularizerContext,
)
from bridge.caffe2.modeling.parameter_info import ParameterInfo, ParameterTags
from bridge.caffe2.modeling.parameter_sharing import parameter_sharing_context
from bridge.caffe2.modeling.predictor_net import ExtractPredictorNet

__all__ = [
    "DEFAULT_OPTIM",
    "ExternalInitializer",
    "ExtractPredictorNet",
    "Initializer",
    "ModelHelper",
    "OptimizerContext",
    "ParameterInfo",
    "ParameterTags",
    "RegularizerContext",
    "db_input",
    "parameter_sharing_context",
]


# The suffix of debug_info by which `GetCompleteNet` marks operators of `param_init_net`.
_INIT_MARK = "/param_init_net"

# The operators that a model with allow_not_known_ops=False can add.
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
    """A model under construction: ``net``, and ``param_init_net``, which runs once before it.

    ``model.Relu(...)`` is ``model.net.Relu(...)``; the functions of `brew` add operators with
    parameters. init_params: whether parameters get an operator in ``param_init_net``; otherwise
    they are expected in the workspace. allow_not_known_ops: whether ``model.NAME`` adds operators
    of every type. skip_sparse_optim: whether `GetOptimizationParamInfo` leaves out parameters with
    sparse gradients. param_model: a model to share parameters with. arg_scope: arguments that brew
    passes to every function.

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
            # By parameter, its gradient: a BlobReference or a GradientSlice.
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
        """Return the name of the model."""
        return self.name

    def create_param(
        self, param_name: Any, shape: list[int], initializer: Any, tags: Any = None
    ) -> BlobReference:
        """Create a parameter, unless one of that name and shape exists; return a reference to it.

        param_name: a BlobReference, or a str, which is prefixed with the current name scope or
        the one that it shares parameters with, see `ParameterSharing`. initializer: an object with
        ``create_param(name, net, shape)``, as `Initializer`. tags: see `AddParameter`; the
        optimizer of the parameter is that which `UseOptimizer` set for one of its tags.

        Raises EnforceNotMet: `param_name` is neither (also a TypeError), or a parameter of that
        name has another shape (also an AssertionError).

        >>> from bridge.caffe2 import model_helper
        >>> model = model_helper.ModelHelper(name="create_param_doc")
        >>> model.create_param("w", [2], model_helper.Initializer("ConstantFill", value=1.0))
        BlobReference("w")
        """
        if not isinstance(param_name, (str, BlobReference)):
            raise EnforceTypeError(
                f"param_name must be a str or a BlobReference, not {type(param_name).__name__}.",
                "ModelHelper.create_param",
            )
        if isinstance(param_name, BlobReference):
            name = str(param_name)
        else:
            name = parameter_sharing_context.get_parameter_name(param_name)
        known = self._parameters_info.get(name)
        if known is not None:
            if known.shape != shape:
                raise EnforceAssertionError(
                    f"Parameter {name!r} has shape {known.shape}, not {shape}.",
                    "ModelHelper.create_param",
                )
            found: BlobReference = known.blob
            return found
        created = initializer.create_param(BlobReference(name), self.param_init_net, shape)
        # An initializer that a script defines may return the blob itself.
        blob: BlobReference = created if isinstance(created, BlobReference) else created.blob
        info = ParameterInfo(None, blob, shape=shape) if created is blob else created
        optimizers = OptimizerContext.current()
        for tag in sorted({tag for tag in _listed(tags) if tag}):
            if optimizers.has_optimizer(tag):
                info.optimizer = optimizers.get_optimizer(tag)
        if info.optimizer is None and optimizers.has_optimizer(DEFAULT_OPTIM):
            info.optimizer = optimizers.get_optimizer(DEFAULT_OPTIM)
        info.regularizer = RegularizerContext.current()
        self._parameters_info[name] = info
        self.AddParameter(blob, tags)
        return blob

    def get_param_info(self, param: BlobReference) -> ParameterInfo | None:
        """Return the ParameterInfo of a parameter; None if `create_param` did not create it.

        After AddGradientOperators every parameter has one. Raises EnforceNotMet, also an
        AssertionError: `param` is not a BlobReference.
        """
        if not isinstance(param, BlobReference):
            raise EnforceAssertionError(
                f"Param {param} is not a BlobReference", "ModelHelper.get_param_info"
            )
        return self._parameters_info.get(str(param))

    def AddParameter(self, param: Any, tags: Any = None) -> None:
        """Add a blob to the parameters; `tags` is one of `ParameterTags` or a list of them.

        Raises EnforceNotMet, also an AssertionError: `param` is not a BlobReference.
        """
        if not isinstance(param, BlobReference):
            raise EnforceAssertionError(
                f"A parameter must be a BlobReference, not {type(param).__name__}.",
                "ModelHelper.AddParameter",
            )
        tagged = _listed(tags)
        computed = ParameterTags.COMPUTED_PARAM in tagged
        (self._computed_params if computed else self.params).append(param)
        if ParameterTags.WEIGHT in tagged:
            self.weights.append(param)
        if ParameterTags.BIAS in tagged:
            self.biases.append(param)

    def GetParams(self, namescope: str | None = None, top_scope: bool = False) -> list[Any]:
        """Return the parameters of a name scope; None is the current one. top_scope is ignored."""
        return _in_scope(self.params, namescope)

    def GetComputedParams(self, namescope: str | None = None) -> list[Any]:
        """Return the computed parameters of a name scope, such as running means."""
        return _in_scope(self._computed_params, namescope)

    def GetAllParams(self, namescope: str | None = None) -> list[Any]:
        """Return the parameters of a name scope, followed by the computed parameters."""
        return self.GetParams(namescope) + self.GetComputedParams(namescope)

    def _Validate(self) -> list[str]:
        """Return the names of parameters that were added twice, sorted."""
        names = [str(param) for param in self.params]
        return sorted({name for name in names if names.count(name) > 1})

    def Validate(self) -> None:
        """Raise EnforceNotMet, also an AssertionError, if a parameter was added twice."""
        duplicates = self._Validate()
        if duplicates:
            raise EnforceAssertionError(f"Duplicate params: {duplicates}", "ModelHelper.Validate")

    def Proto(self) -> Any:
        """Return the NetDef of ``net``, not a copy."""
        return self.net.Proto()

    def InitProto(self) -> Any:
        """Return the NetDef of ``param_init_net``, not a copy."""
        return self.param_init_net.Proto()

    def RunAllOnGPU(self, *args: Any, **kwargs: Any) -> None:
        """Set the device of both nets to a GPU; see ``Net.RunAllOnGPU``."""
        self.param_init_net.RunAllOnGPU(*args, **kwargs)
        self.net.RunAllOnGPU(*args, **kwargs)

    def AddGradientOperators(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Add the gradient operators of ``net``; return a dict of blobs and their gradients.

        Takes the arguments of ``Net.AddGradientOperators``. `param_to_grad` holds the gradients of
        the parameters afterwards. Raises EnforceNotMet: it was called before, a parameter was
        added twice, or as ``Net.AddGradientOperators``.
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
        """Return a dict of the `params` that have a gradient, and their gradients.

        Raises EnforceNotMet: AddGradientOperators was not called.
        """
        self._require_gradients("get_param_to_grad")
        return {param: self.grad_map[str(param)] for param in params if str(param) in self.grad_map}

    def GetOptimizationParamInfo(self, params: list[BlobReference] | None = None) -> list[Any]:
        """Return the ParameterInfo of each parameter that has a gradient, of all or of `params`.

        Parameters with sparse gradients are left out if `skip_sparse_optim` is set. Raises
        EnforceNotMet: AddGradientOperators was not called.
        """
        self._require_gradients("GetOptimizationParamInfo")
        found = self.get_param_to_grad(params) if params else self.param_to_grad
        return [
            self._parameters_info[str(param)]
            for param, gradient in found.items()
            if isinstance(gradient, BlobReference) or not self.skip_sparse_optim
        ]

    def _require_gradients(self, caller: str) -> None:
        if not self.gradient_ops_added:
            raise EnforceNotMet(
                "You need to run AddGradientOperators first.", f"ModelHelper.{caller}"
            )

    def CreateDB(self, blob_out: Any, db: str, db_type: str, **kwargs: Any) -> Any:
        """Add an operator that opens a database to ``param_init_net``; return the reader."""
        return self.param_init_net.CreateDB([], blob_out, db=db, db_type=db_type, **kwargs)

    def TensorProtosDBInput(
        self, unused_blob_in: Any, blob_out: Any, batch_size: int, db: str, db_type: str
    ) -> Any:
        """Add operators that open the database `db` and read `batch_size` TensorProtos at each run.

        Raises EnforceNotMet, also an AssertionError: `unused_blob_in` is not empty.
        """
        if len(unused_blob_in):
            raise EnforceAssertionError(
                "An open reader must be passed to model.net.TensorProtosDBInput.",
                "ModelHelper.TensorProtosDBInput",
                condition="not unused_blob_in",
            )
        reader = self.CreateDB(f"dbreader_{db}", db, db_type)
        return self.net.TensorProtosDBInput(reader, blob_out, batch_size=batch_size)

    def GetDevices(self) -> list[int]:
        """Return the devices of the model.

        Raises EnforceNotMet, also an AssertionError: it has none, as data_parallel_model, which
        sets them, is not implemented.
        """
        if not self._devices:
            raise EnforceAssertionError(
                "Use data_parallel_model to run model on multiple GPUs.",
                "ModelHelper.GetDevices",
            )
        return self._devices

    def GetCompleteNet(self) -> Net:
        """Return one net of the operators of ``param_init_net``, followed by ``net``'s."""
        complete = self.param_init_net.Clone(self.name + "_complete_net")
        for operator in complete.Proto().op:
            operator.debug_info += _INIT_MARK
        complete.AppendNet(self.net)
        if self.net.Proto().HasField("type"):
            complete.Proto().type = self.net.Proto().type
        return complete

    def ConstructInitTrainNetfromNet(self, net: Net) -> None:
        """Replace ``param_init_net`` and ``net`` by the two parts of a net of `GetCompleteNet`."""
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
        add: Callable[..., Any] = getattr(self.net, op_type)
        if not self.allow_not_known_ops and op_type not in _KNOWN_TYPES:
            raise AttributeError(
                f"Operator {op_type} is not known to be safe; the model was created with "
                "allow_not_known_ops=False."
            )
        return add


def _listed(tags: Any) -> list[Any]:
    return tags if isinstance(tags, list) else [tags]


def _in_scope(params: list[BlobReference], namescope: str | None) -> list[BlobReference]:
    prefix = scope.CurrentNameScope() if namescope is None else namescope
    if prefix and not prefix.endswith("/"):
        prefix += "/"
    return [param for param in params if param.GetNameScope().startswith(prefix)]


def db_input(model: ModelHelper, blobs_out: Any, batch_size: int, db: str, db_type: str) -> Any:
    """Add operators that open the database `db` and read `batch_size` TensorProtos at each run."""
    reader = model.param_init_net.CreateDB([], f"dbreader_{db}", db=db, db_type=db_type)
    return model.net.TensorProtosDBInput(reader, blobs_out, batch_size=batch_size)
