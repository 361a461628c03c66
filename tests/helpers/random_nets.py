# SPDX-License-Identifier: Apache-2.0
"""Random nets: graphs with branches, operators in place, and blobs that are written again.

A blob may be overwritten by a value of other sizes and another type while others still have to
read the former one, so that whoever reorders operators, keeps values or shares memory is found out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bridge.caffe2 import core

ROWS, COLUMNS = 4, 6
Sizes = tuple[int, ...]


class Kind(NamedTuple):
    """The type and sizes of a blob."""

    dtype: str
    sizes: Sizes


MATRIX = Kind("float32", (ROWS, COLUMNS))


class Template(NamedTuple):
    """An operator: what its inputs are, and what its outputs are then.

    inputs: kinds, or None for the kind of input 0, which is any float one. in_place: whether
    output 0 may be input 0.
    """

    op: str
    inputs: list[Kind | None]
    outputs: Callable[[Kind], list[Kind]]
    arguments: Mapping[str, Any] = MappingProxyType({})
    in_place: bool = False


def same(kind: Kind) -> list[Kind]:
    return [kind]


def of(*kinds: Kind) -> Callable[[Kind], list[Kind]]:
    return lambda _: list(kinds)


HALF = Kind("float32", (ROWS, COLUMNS // 2))
TURNED = Kind("float32", (COLUMNS, ROWS))
SQUARE = Kind("float32", (ROWS, ROWS))
ROW = Kind("float32", (COLUMNS,))
INDICES = Kind("int32", (3,))
PICKED = Kind("float32", (3, COLUMNS))
TRUTH = Kind("bool", (ROWS, COLUMNS))
TALL = Kind("float32", (2 * ROWS, COLUMNS))
COUNTS = Kind("int64", (2,))
INTEGERS = Kind("int32", (ROWS, COLUMNS))

TEMPLATES = [
    Template("Relu", [None], same, in_place=True),
    Template("Tanh", [None], same, in_place=True),
    Template("Sigmoid", [None], same, in_place=True),
    Template("Scale", [None], same, {"scale": 0.5}, True),
    Template("Clip", [None], same, {"min": -1.0, "max": 1.0}, True),
    Template("Softmax", [MATRIX], of(MATRIX)),
    Template("Copy", [None], same),
    Template("StopGradient", [None], same, in_place=True),
    Template("Negative", [None], same, in_place=True),
    Template("Add", [None, None], same, in_place=True),
    Template("Sub", [None, None], same, in_place=True),
    Template("Mul", [None, None], same, in_place=True),
    Template("Sum", [None, None, None], same, in_place=True),
    Template("Max", [None, None], same),
    Template("Add", [MATRIX, ROW], of(MATRIX), {"broadcast": 1}, True),
    Template("Transpose", [MATRIX], of(TURNED)),
    Template("Transpose", [TURNED], of(MATRIX)),
    Template("MatMul", [MATRIX, MATRIX], of(SQUARE), {"trans_b": 1}),
    Template("MatMul", [SQUARE, MATRIX], of(MATRIX)),
    Template("FC", [MATRIX, Kind("float32", (COLUMNS, COLUMNS)), ROW], of(MATRIX)),
    Template("Split", [MATRIX], of(HALF, HALF), {"axis": 1}),
    Template("Concat", [HALF, HALF], of(MATRIX, COUNTS), {"axis": 1}),
    Template("Concat", [MATRIX, MATRIX], of(TALL, COUNTS), {"axis": 0}),
    Template("Slice", [TALL], of(MATRIX), {"starts": [2, 0], "ends": [2 + ROWS, -1]}),
    Template("Gather", [MATRIX, INDICES], of(PICKED)),
    Template("ReduceFrontSum", [PICKED], of(ROW)),
    Template("ReduceFrontMean", [MATRIX], of(ROW)),
    Template("Reshape", [MATRIX], of(TURNED, COUNTS), {"shape": [COLUMNS, ROWS]}),
    Template("Reshape", [TURNED], of(MATRIX, COUNTS), {"shape": [-1, COLUMNS]}, True),
    Template("LT", [MATRIX, MATRIX], of(TRUTH)),
    Template("Not", [TRUTH], of(TRUTH)),
    Template("And", [TRUTH, TRUTH], of(TRUTH)),
    Template("Where", [TRUTH, MATRIX, MATRIX], of(MATRIX)),
    Template("Cast", [TRUTH], of(INTEGERS), {"to": 2}),
    Template("Cast", [INTEGERS], of(MATRIX), {"to": 1}),
    Template("Add", [INTEGERS, INTEGERS], of(INTEGERS), in_place=True),
    Template("ConstantFill", [MATRIX], of(MATRIX), {"value": 0.25}),
    Template("Shape", [MATRIX], of(COUNTS)),
    Template("LengthsSum", [TALL, Kind("int32", (ROWS,))], of(MATRIX)),
    Template("Dropout", [MATRIX], of(MATRIX), {"is_test": 1}, True),
]


class RandomNet(NamedTuple):
    """A net, the arrays to feed, and the kinds of all blobs after it has run."""

    net: Any
    feeds: dict[str, Any]
    blobs: dict[str, Kind]

    def proto(self, name: str, kind: str = "simple", outputs: list[str] | None = None) -> Any:
        """Return a NetDef of this name and type; by default all blobs are its outputs."""
        from bridge.caffe2.proto import caffe2_pb2

        message = caffe2_pb2.NetDef()
        message.CopyFrom(self.net.Proto())
        message.name, message.type, message.num_workers = name, kind, 4
        del message.external_input[:]
        message.external_input.extend(self.feeds)
        message.external_output.extend(self.blobs if outputs is None else outputs)
        return message


def random_net(seed: int, length: int = 24, *, overwrites: bool = True) -> RandomNet:
    """Return the net of a seed.

    overwrites: whether blobs are written again, besides in place. Then few nets have gradients.
    """
    random = np.random.RandomState(seed)
    feeds: dict[str, Any] = {
        "x": random.uniform(-1, 1, MATRIX.sizes).astype(np.float32),
        "z": random.uniform(-1, 1, MATRIX.sizes).astype(np.float32),
        "w": random.uniform(-0.5, 0.5, (COLUMNS, COLUMNS)).astype(np.float32),
        "b": random.uniform(-1, 1, ROW.sizes).astype(np.float32),
        "indices": random.randint(0, ROWS, 3).astype(np.int32),
        "lengths": np.full(ROWS, 2, np.int32),
    }
    blobs = {name: Kind(str(value.dtype), value.shape) for name, value in feeds.items()}
    net = core.Net(f"random {seed}")
    for i in range(length):
        _add(net, blobs, random, i, overwrites)
    return RandomNet(net, feeds, blobs)


def _add(net: Any, blobs: dict[str, Kind], random: Any, i: int, overwrites: bool) -> None:
    """Add an operator whose inputs there are."""
    while True:
        template = TEMPLATES[random.randint(len(TEMPLATES))]
        inputs = _inputs(template, blobs, random)
        if inputs is not None:
            break
    outputs: list[str] = []
    kinds = template.outputs(blobs[inputs[0]])
    for o in range(len(kinds)):
        free = [name for name in blobs if name not in inputs and name not in outputs]
        how = random.rand()
        if template.in_place and o == 0 and how < 0.4 and inputs.count(inputs[0]) == 1:
            outputs.append(inputs[0])
        elif how < 0.65 and free and overwrites:
            outputs.append(free[random.randint(len(free))])
        else:
            outputs.append(f"y{i}_{o}")
    getattr(net, template.op)(inputs, outputs, **template.arguments)
    blobs.update(zip(outputs, kinds, strict=True))


def _inputs(template: Template, blobs: dict[str, Kind], random: Any) -> list[str] | None:
    found: list[str] = []
    for wanted in template.inputs:
        kind = wanted or (blobs[found[0]] if found else None)
        names = [
            name
            for name, one in blobs.items()
            if one == kind or (kind is None and one.dtype == "float32")
        ]
        if not names:
            return None
        # Later ones more often: else half of a net leads nowhere.
        found.append(names[max(random.randint(len(names)), random.randint(len(names)))])
    return found
