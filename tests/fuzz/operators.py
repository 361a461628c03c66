# SPDX-License-Identifier: Apache-2.0
"""Doors of nets: definitions of any kind are created, and operators run that were sound once."""

from __future__ import annotations

import contextlib
import functools
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bridge
from bridge import caffe2
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.blobs.message import BlobMessage
from bridge.caffe2.blobs.read_tensor import TENSOR_TYPES
from tests.conformance.operators.case import Case, cases, groups
from tests.fuzz.memory import little_memory
from tests.fuzz.words import MEMORY, Words

# Those that run what they are given for as long as it says. Queues, too, which wait for others.
_LEFT_OUT = ("nets",)
_INTS = (0, 1, 2, 3, -1, -2, 7, 64, 2**31 - 1, -(2**31), 2**31, 2**40, 2**63 - 1, -(2**63))
_FLOATS = (0.0, 1.0, -1.0, 0.5, 1e30, -1e30, float("inf"), float("-inf"), float("nan"), 1e-40)
_STRINGS = ("", "NCHW", "NHWC", "mean", "linear", "x", "float", "é", "int64")
_TYPES = (
    *(
        "float32",
        "float64",
        "float16",
        "int32",
        "int64",
        "int8",
        "uint8",
        "bool",
        "int16",
        "uint16",
    ),
    "object",
)
_MEMORY_MORE = 1 << 30  # bytes that sizes may ask for


@little_memory()
def net(data: bytes) -> None:
    """Create a net's operators; nothing is run."""
    workspace.ResetWorkspace()
    for name in ("x", "w", "b"):
        workspace.FeedBlob(name, MEMORY[:3])
    workspace.CreateNet(data, overwrite=True)


@functools.cache
def _cases() -> list[Case]:
    found = [one for group in groups() if group not in _LEFT_OUT for one in cases(group)]
    return [one for one in found if not any("Queue" in step[0] for step in one.steps)]


@functools.cache
def _argument_names() -> list[str]:
    return sorted({name for one in _cases() for step in one.steps for name in step[3]})


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Limit the memory of the process to somewhat more than it has, as torch has no allocator."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + _MEMORY_MORE
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def operators(data: bytes) -> bool:
    """Run the operators of a recorded case of which a few parts are changed.

    What fails raises EnforceNotMet and changes no blob; what succeeds changes its outputs only;
    operators one by one, and a net of them, give the same. A module of the net computes or raises
    EnforceNotMet, for inputs of any types and strides.
    """
    words = Words(data)
    one = _cases()[(words.byte() << 8 | words.byte()) % len(_cases())]
    feeds, steps = (
        dict(one.feeds),
        [[op, [*ins], [*outs], {**args}] for op, ins, outs, args in one.steps],
    )
    for _ in range(words.byte() % 4):
        words.choice(_CHANGES)(words, feeds, words.choice(steps))
    with _limited():
        first = _run_each(feeds, steps)
        as_net = _run_as_net(feeds, steps)
        assert as_net == first, (steps, first, as_net)
        if words.byte() % 4 == 0:  # it takes as long as all the rest
            _run_as_module(feeds, steps, words)
    workspace.ResetWorkspace()
    return isinstance(first, dict)


def _feed(feeds: dict[str, Any]) -> None:
    import torch  # which other doors do without

    torch.manual_seed(0)
    workspace.ResetWorkspace()
    for name, value in feeds.items():
        workspace.FeedBlob(name, value)


def _definition(step: list[Any]) -> Any:
    return core.CreateOperator(step[0], step[1], step[2], **step[3])


def _blobs(names: Any) -> dict[str, bytes | None]:
    """Return the tensors that blobs hold, as messages; None for others, whose state may change."""
    found: dict[str, bytes | None] = {}
    for name in names:
        found[name] = None
        with contextlib.suppress(EnforceNotMet):
            message = workspace.SerializeBlob(name)
            if BlobMessage(message).type in TENSOR_TYPES:
                found[name] = message
    return found


def _run_each(feeds: dict[str, Any], steps: list[list[Any]]) -> dict[str, bytes | None] | str:
    """Return the blobs afterwards; the place of the operator that failed."""
    _feed(feeds)
    for index, step in enumerate(steps):
        before = _blobs(workspace.Blobs())
        try:
            workspace.RunOperatorOnce(_definition(step))
        except EnforceNotMet:
            after = _blobs(before)
            assert after == before, ("what fails changes nothing", step, _changed(before, after))
            return str(index)
        after = _blobs(before)
        changed = {
            name
            for name in _changed(before, after) - {*step[2]}
            if not _shares_memory(name, step[2])
        }
        assert not changed, ("inputs are not written", step, changed)
    return _blobs(workspace.Blobs())


def _shares_memory(name: str, others: list[str]) -> bool:
    """Return whether the tensor of a blob has memory of one of the others, as of an Alias."""
    tensor = workspace.FetchTorch(name)
    return any(bridge.shares_memory(tensor, workspace.FetchTorch(other)) for other in others)


def _changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name, value in before.items() if after[name] != value}


def _run_as_net(feeds: dict[str, Any], steps: list[list[Any]]) -> dict[str, bytes | None] | str:
    _feed(feeds)
    made = core.Net("fuzzed")
    try:
        made.Proto().op.extend([_definition(step) for step in steps])
        workspace.RunNetOnce(made)
    except EnforceNotMet:
        return "0" if len(steps) == 1 else _place_of_failure(feeds, steps)
    return _blobs(workspace.Blobs())


def _place_of_failure(feeds: dict[str, Any], steps: list[list[Any]]) -> Any:
    """Return what the operators one by one give, where that is a failure."""
    found = _run_each(feeds, steps)
    return found if isinstance(found, str) else "none"


def _run_as_module(feeds: dict[str, Any], steps: list[list[Any]], words: Words) -> None:
    """Call a module of the operators on tensors, some of other types and strides."""
    _feed(feeds)
    made = core.Net("fuzzed")
    try:
        made.Proto().op.extend([_definition(step) for step in steps])
        read = {name for step in steps for name in step[1]}
        given = {name: feeds[name] for name in feeds if name in read and _is_numbers(feeds[name])}
        module = caffe2.to_module(made, inputs=list(given))
        for _ in range(1 + words.byte() % 3):
            module(**{name: _tensor(value, words) for name, value in given.items()})
    except EnforceNotMet:
        return


def _tensor(value: Any, words: Words) -> Any:
    """Return a torch tensor of these values, or of those of another type; of some strides."""
    import torch

    tensor = torch.from_numpy(np.array(value))
    kind, types = words.byte(), (torch.float32, torch.float64, torch.int32, torch.int64)
    if kind % 8 == 7:
        tensor = tensor.to((*types, torch.float16, torch.uint8, torch.bool)[kind // 8 % 7])
    if kind % 4 == 1:
        order = list(reversed(range(tensor.dim())))
        room = torch.empty([tensor.shape[i] for i in order], dtype=tensor.dtype)
        tensor = room.permute(order).copy_(tensor)
    elif kind % 4 == 2 and tensor.dim() and tensor.shape[0]:
        tensor = tensor[:1].expand(tensor.shape)
    if kind >= 192 and tensor.is_floating_point():
        tensor.requires_grad_()
    return tensor


# Changes of a case.


def _value(words: Words) -> Any:
    kind = words.byte() % 8
    if kind == 0:
        return words.choice(_FLOATS)
    if kind == 1:
        return words.choice(_STRINGS)
    if kind == 2:
        return [words.choice(_INTS) for _ in range(words.byte() % 4)]
    if kind == 3:
        return [words.choice(_FLOATS) for _ in range(words.byte() % 4)]
    if kind == 4:
        return [words.choice(_STRINGS) for _ in range(words.byte() % 3)]
    return words.choice(_INTS)


def _change_argument(words: Words, _: Any, step: list[Any]) -> None:
    if step[3]:
        step[3][words.choice(sorted(step[3]))] = _value(words)


def _add_argument(words: Words, _: Any, step: list[Any]) -> None:
    step[3][_argument_names()[(words.byte() << 8 | words.byte()) % len(_argument_names())]] = (
        _value(words)
    )


def _drop_argument(words: Words, _: Any, step: list[Any]) -> None:
    if step[3]:
        del step[3][words.choice(sorted(step[3]))]


def _change_inputs(words: Words, feeds: dict[str, Any], step: list[Any]) -> None:
    inputs = step[1]
    kind = words.byte() % 3
    if inputs and kind == 0:
        del inputs[words.byte() % len(inputs)]
    elif inputs and kind == 1:
        inputs[words.byte() % len(inputs)] = words.choice([*feeds, "missing"])
    else:
        inputs.append(words.choice([*feeds, "missing"]))


def _change_outputs(words: Words, feeds: dict[str, Any], step: list[Any]) -> None:
    outputs = step[2]
    kind = words.byte() % 4
    if outputs and kind == 0:
        del outputs[words.byte() % len(outputs)]
    elif outputs and kind < 3:
        outputs[words.byte() % len(outputs)] = words.choice([*feeds, "another"])
    else:
        outputs.append(words.choice(["another", "more", *feeds]))


def _change_feed(words: Words, feeds: dict[str, Any], _: Any) -> None:
    if not feeds:
        return
    name = words.choice(sorted(feeds))
    kind = words.choice(_TYPES)
    shape = [words.choice((0, 1, 2, 3, 5)) for _ in range(words.byte() % 5)]
    feeds[name] = _strings(shape) if kind == "object" else _ramp(shape).astype(kind)


def _change_type(words: Words, feeds: dict[str, Any], _: Any) -> None:
    """Another type for the same values; for nothing but numbers."""
    arrays = [name for name, value in feeds.items() if _is_numbers(value)]
    if arrays:
        name = words.choice(arrays)
        with np.errstate(all="ignore"):
            feeds[name] = feeds[name].astype(words.choice(_TYPES[:-1]))


def _change_shape(words: Words, feeds: dict[str, Any], _: Any) -> None:
    arrays = [name for name, value in feeds.items() if _is_numbers(value)]
    if not arrays:
        return
    name = words.choice(arrays)
    value = feeds[name]
    kind = words.byte() % 5
    if kind == 0:
        feeds[name] = value.reshape(-1)
    elif kind == 1:
        feeds[name] = value[np.newaxis]
    elif kind == 2 and value.ndim:
        feeds[name] = value[..., :-1]
    elif kind == 3 and value.ndim:
        feeds[name] = value[: words.byte() % 2]
    elif value.ndim:
        feeds[name] = np.concatenate([value, value])


def _change_element(words: Words, feeds: dict[str, Any], _: Any) -> None:
    arrays = [name for name, value in feeds.items() if _is_numbers(value) and value.size]
    if not arrays:
        return
    name = words.choice(arrays)
    value = np.array(feeds[name])
    number: Any = words.choice(_FLOATS if value.dtype.kind in "fc" else _INTS)
    with np.errstate(all="ignore"):
        value.reshape(-1)[words.byte() % value.size] = np.array(number).astype(value.dtype)
    feeds[name] = value


def _is_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def _ramp(shape: list[int]) -> Any:
    return np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)


def _strings(shape: list[int]) -> Any:
    found = np.empty(shape, object)
    found.reshape(-1)[:] = b"ab"
    return found


_CHANGES = (
    *(_change_argument, _change_argument, _add_argument, _drop_argument, _change_inputs),
    *(_change_outputs, _change_feed, _change_type, _change_shape, _change_element, _change_element),
)


def net_seeds() -> list[bytes]:
    first, second = core.Net("first"), core.Net("second")
    first.Relu("x", "y")
    first.FC(["y", "w", "b"], "z")
    second.ConstantFill([], "f", shape=[2, 3], value=1.0)
    second.Concat(["f", "f"], ["c", "d"], axis=0)
    return [one.Proto().SerializeToString() for one in (first, second)]
