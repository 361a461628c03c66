# SPDX-License-Identifier: Apache-2.0
"""What is asked about gradients, of the real Caffe2 and of the bridge; for Python 3.8, too.

About one operator: ``["Relu", 1, 1, "d", {}, []]``: its type, the numbers of its inputs and
outputs, what the gradients of the outputs are (``d``ense, ``s``parse, ``-`` none), arguments, and
pairs of an input and an output that are one blob.
About a net: a dict of its operators, the `ys` and `skip`.
"""

import itertools
import random

TRIED = [
    (["Add", "Sub", "Mul", "Div"], 2, 1, [{"broadcast": 1}, {"broadcast": 1, "axis": 1}]),
    (["AffineChannel"], 3, 1, [{"is_learnable": 1}, {"is_learnable": 0}]),
    (["AddPadding"], 3, 2, [{"padding_width": 1}]),
    (["BatchMatMul", "MatMul"], 2, 1, [{}, {"trans_a": 1}, {"trans_b": 1}, {"trans_a": 0}]),
    (["BatchMatMul", "MatMul"], 2, 1, [{"trans_a": 1, "trans_b": 1}, {"broadcast": 1}]),
    (["BatchMatMul", "MatMul"], 2, 1, [{"axis_a": 1}, {"axis_b": 2, "zz": 1}]),
    (["Cast"], 1, 1, [{"to": 1}, {"to": "float", "from_type": "int32"}, {"to": 1, "from_type": 2}]),
    (["Concat", "DepthConcat"], 2, 2, [{"axis": 1}, {"add_axis": 1, "axis": 0}]),
    (["Split", "SplitByLengths"], 2, 2, [{"axis": 1}, {"split": [1, 2]}]),
    (["Conv", "ConvTranspose", "LC"], 2, 1, [{"no_bias": 1}, {"kernel": 3, "order": "NHWC"}]),
    (["Conv", "ConvTranspose", "LC"], 3, 1, [{"kernel": 3, "no_bias": 1}]),
    (["DotProductWithPadding"], 2, 1, [{"pad_value": 2.0, "replicate": 1}]),
    (["Dropout"], 1, 1, [{"is_test": 0}, {"is_test": 1}]),
    (["Dropout"], 1, 2, [{}, {"is_test": 0, "ratio": 0.25}, {"is_test": 1}]),
    (["ExpandDims", "Squeeze"], 1, 1, [{"dims": [1]}]),
    (["FC"], 3, 1, [{"axis": 2, "engine": "ENGINE", "name": "named"}]),
    (["Gather", "BatchGather"], 2, 1, [{"axis": 1}, {"dense_gradient": 1}, {"axis": 1, "zz": 1}]),
    (["GatherByKey"], 3, 1, [{"pack_first_input": 1}]),
    (["GRUUnit"], 3, 1, [{"sequence_lengths": 0}, {"sequence_lengths": 1}]),
    (["GRUUnit"], 4, 1, [{"sequence_lengths": 0, "drop_states": 1}]),
    (["LayerNorm"], 1, 3, [{"elementwise_affine": 0}, {"elementwise_affine": 1}]),
    (["LayerNorm"], 3, 3, [{"elementwise_affine": 0}, {"elementwise_affine": 1}]),
    (["LengthsWeightedSum"], 3, 1, [{"grad_on_weights": 1}, {"grad_on_weights": 0}]),
    (["SortedSegmentWeightedSum"], 3, 1, [{"grad_on_weights": 1}, {"grad_on_weights": 0}]),
    (["SparseLengthsWeightedSum"], 4, 1, [{"grad_on_weights": 1}, {"grad_on_weights": 0}]),
    (["LSTMUnit"], 4, 2, [{"sequence_lengths": 0}, {"sequence_lengths": 1}]),
    (["LSTMUnit"], 5, 2, [{"sequence_lengths": 1, "drop_states": 1}]),
    (["Pow"], 1, 1, [{"exponent": 2.0}, {"exponent": 0.5, "zz": 1}]),
    (["Pow"], 2, 1, [{}, {"exponent": 2.0}, {"broadcast": 1}, {"broadcast": 1, "axis": 1}]),
    (["Python"], 2, 2, [{"token": "f:1"}, {"grad_input_indices": [1], "grad_output_indices": [0]}]),
    (["Reshape"], 1, 2, [{"shape": [1, 2]}]),
    (["Scale", "Sqr", "Sqrt"], 1, 1, [{"scale": 4.0}]),
    (["SequenceMask"], 2, 1, [{"mode": "sequence"}, {"grad": 0}]),
    (["SoftmaxWithLoss"], 2, 2, [{"label_prob": 1}]),
    (["SpatialBN"], 5, 1, [{"is_test": 0}, {"is_test": 1}]),
    (["Transpose"], 1, 1, [{"axes": [1, 0]}, {"axes": [2, 0, 1], "zz": 1}]),
    (["WeightedSum"], 4, 1, [{"grad_on_w": 1}, {"grad_on_w": 0}]),
]

IN_PLACE = [
    (["Relu", "Sigmoid", "Exp", "Sqrt", "Cbrt", "Softsign", "Clip"], 1, 1, [[0, 0]]),
    (["Add", "Sum", "Div"], 2, 1, [[0, 0]]),
    (["Add", "Sum", "Div", "Pow"], 2, 1, [[1, 0]]),
    (["CopyRowsToTensor"], 3, 1, [[0, 0]]),
]


def _counts(text):
    if "|" in text:
        return [int(one) for one in text.split("|")]
    first, _, last = text.partition("-")
    last = int(first) + 2 if last == "*" else int(last or first)
    return range(int(first), min(last, int(first) + 8) + 1)


def about_operators(schemas):
    """Ask about each type, with the numbers of inputs and outputs that `schemas` allow."""
    asked = []
    for word in sorted(schemas.split()):
        op_type, inputs, outputs, _ = word.split(":")
        for i in _counts(inputs):
            for o in list(_counts(outputs))[:5]:
                asked.append([op_type, i, o, "d" * o, {}, []])
                if 0 < o < 4 and i < 5:
                    asked.append([op_type, i, o, "s" * o, {}, []])
                    if o > 1:
                        asked += [
                            [op_type, i, o, "".join("d-"[at != one] for at in range(o)), {}, []]
                            for one in range(o)
                        ]
    for types, i, o, tried in TRIED:
        for arguments in tried:
            for op_type in types:
                asked.append([op_type, i, o, "d" * o, arguments, []])
                if o > 1:
                    asked.append([op_type, i, o, "d" + "-" * (o - 1), arguments, []])
                    asked.append([op_type, i, o, "-" + "d" * (o - 1), arguments, []])
    for types, i, o, places in IN_PLACE:
        asked += [[op_type, i, o, "d" * o, {}, places] for op_type in types]
    asked.append(["Pow", 1, 1, "d", {"exponent": 2.0}, [[0, 0]]])
    asked.append(["Pow", 1, 1, "d", {"exponent": 0.0}, [[0, 0]]])
    for is_test in (0, 1):
        asked.append(["SpatialBN", 5, 5, "d----", {"is_test": is_test}, [[3, 1], [4, 2]]])
    return asked


UNARY = ["Relu", "Sigmoid", "Tanh", "Exp", "Negative", "Copy", "Softmax", "Alias", "Cos", "Abs"]
UNARY += ["Sin", "EnsureDense"]
BINARY = ["Add", "Sub", "Div", "DotProduct"]


class Nets:
    """Nets of random operators; most of them write to no blob twice."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self):
        """Make a net."""
        chance = self.random
        again = chance.choice([0.02, 0.02, 0.1])
        blobs = ["a", "b"]
        operators = []

        def used():
            return chance.choice(blobs[-4:] if chance.random() < 0.7 else blobs)

        def made():
            name = chance.choice(blobs) if chance.random() < again else f"v{len(blobs)}"
            if name in blobs:
                blobs.remove(name)
            blobs.append(name)
            return name

        for number in range(chance.randint(1, 9)):
            kind = chance.random()
            node = f"node{chance.randint(0, 1)}" if chance.random() < 0.1 else ""
            if kind < 0.4:
                op = [chance.choice(UNARY), [used()], [made()]]
            elif kind < 0.6:
                op = [chance.choice(BINARY), [used(), used()], [made()]]
            elif kind < 0.72:
                op = ["Sum", [used() for _ in range(chance.randint(1, 3))], [made()]]
            elif kind < 0.78:
                op = ["FC", [used(), used(), used()], [made()]]
            elif kind < 0.82:
                op = ["Gather", [used(), f"ids{number}"], [made()]]
            elif kind < 0.85:
                op = ["SparseLengthsSum", [used(), f"ids{number}", "lengths"], [made()]]
            elif kind < 0.88:
                op = ["Concat", [used(), used()], [made(), f"_dims{number}"]]
            elif kind < 0.91:
                op = ["Split", [used()], [made(), made()]]
            elif kind < 0.93:
                blob = used()
                op = ["StopGradient", [blob], [blob]]
            elif kind < 0.95:
                op = [chance.choice(["ConstantFill", "Floor"]), [used()], [made()]]
            elif kind < 0.97:
                op = [chance.choice(["Print", "ZeroGradient"]), [used()], []]
            else:
                op = ["SoftmaxWithLoss", [used(), used()], [made(), made()]]
            operators.append([*op, node])
        last = blobs[-1]
        ys = chance.choice([[last], [last], [last, chance.choice(blobs)], {last: "given"}])
        if any(last in op[1] for op in operators):  # the real one drops what is given then
            ys = list(ys)
        if isinstance(ys, list):
            ys = sorted(set(ys))
        return {"ops": operators, "ys": ys, "skip": chance.choice([0] * 9 + [1])}


def operator(core, op_type, inputs, outputs, arguments, node=""):
    """Make an operator of names that are as they are, whatever the name scope."""
    option = core.DeviceOption(0, 0, node_name=node) if node else None
    names = [[core.BlobReference(name) for name in some] for some in (inputs, outputs)]
    return core.CreateOperator(op_type, *names, device_option=option, **arguments)


def answer_about_operator(core, op_type, i, o, given, arguments, places):
    """Ask `core`, of either Caffe2; give what is to be compared."""
    inputs = [f"in{at}" for at in range(i)]
    outputs = [f"out{at}" for at in range(o)]
    for at, output in places:
        outputs[output] = inputs[at]
    gradients = {
        "d": lambda at: f"grad{at}",
        "s": lambda at: core.GradientSlice(f"indices{at}", f"values{at}"),
        "-": lambda at: None,
    }
    op = operator(core, op_type, inputs, outputs, arguments, "node")
    made, wanted = core.GradientRegistry.GetGradientForOp(
        op, [gradients[kind](at) for at, kind in enumerate(given)]
    )
    return {"ops": [shown(one) for one in made], "gradients": [named(one) for one in wanted]}


def answer_about_net(core, question):
    """Have `core` add the gradient operators of a net; give what is to be compared."""
    net = core.Net("net")
    net.Proto().op.extend(
        [operator(core, op[0], op[1], op[2], {}, op[3]) for op in question["ops"]]
    )
    found = net.AddGradientOperators(question["ys"], skip=question["skip"])
    made = net.Proto().op[len(question["ops"]) :]
    return {
        "ops": _sums_sorted(made),
        "gradients": {str(name): named(one) for name, one in found.items()},
    }


def _sums_sorted(operators):
    """Show operators; those that add up one behind another are in the order of a set, so sorted."""
    rows = []
    for is_sum, some in itertools.groupby(operators, lambda op: bool(op.device_option.extra_info)):
        row = [shown(op) for op in some]
        rows += sorted(row) if is_sum else row
    return rows


def named(gradient):
    """Show a gradient: a name, a list of two, or None."""
    if gradient is None:
        return None
    return list(map(str, gradient)) if isinstance(gradient, tuple) else str(gradient)


def shown(op):
    """Show an operator: all that its message says but for debug_info."""
    copy = type(op)()
    copy.CopyFrom(op)
    copy.ClearField("debug_info")
    return copy.SerializeToString().hex()
