# SPDX-License-Identifier: Apache-2.0
"""Parts of the old ``onnx`` that ``caffe2.python.onnx`` needs and today's ``onnx`` lacks.

They are its tables of types, ``onnx.utils.polish_model``, and the passes of ``onnx.optimizer`` that
Caffe2's backend needs, which split a model in two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet

# The names that inputs have had as attributes, before or in Caffe2; by their places, from 1 on.
FOLDED: dict[str, tuple[str, ...]] = {
    "Clip": ("min", "max"),
    "Dropout": ("ratio", "training_mode"),
    "Pad": ("pads", "value"),
    "Resize": ("roi", "scales"),
    "Slice": ("starts", "ends", "axes", "steps"),
    "Split": ("split",),
    "Squeeze": ("axes",),
    "TopK": ("k",),
    "Unsqueeze": ("axes",),
    "Upsample": ("scales",),
    **dict.fromkeys(
        ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"), ("axes",)
    ),
}
_SCALARS = ("min", "max", "ratio", "training_mode", "value", "k")
# Operators that are not run once for all: they draw numbers, or run nets.
_IMPURE = {
    *("If", "Loop", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"),
    *("RandomUniformLike", "Scan"),
}
_PASSES = {
    "eliminate_nop_transpose",
    "fuse_consecutive_transposes",
    "fuse_transpose_into_gemm",
    "lift_lexical_references",
    "split_init",
    "split_predict",
}


def attributes_of(node: Any) -> dict[str, Any]:
    """Return the attributes of a node by name, texts as ``str``."""
    from onnx import helper

    found = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    return {k: v.decode() if isinstance(v, bytes) else v for k, v in found.items()}


def polish_model(model: Any) -> Any:
    """Return a checked copy of a model with inferred shapes, and constants as attributes.

    Since opset 10 many attributes of ONNX have become inputs. Those whose values the model gives
    are attributes again, as Caffe2's operators know them.
    """
    from onnx import checker, shape_inference

    checker.check_model(model)
    made = shape_inference.infer_shapes(model)
    opset = next((one.version for one in made.opset_import if not one.domain), 1)
    if opset >= 13:
        _set_softmax_axes(made.graph)
    _fold(made.graph, {})
    return made


def _set_softmax_axes(graph: Any) -> None:
    """Write down the axes of Softmax since opset 13: one axis, by default the last.

    Before it took all axes from one on together, by default from 1 on, as Caffe2's operator does.

    Raises EnforceNotMet: an axis is not the last.
    """
    from onnx import helper

    ranks = {
        one.name: len(one.type.tensor_type.shape.dim)
        for one in [*graph.input, *graph.output, *graph.value_info]
        if one.type.tensor_type.HasField("shape")
    }
    for node in graph.node:
        if node.op_type not in ("Softmax", "LogSoftmax"):
            continue
        axis = attributes_of(node).get("axis", -1)
        if axis not in (-1, ranks.get(node.input[0], 0) - 1):
            raise EnforceNotMet(
                f"{node.op_type} (outputs {list(node.output)}) is of axis {axis}, and Caffe2's of "
                "the last ones only: put a Transpose before and after it, or run the model with "
                "onnxruntime.",
                "onnx.utils.polish_model",
            )
        _keep(node.attribute, [helper.make_attribute("axis", -1)])


def _fold(graph: Any, outer: Mapping[str, Any]) -> None:
    """Turn inputs of a graph's nodes into attributes where their values are known."""
    from onnx import helper, numpy_helper

    constants = {**outer, **{one.name: one for one in graph.initializer}}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _fold(attribute.g, constants)
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            constants[node.output[0]] = node.attribute[0].t
        shape = constants.get("".join(node.input[1:])) if node.op_type == "Reshape" else None
        if shape is not None and 0 not in numpy_helper.to_array(shape):  # 0 would have a meaning
            _keep(node.attribute, [one for one in node.attribute if one.name != "allowzero"])
        names = FOLDED.get(node.op_type, ())
        given = list(node.input[1:])
        if not given or not all(name in constants for name in given if name):
            continue
        if len(given) > len(names):
            continue
        for name, value in zip(names, given, strict=False):
            if value and name != "roi":
                array = numpy_helper.to_array(constants[value])
                one = array.item() if name in _SCALARS else array.ravel().tolist()
                node.attribute.append(helper.make_attribute(name, one, attr_type=_kind(one)))
        del node.input[1:]


def _kind(value: Any) -> int | None:
    """Return the type of an attribute for an empty list, which does not tell; else None."""
    from onnx import AttributeProto

    return AttributeProto.INTS if value == [] else None


def optimize(model: Any, passes: Sequence[str]) -> Any:
    """Return a model after passes of the old ``onnx.optimizer``.

    ``split_init`` keeps the nodes that depend on constants alone, ``split_predict`` the others,
    with the results of the former as inputs. ``lift_lexical_references`` notes the outer values
    that nets within nodes use. The three that fuse transposes change no value, and do nothing.

    Raises EnforceNotMet: another pass.
    """
    unknown = sorted(set(passes) - _PASSES)
    if unknown:
        raise EnforceNotMet(
            f"There are no passes {unknown}. Today's onnx has no optimizer; the passes here are "
            f"{sorted(_PASSES)}. Optimize the model with the package onnxoptimizer before.",
            "onnx.optimizer.optimize",
        )
    made = type(model).FromString(model.SerializeToString())
    if "lift_lexical_references" in passes:
        _lift(made.graph)
    if "split_init" in passes or "split_predict" in passes:
        _split(made.graph, "split_init" in passes)
    return made


def _lift(graph: Any) -> None:
    """Add to nodes the names of outer values that their graphs use, as ``__control_inputs``."""
    from onnx import AttributeProto, helper

    for node in graph.node:
        graphs = [one.g for one in node.attribute if one.HasField("g")]
        if graphs:
            names = sorted({name for inner in graphs for name in _free(inner)})
            made = helper.make_attribute(
                "__control_inputs", names, attr_type=AttributeProto.STRINGS
            )
            node.attribute.append(made)


def _free(graph: Any) -> Iterator[str]:
    """Yield the names that a graph uses and does not define."""
    known = {one.name for one in [*graph.input, *graph.initializer]}
    for node in graph.node:
        used = set(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                used |= set(_free(attribute.g))
        yield from (name for name in used if name and name not in known)
        known |= set(node.output)


def _split(graph: Any, init: bool) -> None:
    """Keep the nodes that depend on constants alone, or the others."""
    from onnx import ValueInfoProto, helper

    constants = {one.name for one in graph.initializer}
    early: list[Any] = []
    late: list[Any] = []
    for node in graph.node:
        inner = {name for one in node.attribute if one.HasField("g") for name in _free(one.g)}
        used = {name for name in node.input if name} | inner
        pure = node.op_type not in _IMPURE and used <= constants
        (early if pure else late).append(node)
        constants |= set(node.output) if pure else set()
    made = {name for node in early for name in node.output}
    wanted = {one.name for one in graph.output}
    for node in late:
        wanted |= set(node.input)
        wanted |= {name for one in node.attribute if one.HasField("g") for name in _free(one.g)}
    crossing = sorted(made & wanted)
    known = {one.name: one for one in [*graph.value_info, *graph.output, *graph.input]}
    infos = [known.get(name, ValueInfoProto(name=name)) for name in crossing]
    weights = {one.name for one in graph.initializer}
    listed = {one.name for one in graph.input}
    graph.input.extend(
        helper.make_tensor_value_info(one.name, one.data_type, one.dims)
        for one in graph.initializer
        if one.name not in listed
    )
    if init:
        _keep(graph.node, early)
        _keep(graph.input, [one for one in graph.input if one.name in weights])
        _keep(graph.output, infos)
    else:
        _keep(graph.node, late)
        graph.input.extend(infos)


def _keep(field: Any, values: Sequence[Any]) -> None:
    """Replace the messages of a repeated field."""
    copies = [type(one).FromString(one.SerializeToString()) for one in values]
    del field[:]
    field.extend(copies)


class _Types(dict[object, object]):
    """A table of types that a function of ``onnx.helper`` fills as it is used."""

    def __init__(self, function: str) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: Any) -> object:
        from onnx import helper

        self[key] = found = getattr(helper, self._function)(key)
        return found


mapping = ModuleType("onnx.mapping", "The tables of types of the old onnx.")
vars(mapping).update(
    NP_TYPE_TO_TENSOR_TYPE=_Types("np_dtype_to_tensor_dtype"),
    TENSOR_TYPE_TO_NP_TYPE=_Types("tensor_dtype_to_np_dtype"),
)
optimizer = ModuleType("onnx.optimizer", optimize.__doc__)
vars(optimizer).update(optimize=optimize)
