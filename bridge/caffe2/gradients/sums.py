# SPDX-License-Identifier: Apache-2.0
"""Sums of the contributions of several operators to the gradient of a blob."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.device_option import device_option_equal
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.create_operator import CreateOperator
from bridge.caffe2.gradients.gradient_slice import GradientSlice

_CALLER = "GradientRegistry.GetBackwardPass"
# Tags in the extra_info of a device option, followed by ":1". SUM_TAG marks the operators added
# here. ONLY_SUM_TAG, on an operator, keeps the rest of its device option from these.
SUM_TAG = "is_auto_gen_sum_ops"
ONLY_SUM_TAG = "only_keep_is_auto_gen_sum_ops_tag"


class Part:
    """A blob of a contribution: its `name`, and the operators that write it one after another.

    `places` are these operators, with the positions of the output. It is empty if the blob is the
    gradient of an output, passed on, or `is_given` by the caller of GetBackwardPass. `readers` are
    the operators that read the blob in between, with the positions of the input.
    """

    __slots__ = ("is_given", "name", "places", "readers")

    def __init__(
        self,
        name: str,
        places: Sequence[tuple[Any, int]] = (),
        readers: Sequence[tuple[Any, int]] = (),
        is_given: bool = False,
    ) -> None:
        self.name = name
        self.places = places
        self.readers = readers
        self.is_given = is_given

    def rename(self, name: str) -> None:
        """Rename the blob in the operators that write and read it."""
        for op, position in self.places:
            if op.type == "If":
                _rename_in_nets(op, op.output[position], name)
            op.output[position] = name
        for op, position in self.readers:
            op.input[position] = name
        self.name = name


def _rename_in_nets(op: Any, old: str, name: str) -> None:
    """Rename a blob that the nets of an operator write."""
    for argument in op.arg:
        for inner in argument.n.op if argument.HasField("n") else ():
            for i, output in enumerate(inner.output):
                if output == old:
                    inner.output[i] = name


class Contribution:
    """The contribution of one operator to a gradient: one blob, or two, indices and values.

    `device_option` is the operator's; None if the caller of GetBackwardPass gave the blobs.
    """

    __slots__ = ("device_option", "parts")

    def __init__(self, parts: tuple[Part, ...], device_option: Any) -> None:
        self.parts = parts
        self.device_option = device_option


def sum_of(blob: str, contributions: list[Contribution]) -> tuple[list[Any], Any]:
    """Return the operators that sum two or more contributions, and the gradient.

    Dense contributions are added by Sum, sparse ones concatenated by Concat. Contributions other
    than the first are renamed, in the operators that write them, to have different names.

    Raises EnforceNotMet: dense and sparse contributions are mixed, or on different devices.
    """
    if len({len(one.parts) for one in contributions}) > 1:
        raise _error(
            blob,
            "Automatic aggregation of a mix of sparse and dense gradients is not supported yet; "
            "add EnsureDense before the operator with the sparse gradient.",
        )
    options = [one.device_option for one in contributions if one.device_option is not None]
    first, *others = options
    if not all(device_option_equal(first, other) for other in others):
        raise _error(blob, "Unexpected behavior: not all grad ops have the same device option.")
    operators, gradient = (
        _dense_sum(blob, contributions)
        if len(contributions[0].parts) == 1
        else _sparse_sum(blob, contributions)
    )
    only_tag = any(f"{ONLY_SUM_TAG}:1" in option.extra_info for option in options)
    for op in operators:
        if not only_tag:
            op.device_option.CopyFrom(first)
        op.device_option.extra_info.append(f"{SUM_TAG}:1")
    return operators, gradient


def _error(blob: str, why: str) -> EnforceNotMet:
    return EnforceNotMet(f"Gradients for param ''{blob}'' failed to verify: {why}", _CALLER)


def _dense_sum(blob: str, contributions: list[Contribution]) -> tuple[list[Any], str]:
    parts = [one.parts[0] for one in contributions]
    output = next((part.name for part in parts if part.places), f"{blob}_grad")
    names = list(_distinct_names(parts, output, keeps_first=True))
    if output in names:  # Sum works in place of its first input only.
        at = names.index(output)
        names[0], names[at] = names[at], names[0]
    inputs = [BlobReference(name) for name in names]
    return [CreateOperator("Sum", inputs, [BlobReference(output)])], output


def _sparse_sum(blob: str, contributions: list[Contribution]) -> tuple[list[Any], GradientSlice]:
    operators = []
    outputs = []
    base = _sparse_base(blob, contributions)
    for at, suffix in enumerate(("_indices", "_values")):
        parts = [one.parts[at] for one in contributions]
        inputs = [BlobReference(name) for name in _distinct_names(parts, base, keeps_first=False)]
        output = base + suffix + "_concat"
        split = [BlobReference(output), BlobReference(output + "_split")]
        operators.append(CreateOperator("Concat", inputs, split, axis=0))
        outputs.append(output)
    return operators, GradientSlice(*outputs)


def _sparse_base(blob: str, contributions: list[Contribution]) -> str:
    for one in contributions:
        for part, suffix in zip(one.parts, ("_indices", "_values"), strict=True):
            if part.places:
                return part.name.removesuffix(suffix)
    return f"{blob}_grad"


def _distinct_names(parts: list[Part], output: str, keeps_first: bool) -> Iterator[str]:
    """Rename the parts that operators write, so that no two have one name; yield the names.

    keeps_first: whether the first of them keeps its name.
    """
    number = 0
    first_found = not keeps_first or any(part.is_given and part.name == output for part in parts)
    for part in parts:
        if not part.places:
            if part.name == output and not part.is_given:
                raise EnforceNotMet(
                    "The gradient output of empty gradient op can not be the same as the normal "
                    f"name of the current input gradient, {output!r}.",
                    _CALLER,
                )
        elif not first_found:
            first_found = True
        else:
            part.rename(f"_{part.name}_autosplit_{number}")
            number += 1
        yield part.name
