# SPDX-License-Identifier: Apache-2.0
"""InferShapesAndTypes: the sizes and types of the outputs of nets, without values of the inputs.

Caffe2 has a shape function for many operators. Here the functions of operators run on torch's meta
device, which has sizes and no memory. Other operators, and those that read values, run by
themselves in a temporary workspace on small inputs of the sizes and types known so far, several
times with different values; sizes and types that are equal in all runs are known from then on. The
rest is left out: outputs whose sizes depend on unknown values, and operators that fail on all of
the tried values. Operators that do more than compute are not run: those that write or read files,
print, call Python or run nets, and classes registered outside of this package.

Follows InferShapesAndTypes, caffe2/python/workspace.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from bridge.annotation import Any, Array
from bridge.c10 import TypeMeta, string
from bridge.c10.errors import (
    EnforceAssertionError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)
from bridge.caffe2.base.data_types import ELEMENT_TYPES, NUMBERS, DataType
from bridge.caffe2.base.messages import as_message
from bridge.caffe2.base.wrapped_errors import wrap_error, wrapping
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.function_operator import FunctionOperator
from bridge.caffe2.execution.operator import Operator
from bridge.caffe2.execution.registry import class_for
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.run_once import run_operator
from bridge.caffe2.workspaces.shape_rules import depends_on_values, infer_by_rule
from bridge.caffe2.workspaces.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.workspaces.shape_rules import Known

_CALLER = "InferShapesAndTypes"
_KEPT_ELEMENTS = 4096
_MOST_ELEMENTS = 1 << 20  # of the inputs of an operator that is run to see its result

# Parts of the names of operators that do more than compute, besides those with `_has_effects`.
_EFFECT_WORDS = ("DB", "File", "Load", "Save", "Print", "Free", "Network", "Wall", "Time", "Queue")
_RANDOM_WORDS = ("Uniform", "Gaussian", "Xavier", "MSRA", "Random", "Dropout", "Multinomial")


def InferShapesAndTypes(
    nets: Iterable[Any],
    blob_dimensions: dict[str, list[int]] | None = None,
    nets_proto: bool = False,
    blob_types: dict[str, int] | None = None,
) -> tuple[dict[str, list[int]], dict[str, int]]:
    """Return two dicts by blob name: sizes, and types as numbers of `core.DataType`.

    nets: a list of ``core.Net`` objects or NetDefs (then nets_proto may be True), in the order in
    which they run. blob_dimensions: the sizes of their inputs; None: the sizes of the tensors in
    the current workspace, where outputs that cannot be inferred are expected to have the sizes that
    they have there. blob_types: the types of the inputs; FLOAT by default. Blobs whose sizes depend
    on unknown values are left out otherwise. Takes as long as a few runs of each operator.

    Raises EnforceNotMet: `nets` is not a list of nets; sizes or types that no tensor has; types
    without sizes (also an AssertionError).

    >>> from bridge.caffe2 import core, workspace
    >>> net = core.Net("n")
    >>> _ = net.FC(["x", "w", "b"], "y")
    >>> sizes = {"x": [2, 4], "w": [3, 4], "b": [3]}
    >>> shapes, types = workspace.InferShapesAndTypes([net], sizes)
    >>> shapes["y"], types["y"] == core.DataType.FLOAT
    ([2, 3], True)
    """
    if blob_dimensions is None and blob_types is not None:
        raise EnforceAssertionError(
            "blob_types requires blob_dimensions.", _CALLER, condition="blob_types is None"
        )
    try:
        messages = [as_message(net, "NetDef", _CALLER) for net in nets]
    except TypeError as cause:
        if isinstance(cause, EnforceNotMet):
            raise
        raise wrap_error("InferShapesAndTypes takes a list of nets", _CALLER, cause) from cause
    there = _of_workspace() if blob_dimensions is None else {}
    known = (
        dict(there) if blob_dimensions is None else _known_from(blob_dimensions, blob_types or {})
    )
    import torch

    with torch.random.fork_rng(devices=[]):
        for message in messages:
            for operator in message.op:
                found = _outputs(operator, message, known)
                for name in operator.output:
                    known.pop(name, None)
                    if name in there:  # of an earlier run; the values may differ in the next one
                        known[name] = (*there[name][:2], None)
                known.update(found)
    return (
        {name: sizes for name, (sizes, _, _) in sorted(known.items())},
        {name: NUMBERS[meta.name] for name, (_, meta, _) in sorted(known.items())},
    )


def _of_workspace() -> dict[str, Known]:
    known: dict[str, Known] = {}
    for name, blob in list(current.blobs.items()):
        tensor = blob._tensor
        if tensor is not None and tensor.dtype().name in NUMBERS:
            known[name] = ([int(size) for size in tensor.sizes()], tensor.dtype(), None)
    return known


def _known_from(dimensions: dict[str, list[int]], types: dict[str, int]) -> dict[str, Known]:
    for by_name in (dimensions, types):
        if not isinstance(by_name, dict):
            raise EnforceTypeError(
                f"Sizes and types are dicts by name, not {type(by_name).__name__}.", _CALLER
            )
    known: dict[str, Known] = {}
    for name, sizes in dimensions.items():
        number = types.get(name, 1)
        if number not in ELEMENT_TYPES or number == DataType.BYTE:
            raise EnforceValueError(f"Blob {name!r} cannot be of type {number!r}.", _CALLER)
        with wrapping(f"{sizes!r} are not sizes of {name!r}", _CALLER, (TypeError, ValueError)):
            listed = [int(size) for size in sizes]
        if min(listed, default=0) < 0:
            raise EnforceValueError(f"Blob {name!r} cannot be of sizes {listed}.", _CALLER)
        known[str(name)] = (listed, ELEMENT_TYPES[number], None)
    return known


def _outputs(operator: Any, net: Any, known: dict[str, Known]) -> dict[str, Known]:
    """Return the outputs of an operator that can be known."""
    if not operator.output or (
        operator.input and not any(name in known for name in operator.input)
    ):
        return {}
    option = net.device_option if net.HasField("device_option") else None
    try:
        definition = Definition(operator, None, option)
    except EnforceNotMet:
        return {}
    ruled = infer_by_rule(definition, known)
    if len(ruled) == len(definition.outputs):
        return ruled
    try:
        cls = class_for(definition, _CALLER)
    except EnforceNotMet:
        return ruled
    if cls._keeps_sizes:
        inputs = {name: known[name] for name in definition.inputs if name in known}
        return {name: (*inputs[name][:2], None) for name in definition.outputs if name in inputs}
    if any(name not in known for name in definition.inputs):
        return ruled
    if not _only_computes(definition.type, cls):
        return ruled
    exact = all(known[name][2] is not None for name in definition.inputs)
    if not exact and depends_on_values(definition):
        return ruled
    return {**ruled, **_computed(definition, known, exact)}


def _computed(definition: Definition, known: dict[str, Known], exact: bool) -> dict[str, Known]:
    """Return the outputs that are known from running the operator, on the meta device or not."""
    inferred = _infer_on_meta(definition, known)
    if inferred is not None and not (
        exact and _total_elements(inferred, inferred) <= _KEPT_ELEMENTS
    ):
        return inferred
    if _total_elements(known, definition.inputs) > _MOST_ELEMENTS or (
        inferred is None and not definition.inputs and not _is_small_fill(definition)
    ):
        return {}
    return _agreed(definition, known, exact)


def _total_elements(known: dict[str, Known], names: Iterable[str]) -> int:
    """Return the number of elements of blobs together."""
    return sum(math.prod(known[name][0]) for name in set(names) if name in known)


def _agreed(definition: Definition, known: dict[str, Known], exact: bool) -> dict[str, Known]:
    """Run an operator on different values; return the outputs that are alike in all runs."""
    runs = []
    for values in _tries(definition, known, exact):
        outputs = _run(definition, values)
        if outputs is not None:
            runs.append(outputs)
    if not runs or (len(runs) < 2 and not exact):  # nothing to compare with
        return {}
    keeps_values = exact and not any(word in definition.type for word in _RANDOM_WORDS)
    return {
        name: (sizes, meta, array if keeps_values else None)
        for name, (sizes, meta, array) in runs[0].items()
        if all(name in run and run[name][:2] == (sizes, meta) for run in runs)
    }


def _is_small_fill(definition: Definition) -> bool:
    """Return whether the argument `shape`, if there is one, names few elements."""
    shape: list[int] = list(definition.arguments.get("shape", {}).get("ints", ()))
    return math.prod(shape) <= _MOST_ELEMENTS


def _only_computes(op_type: str, cls: type[Operator]) -> bool:
    return (
        (cls.__module__.startswith("bridge.caffe2.operators.") or issubclass(cls, FunctionOperator))
        and not cls._has_effects
        and not any(word in op_type for word in _EFFECT_WORDS)
    )


def _tries(
    definition: Definition, known: dict[str, Known], exact: bool
) -> Iterator[dict[str, Array]]:
    """Yield values for the inputs: the known ones, or else several sets of arbitrary ones."""
    names = list(dict.fromkeys(definition.inputs))
    if exact:
        yield {name: known[name][2] for name in names}  # type: ignore[misc]
        return
    kinds = ["zeros", "ramp"]
    if any(known[name][1].numpy.kind != "f" for name in names):  # integers may be sizes or indices
        kinds += ["ones", "twos", "positions"]
    if "Lengths" in definition.type:
        kinds += ["first", "last"]
    for kind in kinds:
        values = {}
        for position, name in enumerate(names):
            sizes, meta, array = known[name]
            values[name] = _filled(sizes, meta, kind, position) if array is None else array
            if array is None and position and position == len(names) - 1:
                _all_in_one(values[name], known[names[position - 1]][0], kind)
        yield values


def _all_in_one(lengths: Array, sizes: list[int], kind: str) -> None:
    """Set lengths of segments so that the first or last segment has all rows, for these kinds."""
    if kind in ("first", "last") and lengths.ndim == 1 and lengths.size and sizes:
        lengths[0 if kind == "first" else -1] = sizes[0]


def _filled(sizes: list[int], meta: TypeMeta, kind: str, position: int) -> Array:
    """Return values for the input at `position`; kind "positions" differs between inputs."""
    import numpy as np

    number = {"ones": 1, "twos": 2, "positions": position}.get(kind, 0)
    if meta.name == "string":
        filled = np.full(sizes, b"%d" % number, dtype=object)
        if kind == "ramp":
            filled.reshape(-1)[:] = [b"%d" % i for i in range(filled.size)]
        return filled
    if kind == "ramp":
        count = int(np.prod(sizes, dtype=np.int64))
        ramp = np.arange(count).reshape(sizes)
        scale = max(count, 1) if meta.numpy.kind == "f" else 1
        return np.asarray(ramp / scale).astype(meta.numpy)
    return np.full(sizes, number, dtype=meta.numpy)


def _run(definition: Definition, values: dict[str, Array]) -> dict[str, Known] | None:
    """Return the outputs of one run on these values; None if it fails."""
    workspace = Workspace()
    try:
        for name, array in values.items():
            workspace.feed_blob(name, array)
        run_operator(workspace, definition, _CALLER)
    except EnforceNotMet:
        return None
    outputs: dict[str, Known] = {}
    for name in definition.outputs:
        tensor = workspace._blobs.get(name, Blob())._tensor
        if tensor is not None and tensor.dtype().name in NUMBERS:
            few = tensor.numel() <= _KEPT_ELEMENTS
            outputs[name] = (
                [int(size) for size in tensor.sizes()],
                tensor.dtype(),
                workspace.fetch_blob(name) if few else None,
            )
    return outputs


def _infer_on_meta(definition: Definition, known: dict[str, Known]) -> dict[str, Known] | None:
    """Return the outputs of an operator by name, without values; None if they cannot be inferred.

    The function runs on tensors that have sizes and no memory. Inputs whose values are known are
    given as they are where that is needed, such as the new sizes of a Reshape.
    """
    cls = definition.cls
    if not issubclass(cls, FunctionOperator):
        return None
    bound = definition.checked
    inputs = [known[name] for name in definition.inputs]
    if any(meta.torch is None for _, meta, _ in inputs) or not _types_fit(bound.types, inputs):
        return None
    import torch

    arguments = dict(bound.arguments)
    if "TargetDevice" in bound.wants:
        arguments[bound.wants["TargetDevice"]] = torch.device("meta")
    for tensors in _meta_tries(inputs):
        try:
            returned = bound.function(*tensors, **arguments)
        except Exception:  # noqa: BLE001  # it reads values, or refuses the sizes
            continue
        return _described(definition, returned)
    return None


def _types_fit(types: tuple[Any, ...], inputs: list[Known]) -> bool:
    for i, allowed in enumerate(types):
        if isinstance(allowed, int):
            allowed = (inputs[allowed][1],)
        if allowed is not None and inputs[i][1] not in allowed:
            return False
    return True


def _meta_tries(inputs: list[Known]) -> Iterator[list[Any]]:
    """Yield tensors for the inputs: on the meta device, and with the known ones as they are."""
    import torch

    on_meta = [torch.empty(sizes, dtype=meta.torch, device="meta") for sizes, meta, _ in inputs]
    yield on_meta
    if any(values is not None for _, _, values in inputs):
        yield [
            empty if values is None else torch.from_numpy(values.copy())
            for empty, (_, _, values) in zip(on_meta, inputs, strict=True)
        ]


def _described(definition: Definition, returned: Any) -> dict[str, Known] | None:
    found: dict[str, Known] = {}
    results = returned if isinstance(returned, (tuple, list)) else (returned,)
    for name, result in zip(definition.outputs, results, strict=False):
        if result is None:
            continue
        # Strings are returned as an array.
        meta = string if str(result.dtype) == "object" else TypeMeta.Make(result.dtype)
        if meta.name not in NUMBERS:
            return None
        found[name] = ([int(size) for size in result.shape], meta, None)
    return found
