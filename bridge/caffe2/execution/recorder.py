# SPDX-License-Identifier: Apache-2.0
"""Recording the torch calls of an operator's function, to make them again without it.

A recording is refused, and the function called at each run, if it

- reads the values of elements (``item``, ``tolist``, a tensor as a condition, NumPy): then they may
  decide which calls it makes; those of inputs that decide sizes (`sized_by`) may be read, since a
  tape belongs to their values;
- calls a function whose results have sizes that depend on values, such as ``nonzero``;
- uses a tensor that is neither an input nor the result of a recorded call.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

import torch
from torch.overrides import TorchFunctionMode

from bridge.annotation import Any
from bridge.caffe2.execution.tape import Call, Slot, Tape

TYPE_CHECKING = False
if TYPE_CHECKING:
    Recorded = list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], Any]]

MOST_KEPT = 4096  # elements of a constant that is kept


def _named(text: str, *places: Any) -> frozenset[Any]:
    """Return the functions of some names in torch's modules and classes."""
    names = text.split()
    return frozenset(
        getattr(place, name) for name in names for place in places if hasattr(place, name)
    )


_T = torch.Tensor
# The functions that read no elements.
_METADATA = _named(
    "size dim numel nelement ndimension stride is_contiguous is_floating_point is_complex "
    "storage_offset element_size __len__ get_device is_neg",
    _T,
) | {torch.is_floating_point, torch.is_complex, torch.numel}
_METADATA |= {
    getattr(_T, name).__get__
    for name in (
        *("shape", "dtype", "device", "ndim", "layout", "is_cuda", "is_cpu", "is_meta"),
        *("is_quantized", "is_sparse", "requires_grad", "itemsize", "nbytes"),
    )
}
# Those that may return a view.
_VIEWS = _named(
    "t transpose view reshape permute expand unsqueeze squeeze narrow select flatten unflatten "
    "view_as expand_as detach swapaxes swapdims movedim diagonal",
    _T,
    torch,
) | {_T.T.__get__, _T.mT.__get__}  # type: ignore[attr-defined]
# Those whose results have sizes that depend on the values of elements.
_SIZES_BY_VALUES = _named(
    "nonzero argwhere masked_select unique unique_consecutive _unique2 repeat_interleave bincount "
    "tensor_split histogram one_hot",
    _T,
    torch,
    torch.nn.functional,
)
# Those of two tensors, of which one may be a number: torch makes a tensor of the number at each
# call, which takes longer than the rest of the call.
_OF_TWO = _named(
    " ".join(
        f"{name} {name}_ __{name}__ __r{name}__ __i{name}__"
        for name in ("add", "sub", "mul", "div", "truediv", "gt", "ge", "lt", "le", "eq", "ne")
    ),
    _T,
    torch,
) | {torch.where}
# Those that make a tensor of constants; the first ones, without reading the elements of their own.
_MAKERS_LIKE = frozenset((_T.new_zeros, _T.new_ones, _T.new_full))
_MAKERS = _MAKERS_LIKE | {torch.tensor, torch.zeros, torch.ones, torch.full, torch.arange}


def record(
    function: Callable[..., Any], operands: Sequence[Any], arguments: dict[str, Any]
) -> tuple[Any, Recorded]:
    """Return the result of the function, and its calls of torch functions."""
    calls: Recorded = []
    is_collecting = gc.isenabled()
    gc.disable()  # it runs finalizers of others, whose calls would be recorded, too
    try:
        with _CallRecorder(calls):
            return function(*operands, **arguments), calls
    finally:
        if is_collecting:
            gc.enable()


class _CallRecorder(TorchFunctionMode):
    """Appends each call of a torch function, with its result, to a list."""

    def __init__(self, calls: Recorded) -> None:
        super().__init__()
        self.calls = calls

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.calls.append((func, tuple(args), kwargs or {}, result))
        return result


def _number_as_tensor(number: Any, other: Any) -> Any:
    """Return the tensor that torch makes of a number beside `other`; None: torch makes another."""
    if not isinstance(other, torch.Tensor) or not other.is_cpu:
        return None
    is_exact = type(number) is float or (type(number) is int and abs(number) < 1 << 53)
    if is_exact and other.dtype in (torch.float32, torch.float64):
        return torch.tensor(float(number), dtype=torch.float64).to(other.dtype)
    return None


def compile_calls(
    calls: Recorded,
    operands: Sequence[Any],
    buffers: Sequence[Any],
    results: Sequence[Any],
    in_place: dict[int, int] | None,
    known: Sequence[int] = (),
) -> Tape | None:
    """Return the tape of recorded calls; None: it is refused, or has no result that it could put.

    operands, buffers: the torch tensors of inputs and outputs in the recorded run. results: what
    the function returned for each output. in_place: the outputs that are inputs; the results of the
    tape are then -1 for an output whose buffer the calls write, and None if they write all. If it
    is None, the results are tensors of any buffer, or new ones. known: the operands whose elements
    are those of the recorded run whenever the tape is played.
    """
    for keeps_constants in (True, False):
        compiler = _Compiler(operands, buffers, keeps_constants, frozenset(known))
        found = compiler.compile(calls, results, in_place)
        if found is not None:
            return found
    return None


def _with_tensors(
    function: Any, args: tuple[Any, ...], template: tuple[Any, ...]
) -> tuple[Any, tuple[Any, ...]]:
    """Return a function of two tensors, and its template, without a number where torch has one."""
    arguments = list(template)
    first = 1 if function is torch.where else 0
    for i, other in ((first, first + 1), (first + 1, first)):
        if max(i, other) < len(args):
            number = _number_as_tensor(args[i], args[other])
            if number is not None:
                arguments[i] = number
    if function is torch.Tensor.__rsub__:  # written in Python
        function = torch.rsub
    return function, tuple(arguments)


def _reads_index(index: Any) -> bool:
    """Return whether torch reads the elements of an index to find the sizes, or a view."""
    for one in index if isinstance(index, (tuple, list)) else (index,):
        if hasattr(one, "dim") and (not one.dim() or one.dtype.itemsize == 1):  # or a mask
            return True
    return False


class _Compiler:
    """Makes calls of a tape from recorded ones.

    keeps_constants: whether small tensors that depend on no values, as ``torch.tensor([1, 2])``
    or ``x.new_zeros(())``, are made once. The recording is refused if one of them is then written,
    or is a result.
    """

    def __init__(
        self,
        operands: Sequence[Any],
        buffers: Sequence[Any],
        keeps_constants: bool,
        known: frozenset[int],
    ) -> None:
        self.known = known
        self.inputs = len(operands)
        self.keeps_constants = keeps_constants
        self.constants: set[int] = set()
        self.buffers = buffers
        self.tensors = [*operands, *buffers]
        # The first slot of a tensor: an output in place is the tensor of its input.
        self.slots: dict[int, int] = {}
        for i, tensor in enumerate(self.tensors):
            self.slots.setdefault(id(tensor), i)
        # Of operands, and of views of these: the operands that they depend on.
        self.roots = {i: frozenset((i,)) for i in range(len(self.tensors))}
        self.refused = False

    def compile(
        self, calls: Recorded, results: Sequence[Any], in_place: dict[int, int] | None
    ) -> Tape | None:
        compiled: list[list[Any]] = []
        uses: list[set[int]] = []
        for function, args, kwargs, result in calls:
            if function in _METADATA:
                continue
            if function in _SIZES_BY_VALUES or (
                function is torch.Tensor.__getitem__ and _reads_index(args[1])
            ):
                return None
            used: set[int] = set()
            arguments = self._template(args, used)
            if function in _OF_TWO:
                function, arguments = _with_tensors(function, args, arguments)
            keywords = self._template(kwargs, used)
            roots = None
            if used <= self.roots.keys():
                roots = frozenset().union(*(self.roots[slot] for slot in used))
            if roots and roots <= self.known and not isinstance(result, torch.Tensor):
                continue
            is_constant = roots is not None and self._is_constant(function, args, result)
            is_view = is_constant or (roots is not None and self._is_view(function, args, result))
            slots = self._keep(result, roots if is_view else None)
            if isinstance(slots, int) and (is_constant or (is_view and used & self.constants)):
                self.constants.add(slots)
            if self.refused:
                return None
            compiled.append([function, arguments, keywords, slots, is_view, roots])
            uses.append(used)
        places = self._places(results, in_place)
        if places is None:
            return None
        kept = {slot for slot in places if slot >= 0}
        seen = self.roots.keys() | kept
        found = []
        for call, used in zip(reversed(compiled), reversed(uses), strict=True):
            produced = call[3] if isinstance(call[3], tuple) else (call[3],)
            mentioned = used | {slot for slot in produced if slot is not None}
            call.append(tuple(sorted(mentioned - seen)) or None)
            found.append(Call(*call))
            seen |= mentioned
        is_put = bool(kept) or in_place is None
        return Tape(found[::-1], len(self.tensors), places if is_put else None)

    def _has_tensor(self, value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return any(map(self._has_tensor, value))
        return isinstance(value, torch.Tensor)

    def _template(self, value: Any, used: set[int]) -> Any:
        if isinstance(value, torch.Tensor):
            slot = self.slots.get(id(value))
            if slot is None:
                self.refused = True
                return None
            used.add(slot)
            return Slot(slot)
        kind = type(value)
        if kind is list:
            return [self._template(one, used) for one in value]
        if kind is tuple or isinstance(value, torch.Size):
            return tuple([self._template(one, used) for one in value])
        if kind is dict:
            return {name: self._template(one, used) for name, one in value.items()}
        return value

    def _is_view(self, function: Any, args: tuple[Any, ...], result: Any) -> bool:
        if function is torch.Tensor.__getitem__ or function in _VIEWS:
            return bool(
                isinstance(result, torch.Tensor)
                and result.untyped_storage().data_ptr() == args[0].untyped_storage().data_ptr()
            )
        return False

    def _is_constant(self, function: Any, args: tuple[Any, ...], result: Any) -> bool:
        return (
            self.keeps_constants
            and function in _MAKERS
            and not self._has_tensor(args[1:] if function in _MAKERS_LIKE else args)
            and result.numel() <= MOST_KEPT
        )

    def _keep(
        self, result: Any, roots: frozenset[int] | None
    ) -> int | tuple[int | None, ...] | None:
        """Return the slots of a call's results; a tensor that is known already keeps its slot."""
        if isinstance(result, torch.Tensor):
            known = self.slots.get(id(result))
            if known is not None:
                self.refused = self.refused or known in self.constants
                return None
            slot = len(self.tensors)
            self.tensors.append(result)  # it stays alive, so that its id is its own
            self.slots[id(result)] = slot
            if roots is not None:
                self.roots[slot] = roots
            return slot
        if isinstance(result, (tuple, list)):
            slots = [None if one is None else self._keep(one, None) for one in result]
            return tuple([slot if isinstance(slot, int) else None for slot in slots])
        self.refused = True
        return None

    def _places(
        self, results: Sequence[Any], in_place: dict[int, int] | None
    ) -> tuple[int, ...] | None:
        """Return the slot of each result; -1 for one that the calls wrote to its buffer.

        None: one is a view of an operand, or has memory of another; see `compile_calls`.
        """
        count = self.inputs + len(self.buffers)
        owned = {
            one.untyped_storage().data_ptr() for one in self.tensors[:count] if one is not None
        }
        places = []
        for o, result in enumerate(results):
            if in_place is not None and (
                result is None or (o < len(self.buffers) and result is self.buffers[o])
            ):
                places.append(-1)
                continue
            slot = self.slots.get(id(result))
            if in_place is None and slot is not None and self.inputs <= slot < count:
                places.append(slot)
                continue
            if slot is None or slot in self.roots or (in_place is not None and o in in_place):
                return None
            memory = result.untyped_storage().data_ptr()
            if memory in owned:
                return None
            if in_place is not None:  # the blobs of outputs have memory of their own
                owned.add(memory)
            places.append(slot)
        return tuple(places)
