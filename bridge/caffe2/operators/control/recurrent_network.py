# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks: a net that is run once for each time step.

Follows caffe2/operators/rnn/recurrent_network_op.h and .cc, PyTorch 1.8.1. The steps run one after
the other, also with `enable_rnn_executor`, which changes no results.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.execution.blob_table import BlobTable, find_blob, find_or_create
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.operators.control.step_net import (
    ScratchWorkspaces,
    StepNet,
    is_part,
    links_of,
    net_of,
    place_of,
    room,
)

Rows = Tensor | tuple[Tensor, ...]


def _recurrent_network_gradient(maker: GradientMaker) -> None:
    given = maker.ints("outputs_with_grads")
    maker.enforce(bool(given), "needs argument 'outputs_with_grads'")
    inputs = [*map(maker.GO, given), *maker.op.input, *maker.op.output]
    wanted = [0, *maker.ints("param"), *maker.ints("initial_recurrent_state_ids")]
    maker.add("RecurrentNetworkGradient", inputs, [maker.GI(i) for i in wanted])


@register_operator(
    "RecurrentNetwork",
    ("cpu", "cuda"),
    inputs="1-*",
    outputs="2-*",
    gradient=_recurrent_network_gradient,
)
class RecurrentNetwork(TorchOperator):
    """Run `step_net` for each time step of input 0, which is (T, N, ...).

    The blobs `recurrent_states` are (steps + T, N, D): first the initial states, which are the
    inputs `initial_recurrent_state_ids`, each (D), (N, D) or (steps, N, D), then what the steps
    write. Links `link_internal`, `link_external`, `link_offset`, `link_window` (1) make blobs of
    the step parts of sequences. The outputs `alias_dst` are the states `alias_src` from row
    `alias_offset`, counted from the end if negative, and share their memory. The last output holds
    the workspaces of the steps: one for each with `backward_step_net`, otherwise `num_workspaces`
    (2), used in turn. The blob `timestep` is the number of the step.

    Raises EnforceNotMet: sizes do not fit, or an operator of a step failed; steps before it have
    had their effect.
    """

    _has_effects = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        states = self.GetRepeatedArgument("recurrent_states")
        initial = self.GetRepeatedArgument("initial_recurrent_state_ids")
        require(
            len(states) == len(initial),
            f"There are {len(states)} recurrent_states, and {len(initial)} "
            "initial_recurrent_state_ids.",
        )
        self._states = list(zip(states, initial, strict=True))
        for state in states:
            find_or_create(self._workspace, state)
        self._aliases = self._read_aliases()
        self._time_step = self.GetSingleArgument("timestep", "timestep")
        net = net_of(self, "step_net", needed=True)
        self._net = StepNet(net, links_of(self), self._time_step, "RecurrentNetwork")
        self._backward = net_of(self, "backward_step_net") is not None

    def _read_aliases(self) -> list[tuple[str, str, int]]:
        src, dst = self.GetRepeatedArgument("alias_src"), self.GetRepeatedArgument("alias_dst")
        offsets = self.GetRepeatedArgument("alias_offset")
        require(
            len(src) == len(dst) == len(offsets),
            f"alias_src, alias_dst and alias_offset have {len(src)}, {len(dst)} and "
            f"{len(offsets)} values.",
        )
        return list(zip(src, dst, offsets, strict=True))

    def RunOnDevice(self) -> None:
        sequence = self.x(0)
        require(sequence.dim() >= 2, f"Input 0 is (T, N, ...), not {list(sequence.shape)}.")
        steps, n = sequence.shape[:2]
        for state, initial in self._states:
            self._start_state(state, initial, steps, n)
        scratch = self._scratch()
        count = steps if self._backward else self.GetSingleArgument("num_workspaces", 2)
        require(count > 0 or not steps, f"num_workspaces must be at least 1, not {count}.")
        shared = scratch.prepare(self._workspace, count)
        for name in self.GetRepeatedArgument("recompute_blobs_on_backward"):
            find_or_create(shared, name)
        for t in range(steps):
            self._net.run(scratch.steps[t % count], t)
        _count_runs(self, self._net)
        for src, dst, offset in self._aliases:
            self._alias(src, dst, offset)

    def _scratch(self) -> ScratchWorkspaces:
        blob = self.OutputBlob(self.OutputSize() - 1)
        if not blob.IsType(ScratchWorkspaces):
            blob.Reset(ScratchWorkspaces())
        return blob.Get(ScratchWorkspaces)

    def _start_state(self, name: str, i: int, steps: int, n: int) -> None:
        """Resize a state, and set its first rows."""
        initial = self.x(i)
        require(
            initial.dim() >= 1 and (initial.dim() == 1 or initial.shape[-2] == n),
            f"The initial state {self._definition.inputs[i]!r} is (D), (N, D) or (steps, N, D) "
            f"with N = {n}, not {list(initial.shape)}.",
        )
        first = initial.shape[0] if initial.dim() == 3 else 1
        state = room(
            find_or_create(self._workspace, name), [steps + first, n, initial.shape[-1]], initial
        )
        state[:first].copy_(initial)

    def _alias(self, src: str, dst: str, offset: int) -> None:
        states = operand(find_or_create(self._workspace, src).Get(c10.tensor))
        start = offset if offset >= 0 else states.shape[0] + offset
        require(
            0 <= start <= states.shape[0],
            f"The alias {dst!r} starts at row {start} of {src!r}, which has {states.shape[0]}.",
        )
        part = states[start:]
        blob = find_or_create(self._workspace, dst)
        if not is_part(blob._tensor, place_of(part)):
            blob.feed(part)


def _count_runs(operator: TorchOperator, net: StepNet) -> None:
    """Let observers count the operators of the steps, as Caffe2 does if its executor runs them."""
    if operator.GetSingleArgument("enable_rnn_executor", False):
        operator._inner_runs = net.runs


@procedure(
    "RecurrentNetworkBlobFetcher",
    ("cpu", "cuda"),
    inputs="1",
    outputs="1",
    gradient="undefined",
    effects=True,
)
def recurrent_network_blob_fetcher(op: TorchOperator) -> None:
    """Copy the blobs of all steps into the workspace, as ``<prefix>_<name><step>``.

    Input: the last output of RecurrentNetwork. Output: the names. `prefix` is "rnn".
    Follows RecurrentNetworkBlobFetcherOp, PyTorch 1.8.1.
    """
    scratch = op.Input(0, ScratchWorkspaces)
    prefix = op.GetSingleArgument("prefix", "rnn")
    names = []
    for step, table in enumerate(scratch.steps):
        for name in sorted(table._blobs):
            copy = f"{prefix}_{name}{step}"
            found = table._blobs[name].Get(c10.tensor)
            find_or_create(op._workspace, copy).feed(operand(found).clone())
            names.append(copy.encode())
    op.put_strings(0, [len(names)], names)


@procedure(
    "rnn_internal_apply_link",
    ("cpu", "cuda"),
    inputs="2",
    outputs="2",
    inplace="1>1!",
    effects=True,
)
def apply_link(op: TorchOperator) -> None:
    """(timestep, external) -> internal, external: make internal a part of external.

    It is `window` (1) rows from ``timestep + offset``, and shares their memory.
    """
    t, whole = op.integers(0, (c10.int32,))[0], op.x(1)
    start = t + op.GetSingleArgument("offset", -1)
    window = op.GetSingleArgument("window", 1)
    fits = whole.dim() > 0 and 0 <= start <= whole.shape[0] - window
    require(fits, f"The link needs {window} rows from {start} of sizes {list(whole.shape)}.")
    op.OutputBlob(0).feed(whole.narrow(0, start, window))


@procedure(
    "rnn_internal_accumulate_gradient_input",
    ("cpu", "cuda"),
    inputs="3",
    outputs="1-*",
    inplace="2>0!",
    effects=True,
    writes_last=False,
)
def accumulate_gradient_input(op: TorchOperator) -> None:
    """(timestep, outer gradient, gradient) -> gradient: add row `timestep` of the outer gradient.

    It is added to the row ``timestep + offset``, in place.
    """
    t = op.integers(0, (c10.int32,))[0]
    add_row(op.x(2), op.x(1), t, op.GetSingleArgument("offset", -1))


def add_row(gradient: Rows, outer: Rows, t: int, offset: int) -> None:
    """Add row `t` of `outer` to row ``t + offset`` of `gradient`; both are rows, or their tensor.

    Raises EnforceNotMet: there is no such row.
    """
    if not (0 <= t + offset < len(gradient) and 0 <= t < len(outer)):
        raise EnforceNotMet(
            f"Row {t} of {len(outer)} rows cannot be added to row {t + offset} of {len(gradient)}."
        )
    row = gradient[t + offset]
    torch.add(row, outer[t].view(row.shape), out=row)


@register_operator("RecurrentNetworkGradient", ("cpu", "cuda"), inputs="0-*", outputs="0-*")
class RecurrentNetworkGradient(TorchOperator):
    """The gradients of RecurrentNetwork: `backward_step_net`, from the last step to the first.

    Inputs: the gradients of the outputs `outputs_with_grads`, the inputs and the outputs of
    RecurrentNetwork. Outputs: the gradients of input 0, of the inputs `param`, and of the initial
    states. Raises EnforceNotMet: as RecurrentNetwork.
    """

    _has_effects = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        own = self._definition.message()
        inputs, outputs = own.input, own.output
        self._given = self.GetRepeatedArgument("outputs_with_grads")
        self._initial = self.GetRepeatedArgument("initial_recurrent_state_ids")
        self._time_step = self.GetSingleArgument("timestep", "timestep")
        net = net_of(self, "backward_step_net", needed=True)
        links = [*links_of(self), *links_of(self, "backward_", windows=False)]
        links = [
            one._replace(internal=self._renamed(one.internal), external=self._renamed(one.external))
            for one in links
        ]
        self._params: list[tuple[str, str]] = []
        params = self.GetRepeatedArgument("param")
        names = self.GetRepeatedArgument("param_grads")
        fits = len(names) in (0, len(params))
        require(fits, f"There are {len(params)} values of param, and {len(names)} param_grads.")
        for i, place in enumerate(params):
            gradient = outputs[1 + i]
            self._params.append((inputs[place + len(self._given)], gradient))
            in_step = self._renamed(names[i]) if names else gradient
            _rename(net, in_step, f"{in_step}_tmpstep")
            total = net.op.add(type="Sum", name="")
            total.input.extend([gradient, f"{in_step}_tmpstep"])
            total.output.append(gradient)
            if own.HasField("device_option"):
                total.device_option.CopyFrom(own.device_option)
        self._states = [self._state(name) for name in self.GetRepeatedArgument("recurrent_states")]
        for _, gradient, _, _ in self._states:
            find_or_create(self._workspace, gradient)
        self._net = StepNet(net, links, self._time_step, "RecurrentNetworkGradient")

    def _renamed(self, name: str) -> str:
        """Return another name for a blob, which memory optimization chose."""
        return self.GetSingleArgument(f"{name}.rename", name)

    def _state(self, name: str) -> tuple[str, str, str | None, str | None]:
        """Return the names of a state, its gradient, and the given gradients of all and the last.

        Raises EnforceNotMet: an output with a gradient is another part of the state.
        """
        every: str | None = None
        last: str | None = None
        offsets = self.GetRepeatedArgument("alias_offset")
        for alias, src in enumerate(self.GetRepeatedArgument("alias_src")):
            if src != name or alias not in self._given:
                continue
            given = self._definition.inputs[self._given.index(alias)]
            require(
                offsets[alias] in (1, -1),
                f"An output with a gradient has the alias_offset 1 or -1, not {offsets[alias]}.",
            )
            if offsets[alias] == 1:
                every = given
            else:
                last = given
        return name, self._renamed(f"{name}_grad"), every, last

    def RunOnDevice(self) -> None:
        sequence = self.x(len(self._given))
        steps = sequence.shape[0]
        scratch = self.Input(self.InputSize() - 1, ScratchWorkspaces)
        require(
            len(scratch.steps) >= steps,
            f"There are {steps} steps, but {len(scratch.steps)} workspaces of the forward run.",
        )
        for param, gradient in self._params:
            self._zeros(gradient, param)
        totals = [self._start(*names) for names in self._states]
        states = [
            (total.unbind(0), self._tensor(names[2]).unbind(0))
            for names, total in zip(self._states, totals, strict=True)
            if names[2] is not None
        ]
        name = self._renamed(f"{self._definition.inputs[len(self._given)]}_grad")
        blob = find_blob(self._workspace, name) or self.OutputBlob(0)
        room(blob, sequence.shape, sequence)
        assert scratch.shared is not None
        self._share_blobs(scratch.steps[:1], scratch.shared)
        for t in reversed(range(steps)):
            for rows, outer_rows in states:
                add_row(rows, outer_rows, t, 1)
                self._net.runs += 1
            self._net.run(scratch.steps[t], t)
        _count_runs(self, self._net)
        for i, total in enumerate(totals):
            self._put_initial(1 + len(self._params) + i, self._initial[i], total)

    def _tensor(self, name: str) -> Tensor:
        blob = find_or_create(self._workspace, name)
        return operand(blob.Get(c10.tensor))

    def _zeros(self, name: str, like: str) -> Tensor:
        """Return the blob `name`, set to zeros of the sizes of the blob `like`."""
        given = self._tensor(like)
        return room(find_or_create(self._workspace, name), given.shape, given).zero_()

    def _start(self, state: str, name: str, every: str | None, last: str | None) -> Tensor:
        """Return the gradient of a state before the last step; `every` is for the steps."""
        gradient = self._zeros(name, state)
        if last is not None:
            row = gradient[-1]
            row.add_(self._tensor(last).reshape(row.shape))
        return gradient

    def _share_blobs(self, first: list[BlobTable], shared: BlobTable) -> None:
        """Create the blobs of the backward step that all steps share, unless a step has them."""
        for table in first:
            for name in self._net.outputs():
                if find_blob(table, name) is None:
                    find_or_create(shared, name)

    def _put_initial(self, o: int, place: int, gradient: Tensor) -> None:
        like = self.x(place + len(self._given))
        if like.dim() >= 2:
            self.OutputBlob(o).feed(
                gradient[: like.numel() // gradient[0].numel()].view(like.shape)
            )
        else:
            self.put(o, gradient[0].sum(0))


def _rename(net: Any, name: str, to: str) -> None:
    for operator in net.op:
        for names in (operator.input, operator.output):
            for i, one in enumerate(names):
                if one == name:
                    names[i] = to
