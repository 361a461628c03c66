# SPDX-License-Identifier: Apache-2.0
"""The ways in which an operation of the table is called, and the outcome of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MethodDescriptorType, WrapperDescriptorType
from typing import Any, NamedTuple

import torch

from bridge import at
from tests.opinfo import memory
from tests.opinfo.compare import NO_VALUES, difference
from tests.opinfo.memory import Arguments


class Outcome(NamedTuple):
    """kind: "same", "wrong" (other results), "refused" (here only), "taken" (here only)."""

    kind: str
    text: str


class Calls(NamedTuple):
    """What a route calls: on plain tensors, on at.Tensors, and tensors that both may write."""

    plain: Callable[[], Any]
    ours: Callable[[], Any]
    pairs: list[tuple[Any, Any]]


def function(op: Any, sample: Any, make: memory.Maker = memory.imported) -> Calls | None:
    """torch's function, which at.Tensor's ``__torch_function__`` answers."""
    if isinstance(op.op, (MethodDescriptorType, WrapperDescriptorType)):
        return None  # a method of torch.Tensor, which is called as one
    return _calls(op.op, op.op, Arguments(sample, make))


def function_on_numpy(op: Any, sample: Any) -> Calls | None:
    """torch's function on memory of NumPy."""
    return function(op, sample, memory.numpy_backed)


def function_on_views(op: Any, sample: Any) -> Calls | None:
    """torch's function on views of bigger storages."""
    return function(op, sample, memory.view)


def function_on_readonly(op: Any, sample: Any) -> Calls | None:
    """torch's function on read-only memory."""
    return function(op, sample, memory.readonly)


def at_function(op: Any, sample: Any) -> Calls | None:
    """The function of `bridge.at` of that name, on memory of the bridge."""
    if _named(torch, op.name) is None or getattr(op.op, "__name__", "") == "<lambda>":
        return None  # a method only, or with arguments in another order
    return _calls(
        op.op, lambda *a, **k: _at_function(op.name)(*a, **k), Arguments(sample, memory.owned)
    )


def _named(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _at_function(path: str) -> Any:
    found = _named(at, path)
    if found is None:
        raise AttributeError(f"bridge.at has no {path}.")
    return found


def method(op: Any, sample: Any) -> Calls | None:
    """The method."""
    return _method(op.method_variant, Arguments(sample, memory.imported))


def in_place(op: Any, sample: Any) -> Calls | None:
    """The method that ends in an underscore, on views of bigger storages."""
    return _method(op.inplace_variant, Arguments(sample, memory.view))


def _method(variant: Any, made: Arguments) -> Calls | None:
    name = getattr(variant, "__name__", None)
    if name in (None, "<lambda>") or not isinstance(made.plain[0], torch.Tensor):
        return None
    return _calls(variant, lambda x, *a, **k: getattr(x, name)(*a, **k), made)


def out(op: Any, sample: Any) -> Calls | None:
    """``out=`` of the result's sizes, views of a bigger storage."""
    made = _for_out(op, sample)
    if made is None:
        return None
    arguments, result = made
    plain, ours = memory.view(torch.zeros_like(result))
    return _calls(op.op, op.op, arguments, {"out": plain}, {"out": ours})


def out_overlapping(op: Any, sample: Any) -> Calls | None:
    """``out=`` that overlaps the first argument, as views of one storage of the bridge."""
    made = _for_out(op, sample)
    if made is None:
        return None
    arguments, result = made
    t = sample.input
    if not isinstance(t, torch.Tensor) or t.dtype != result.dtype or not t.numel() or t.is_sparse:
        return None
    n, m = t.numel(), result.numel()
    plain = torch.zeros(max(n, m + 1), dtype=t.dtype)
    ours = at.zeros(max(n, m + 1), dtype=t.dtype)
    for base in (plain, ours):
        base[:n].copy_(t.reshape(-1))
    first = plain[:n].view(t.shape), ours[:n].view(tuple(t.shape))
    last = plain[1 : m + 1].view(result.shape), ours[1 : m + 1].view(tuple(result.shape))
    arguments.plain = (first[0], *arguments.plain[1:])
    arguments.ours = (first[1], *arguments.ours[1:])
    arguments.pairs.append((plain, ours))
    return _calls(op.op, op.op, arguments, {"out": last[0]}, {"out": last[1]})


def in_place_overlapping(op: Any, sample: Any) -> Calls | None:
    """A method in place whose tensor overlaps its argument, as views of one storage."""
    name = getattr(op.inplace_variant, "__name__", None)
    t, others = sample.input, [a for a in sample.args if isinstance(a, torch.Tensor)]
    if name in (None, "<lambda>") or not isinstance(t, torch.Tensor) or len(others) != 1:
        return None
    other = others[0]
    if other.shape != t.shape or other.dtype != t.dtype or t.layout != torch.strided or not t.dim():
        return None
    n = t.numel()
    pairs = []
    for base in (torch.zeros(n + 1, dtype=t.dtype), at.zeros(n + 1, dtype=t.dtype)):
        base[:n].copy_(other.reshape(-1))
        pairs.append((base, base[1:].view(tuple(t.shape)), base[:n].view(tuple(t.shape))))
    (plain, to, by), (ours, our_to, our_by) = pairs
    args = [by if a is other else a for a in sample.args]
    our_args = [our_by if a is other else a for a in sample.args]
    keywords = dict(sample.kwargs)
    return Calls(
        lambda: getattr(to, name)(*args, **keywords),
        lambda: getattr(our_to, name)(*our_args, **keywords),
        [(plain, ours)],
    )


def _for_out(op: Any, sample: Any) -> tuple[Arguments, torch.Tensor] | None:
    """Return arguments, and the result; None: the operation takes no ``out=`` of one tensor."""
    if not op.supports_out:
        return None
    first = Arguments(sample, memory.imported)
    result = op.op(first.plain[0], *first.plain[1], **first.plain[2])
    if not isinstance(result, torch.Tensor) or result.layout != torch.strided:
        return None
    return Arguments(sample, memory.imported), result


def _calls(
    plain: Any,
    ours: Any,
    made: Arguments,
    more: dict[str, Any] | None = None,
    our_more: dict[str, Any] | None = None,
) -> Calls:
    (x, args, keywords), (our_x, our_args, our_keywords) = made.plain, made.ours
    written = [] if more is None or our_more is None else [(more["out"], our_more["out"])]
    return Calls(
        lambda: plain(x, *args, **keywords, **(more or {})),
        lambda: ours(our_x, *our_args, **our_keywords, **(our_more or {})),
        [*made.pairs, *written],
    )


ROUTES: dict[str, Callable[[Any, Any], Calls | None]] = {
    one.__name__: one
    for one in (
        *(function, function_on_numpy, function_on_views, function_on_readonly, at_function),
        *(method, in_place, in_place_overlapping, out, out_overlapping),
    )
}


def outcome(op: Any, sample: Any, route: str) -> Outcome | None:
    """Return what comes of one call of `op`; None: the route is not one for it."""
    with torch.no_grad():
        try:
            calls = ROUTES[route](op, sample)
        except (RuntimeError, BufferError, TypeError, NotImplementedError):
            return None  # the arguments cannot be made on such memory
        if calls is None:
            return None
        theirs, their_error = _called(calls.plain)
        ours, error = _called(calls.ours)
        if their_error is not None or error is not None:
            if (their_error is None) == (error is None):
                return Outcome("same", "")
            if isinstance(error, TypeError) and "doesn't apply to a" in str(error):
                return None  # torch.Tensor's own method, which Python gives no other class
            kind, cause = ("refused", error) if their_error is None else ("taken", their_error)
            lines = str(cause).strip().splitlines()
            return Outcome(kind, f"{type(cause).__name__}: {lines[0] if lines else ''}")
        values = not op.name.startswith(NO_VALUES) and "empty" not in op.name
        found = difference(theirs, ours, values)
        if found is None:
            lazy = [pair for pair in calls.pairs if pair[0].is_conj() or pair[0].is_neg()]
            # (the memory under a lazy bit has other values than an at.Tensor, which has none)
            for before, after in lazy or calls.pairs:
                found = difference(before, after, values)
                if found is not None:
                    return Outcome("wrong", f"an argument has {found}")
        return Outcome("same", "") if found is None else Outcome("wrong", found)


def _called(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    torch.manual_seed(42)  # as the table's own functions do
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001  compared with the other's
        return None, error


def samples(op: Any, dtype: torch.dtype, most: int | None) -> Iterator[Any]:
    """Yield samples of an operation for `dtype`, `most` at most; none if it has no such type."""
    if dtype not in op.dtypes:
        return
    torch.manual_seed(0)
    for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
        if most is not None and i >= most:
            return
        yield sample
