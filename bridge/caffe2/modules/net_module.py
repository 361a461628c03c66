# SPDX-License-Identifier: Apache-2.0
"""NetModule: a net as a torch.nn.Module on the memory of the blobs, and `to_module`.

Note "What is shared"
The parameters and buffers are torch tensors over the memory of the blobs: training the module
changes what `RunNet` computes, and a net that updates its blobs in place changes the module. This
ends where torch gives a parameter other memory (``module.to`` another device or type), in copies
and pickles, and where a blob gets other memory (a feed of other sizes). A call computes new
tensors: it writes neither blobs nor parameters, even where the net overwrites a blob. The memory
of inner results, and of the last inputs, is kept for the next call if no gradients are wanted; see
`taped_steps`.

Note "What torch can trace"
Operators that are functions are traced by torch.export and torch.compile. The others, with state or
effects or decisions by values of elements, run as they do in a net; see `net_function`.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Iterable
from contextlib import nullcontext
from types import FunctionType

import torch

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError, EnforceNotMet, EnforceTypeError
from bridge.caffe2.base.hardware import without_absent_gpus
from bridge.caffe2.base.message_text import net_message
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.base.names import listed
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.execution.blob_table import BlobTable, find_blob, missing_from
from bridge.caffe2.execution.net_function import NetFunction, Step, last_uses, names_of
from bridge.caffe2.modules.taped_steps import Buffers, TapedSteps, layouts_of
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.named_nets import run_init_net
from bridge.caffe2.workspaces.workspace import Workspace
from bridge.exchange.conversion import export_source
from bridge.exchange.torch_export import export_torch

_CALLER = "to_module"


def to_module(
    net: Any,
    init_net: Any = None,
    *,
    inputs: Iterable[str] | None = None,
    outputs: Iterable[str] | None = None,
    trainable: bool = False,
) -> NetModule:
    """Return a net as a torch.nn.Module whose parameters share the memory of the blobs.

    net: a ``core.Net``, a NetDef, its bytes, or the path of a ``.pb`` or ``.pbtxt`` file. init_net:
    likewise, a net that creates the parameters; it is run once in a workspace of its own. Without
    it they are blobs of the current workspace. inputs, outputs: names of blobs; by default the
    external inputs that are not blobs, and the external outputs. trainable: whether floating-point
    parameters require gradients.

    A module runs where its tensors are: device options of GPUs that torch does not see are dropped,
    with a warning.

    Blobs that the net reads become parameters (floating-point numbers) or buffers. ``state_dict``
    has the names of the blobs, with ``_`` for ``.``.

    Raises EnforceNotMet: not a net, or a file that cannot be read; an operator that cannot be
    created; an input that the net does not read, an output that it does not write (also a
    KeyError); a blob that is neither an input nor there.

    >>> import numpy as np
    >>> from bridge import caffe2
    >>> from bridge.caffe2 import core, workspace
    >>> net = core.Net("affine")
    >>> _ = net.FC(["x", "w", "b"], "y")
    >>> workspace.FeedBlob("w", np.ones((2, 3), np.float32))
    True
    >>> workspace.FeedBlob("b", np.zeros(2, np.float32))
    True
    >>> module = caffe2.to_module(net, inputs=["x"], outputs=["y"])
    >>> module(np.ones((1, 3), np.float32)).tolist(), sorted(module.state_dict())
    ([[3.0, 3.0]], ['b', 'w'])
    >>> module.get_blob("w").data_ptr() == workspace.FetchTorch("w").data_ptr()
    True
    >>> workspace.ResetWorkspace()
    True
    """
    table: BlobTable = current.workspace
    if init_net is not None:
        table = Workspace()
        run_init_net(table, net_message(init_net, _CALLER), _CALLER)
    return module_on(net_message(net, _CALLER), table, inputs, outputs, trainable)


def module_on(
    message: Any,
    table: BlobTable,
    inputs: Iterable[str] | None = None,
    outputs: Iterable[str] | None = None,
    trainable: bool = False,
) -> NetModule:
    """Return a NetDef as a module whose parameters are blobs of `table`; see `to_module`."""
    message = without_absent_gpus(message, _CALLER)
    function = NetFunction(message, _CALLER)
    given = None if inputs is None else _names(inputs, "inputs")
    if given is None:
        given = missing_from(table, dict.fromkeys((*message.external_input, *function.reads)))
    wanted = list(message.external_output) if outputs is None else _names(outputs, "outputs")
    if not wanted:
        wanted = _leaves(function)
    known = {*function.writes, *function.reads, *given, *message.external_input}
    for name in wanted:
        if name not in known:
            raise EnforceKeyError(
                f"Net {function.name!r} has no blob {name!r} to be an output; it writes "
                f"{listed(function.writes)}.",
                _CALLER,
            )
    if inputs is not None:
        for name in given:
            if name not in function.reads and name not in message.external_input:
                raise EnforceKeyError(
                    f"Net {function.name!r} does not read {name!r}; it reads "
                    f"{listed(function.reads)}.",
                    _CALLER,
                )
    function.check_outputs(wanted, _CALLER)
    return _class_for(tuple(given))(message, function, given, wanted, table, trainable)


def _names(names: Iterable[str], what: str) -> list[str]:
    if isinstance(names, (str, bytes)):
        raise EnforceTypeError(f"{what} is a list of names, not {names!r}.", _CALLER)
    with wrapping(f"{what} is a list of names", _CALLER, TypeError):
        return [str(name) for name in names]


def _leaves(function: NetFunction) -> list[str]:
    """Return the names that are written and not read afterwards."""
    leaves: dict[str, None] = {}
    for step in function.steps:
        for name in step.inputs:
            leaves.pop(name, None)
        leaves.update(dict.fromkeys(step.outputs))
    return list(leaves)


class NetModule(torch.nn.Module):
    """A net as a module; `to_module` creates it.

    `input_names`, `output_names`: tuples of the names of the blobs. `net`: the NetDef, a copy.
    """

    def __init__(
        self,
        message: Any,
        function: NetFunction,
        inputs: list[str],
        outputs: list[str],
        table: BlobTable,
        trainable: bool,
    ) -> None:
        super().__init__()
        self.input_names: tuple[str, ...] = tuple(inputs)
        self.output_names: tuple[str, ...] = tuple(outputs)
        self._definition: bytes = message.SerializeToString()
        self._is_test: bool | None = None
        self._objects: dict[str, Any] = {}
        self._keys: dict[str, str] = {}
        self._prepare(function)
        for name in self._blob_names():
            self._add(name, find_blob(table, name), trainable)
        for step in [one for one in self._steps if one.reads_outputs]:
            for name in set(step.outputs) - {*self._keys, *self._objects, *inputs}:
                blob = find_blob(table, name)
                if blob is not None:  # else the first run makes it
                    self._add(name, blob, trainable)

    def _prepare(self, function: NetFunction) -> None:
        """Set the steps that compute the outputs, and the names that each is the last to read."""
        steps = function.needed_for(self.output_names)
        self._steps: list[Step] = steps
        self._last = last_uses(steps, self.output_names)
        self._set_arguments()

    def _set_arguments(self) -> None:
        self._arguments = [step.with_is_test(self._is_test) for step in self._steps]
        self._tapes = TapedSteps(self._steps)

    def _blob_names(self) -> list[str]:
        """Return the names of the blobs that are read and are not inputs."""
        names = dict.fromkeys(names_of(self._steps)[0])
        names.update((name, None) for name in self.output_names)
        written = set(names_of(self._steps)[1]) - set(names_of(self._steps)[0])
        return [name for name in names if name not in self.input_names and name not in written]

    def _add(self, name: str, blob: Blob | None, trainable: bool) -> None:
        """Add a blob as a parameter, a buffer, or an object that is not a tensor."""
        tensor = None if blob is None else blob._tensor
        if blob is None or (tensor is None and blob._object is None):
            readers = [step.position for step in self._steps if name in step.inputs]
            raise EnforceKeyError(
                f"There is no blob {name!r}, which the operator at position {readers[:1]} reads: "
                "feed it, pass init_net=, or name it in inputs=.",
                _CALLER,
            )
        if tensor is None or not tensor.dtype() or not tensor.dtype().is_pod:
            self._objects[name] = blob
            return
        key = name.replace(".", "_")
        while key in self._parameters or key in self._buffers:
            key += "_"
        self._keys[name] = key
        value = operand(tensor)
        if value.is_floating_point():
            # Set in the dicts themselves: names may be those of attributes, such as "training".
            self._parameters[key] = torch.nn.Parameter(value, requires_grad=trainable)
        else:
            self._buffers[key] = value

    @property
    def net(self) -> Any:
        """The NetDef, a new copy."""
        return caffe2_pb2().NetDef.FromString(self._definition)

    def get_blob(self, name: str) -> torch.Tensor:
        """Return the parameter or buffer of a blob.

        Raises EnforceNotMet, also a KeyError: the module has no parameter of that name.
        """
        key = self._keys.get(name)
        if key is None:
            raise EnforceKeyError(
                f"The module has no parameter or buffer {name!r}; it has {listed(self._keys)}.",
                "get_blob",
            )
        found = self._parameters[key] if key in self._parameters else self._buffers[key]
        assert found is not None
        return found

    def train(self, mode: bool = True) -> NetModule:
        """Set training mode, also of the operators that have an argument `is_test`."""
        super().train(mode)
        self._is_test = not mode
        self._set_arguments()
        return self

    def forward(self, *inputs: Any, **inputs_by_name: Any) -> Any:
        """Return the output, or a tuple of several, for inputs in the order of `input_names`.

        Inputs are tensors of any framework; an operator has a row-major copy of one that is not
        row-major. An output has memory of its own, unless it is an input by its name. It is None if
        the net has not written it, as in the branch of an If that was not taken.

        Raises EnforceNotMet: a missing or unknown input, an input of a type that an operator does
        not take (any floating-point type will do for another; both are TypeErrors as well), or an
        operator that failed.
        """
        if inputs_by_name or len(inputs) != len(self.input_names):
            inputs = self._bind_inputs(inputs, inputs_by_name)
        operands = [x if isinstance(x, torch.Tensor) else _as_value(x) for x in inputs]
        parameters, buffers = self._parameters, self._buffers
        for key in self._keys.values():
            operands.append(parameters[key] if key in parameters else buffers[key])
        if torch.compiler.is_compiling():
            results = self._compute(operands)
        elif torch.is_inference_mode_enabled():
            # Tensors that are made in this mode cannot be written outside.
            with torch.inference_mode(False), torch.no_grad():
                results = self._tapes(operands, self._compute)
        else:
            results = self._tapes(operands, self._compute)
        return results[0] if len(results) == 1 else tuple(results)

    def _compute(
        self, operands: list[Any], layouts: list[Any] | None = None, buffers: Buffers | None = None
    ) -> list[Any]:
        """Return the outputs, computed by the functions of the operators.

        operands: the inputs, then the parameters and buffers in the order of `_keys`. layouts: gets
        the layouts of the results of each step. buffers: has memory for the results.
        """
        values: dict[str, Any] = dict(self._objects)
        count = len(self.input_names)
        values.update(zip(self._keys, operands[count:], strict=True))
        values.update(zip(self.input_names, operands[:count], strict=True))
        device = _device_of(values)
        for i, step in enumerate(self._steps):
            more = {} if buffers is None else buffers.arguments(i, step, values)
            inputs = [] if layouts is None else [values.get(name) for name in step.inputs]
            self._compute_step(i, values, device, more)
            if layouts is not None:
                layouts.append(layouts_of(step, inputs, values, self.output_names))
            for name in self._last[i]:
                values.pop(name, None)
        found = [*operands]
        for name in self.output_names:
            one = values.get(name)
            found.append(one if name in self.input_names else _owned(one, found))
        return found[len(operands) :]

    def _bind_inputs(self, inputs: tuple[Any, ...], by_name: dict[str, Any]) -> tuple[Any, ...]:
        """Return the inputs in the order of `input_names`."""
        names = self.input_names
        if len(inputs) > len(names):
            raise EnforceTypeError(
                f"The module takes {len(names)} inputs, {listed(names)}, not {len(inputs)}.",
                "Module",
            )
        given = dict(zip(names, inputs, strict=False))
        for name, value in by_name.items():
            if name in given or name not in names:
                what = "is given twice" if name in given else "is not an input"
                raise EnforceTypeError(
                    f"{name!r} {what}; the inputs are {listed(names)}.", "Module"
                )
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise EnforceTypeError(
                f"The inputs {listed(missing)} are missing; the module takes {listed(names)}.",
                "Module",
            )
        return tuple(given[name] for name in names)

    def _compute_step(
        self, i: int, values: dict[str, Any], device: Any, more: dict[str, Any]
    ) -> None:
        """Compute a step, with the arguments in `more` besides its own."""
        step = self._steps[i]
        is_compiling = torch.compiler.is_compiling()
        if is_compiling and step.reason is not None:
            _refuse_tracing(step)
        if step.function is None:
            step.run(values)
        else:
            arguments = step.placed(self._arguments[i], device)
            if torch.compiler.is_dynamo_compiling():  # which does not trace the check
                step.call(values, arguments, "unchecked")
            else:
                try:
                    step.call(values, {**arguments, **more} if more else arguments)
                except Exception as cause:
                    if not any(isinstance(values[name], Blob) for name in step.inputs):
                        raise step.failure(cause) from cause
                    step.run(values)  # strings; asked only now, since few nets have them

    def _apply(self, *args: Any, **kwargs: Any) -> NetModule:
        super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]
        self._set_arguments()  # tapes have the memory of the parameters
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _empty_module, (self.input_names,), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for name in ("_steps", "_last", "_arguments", "_tapes"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._prepare(NetFunction(self.net, "NetModule"))

    def extra_repr(self) -> str:
        """Return the inputs and outputs, for repr()."""
        return f"inputs={list(self.input_names)}, outputs={list(self.output_names)}"


def _class_for(names: tuple[str, ...]) -> type[NetModule]:
    """Return a new class whose ``forward`` has parameters for these inputs in its signature.

    torch.export names inputs and their dynamic sizes by it. Its code is a copy: torch.compile
    limits how many versions of one code object there are, and modules of other nets are other
    versions.
    """
    forward = FunctionType(NetModule.forward.__code__.replace(), globals(), "forward")
    kinds = inspect.Parameter
    parameters = [kinds("self", kinds.POSITIONAL_OR_KEYWORD)]
    for name in names:
        text = re.sub(r"\W|^(?=\d)", "_", name)
        while any(text == other.name for other in parameters) or keyword.iskeyword(text):
            text += "_"
        parameters.append(kinds(text, kinds.POSITIONAL_OR_KEYWORD))
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return type("NetModule", (NetModule,), {"forward": forward, "__module__": __name__})


def _owned(value: Any, others: list[Any]) -> Any:
    """Return an output, a copy where it shares memory with an input, parameter or other output."""
    if not isinstance(value, torch.Tensor):
        return value
    # A tape has the copy, and not what is asked here. (torch 2.6 compiles no DisableTorchFunction.)
    with nullcontext() if torch.compiler.is_compiling() else torch._C.DisableTorchFunction():
        tensors = [one for one in others if isinstance(one, torch.Tensor)]
        is_shared = any(_share_memory(value, one) for one in tensors)
    return value.clone() if is_shared else value


def _share_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether tensors have one storage; while torch traces, whether one views the other."""
    if not torch.compiler.is_compiling():
        try:
            return bool(a.untyped_storage()._cdata == b.untyped_storage()._cdata)
        except NotImplementedError:  # under vmap, and of sparse tensors
            pass
    base = a if a._base is None else a._base
    return base is (b if b._base is None else b._base)


def _empty_module(names: tuple[str, ...]) -> NetModule:
    """Return a module without a net, for copies and pickles to fill."""
    cls = _class_for(names)
    return cls.__new__(cls)


def _as_value(value: Any) -> Any:
    """Return an input of any framework as a torch tensor, or as a blob if it is an object."""
    is_text = isinstance(value, (bytes, str))
    if is_text or getattr(getattr(value, "dtype", None), "kind", "") in ("O", "S", "U"):
        blob = Blob()
        blob.feed(value)
        return blob
    return export_torch(export_source(value, None))


def _device_of(values: dict[str, Any]) -> Any:
    """Return the device that the module computes on: where its first tensor is."""
    for value in values.values():
        if isinstance(value, torch.Tensor):
            return value.device
    return torch.device("cpu")


def _refuse_tracing(step: Step) -> None:
    what = step.reason or "cannot be traced"
    raise EnforceNotMet(
        f"Operator {step.definition.type!r} at position {step.position}, which writes "
        f"{listed(step.outputs)}, {what}, so torch cannot export or compile it. Call the module "
        "without, or take the outputs before it by outputs=.",
        "Module",
    )
