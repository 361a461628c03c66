# SPDX-License-Identifier: Apache-2.0
"""From a tensor or a tree to its bytes in a segment, and back."""

from __future__ import annotations

import io
import pickle
import sys
from copy import copy
from dataclasses import fields, is_dataclass, replace

from bridge.annotation import Any
from bridge.at import Tensor
from bridge.at.factories import sizes_of
from bridge.c10.errors import EnforceNotMet
from bridge.c10.reports import INTO_SHARED, report_copy
from bridge.c10.type_meta import as_type
from bridge.exchange.import_tensor import import_tensor
from bridge.shared.layout import Leaf, plan, plan_one
from bridge.shared.tensors import impls, write_tensor
from bridge.trees import at, flatten, is_tensor, is_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.c10.tensor_impl import TensorImpl
    from bridge.c10.type_meta import TypeMeta
    from bridge.shared.layout import Description, Plan
    from bridge.shared.segment import Segment
    from bridge.trees import Flat

_NO_TENSORS = (str, bytes, int, float, complex, type(None), type)


class Source:
    """The contents of a segment to be made: some leaves of a tree, by number, and the tree."""

    def __init__(self, value: Any) -> None:
        self.leaves: list[Leaf] = []
        self.value = value
        self.alone = not is_tree(value)
        self._flat = None if self.alone else flatten(value)
        self._numbers: dict[int, int] = {}  # by the object's id
        self._taken = {"__metadata__"}

    def plan(self, writable: bool) -> Plan:
        """Return the contents of the segment."""
        if self.alone:
            (leaf,) = self.leaves
            return plan_one(leaf.dtype, leaf.sizes, writable)
        return plan(self.leaves, self.tree(), writable)

    def _add(
        self, leaf: Any, dtype: TypeMeta, sizes: tuple[int, ...], twin: int | None = None
    ) -> None:
        """Add a leaf of the tree. twin: the number of one that is the same memory."""
        key = self._key(leaf.keys) if twin is None else ""
        self._numbers[id(leaf.value)] = len(self.leaves)
        self.leaves.append(Leaf(key, dtype, sizes, twin))

    def _key(self, keys: tuple[Any, ...]) -> str:
        path = key = ".".join(map(str, keys))
        count = 0
        while key in self._taken or (key[:4] == ".pad" and key[4:].isdecimal()):
            count += 1
            key = f"{path}#{count}"
        self._taken.add(key)
        return key

    def tree(self) -> bytes:
        """Return the pickle of the tree, with numbers for the tensors; empty for one alone."""
        if self.alone:
            return b""
        out = io.BytesIO()
        _Pickler(out, self._numbers).dump(self.value)
        return out.getvalue()

    def rebuilt(self, tensors: Sequence[Tensor]) -> Any:
        """Return the value with these tensors in the places of its own."""
        if self._flat is None:
            return tensors[0]
        values = []
        for leaf in self._flat.leaves:
            number = self._numbers.get(id(leaf.value))
            values.append(leaf.value if number is None else tensors[number])
        return self._flat.rebuild(values)

    def write(self, segment: Segment, made: Plan) -> None:
        """Write the elements into a new segment, each leaf at its place."""


class Tensors(Source):
    """Tensors of any library."""

    def __init__(self, value: Any) -> None:
        """Import the tensors of `value`.

        Raises TypeError: there is none. BufferError: one cannot be in shared memory; the message
        names it.
        """
        super().__init__(value)
        self.impls: list[TensorImpl] = []
        self._paths: list[str] = []
        if self._flat is None:
            self._add_alone(value)
        else:
            self._add_leaves(self._flat)
        if not self.impls:
            raise TypeError(
                f"{type(value).__name__} has no tensor to share. Tensors and arrays of any library "
                "can be shared, and trees of them; numbers and strings cannot: "
                "bridge.asarray(x) makes a tensor of them."
            )

    def _add_alone(self, value: Any) -> None:
        if not isinstance(value, (*_NO_TENSORS, *_numpy_scalar())):
            impl = _on_host(import_tensor(value))
            self.leaves.append(Leaf("tensor", impl.dtype(), tuple(impl.sizes()), None))
            self.impls.append(impl)
            self._paths.append("")

    def _add_leaves(self, flat: Flat) -> None:
        known: dict[tuple[Any, ...], int] = {}
        for leaf in flat.leaves:
            if isinstance(leaf.value, (*_NO_TENSORS, *_numpy_scalar())) or not is_tensor(
                leaf.value
            ):
                continue
            try:
                impl = _on_host(import_tensor(leaf.value))
            except (BufferError, EnforceNotMet) as error:
                raise at(leaf.path, error) from error
            number = len(self.impls)
            first = known.setdefault(_identity(impl, number), number)
            twin = None if first == number else first
            self._add(leaf, impl.dtype(), tuple(impl.sizes()), twin)
            self.impls.append(impl)
            self._paths.append(leaf.path)

    def write(self, segment: Segment, made: Plan) -> None:
        """Copy the elements."""
        report_copy(made.nbytes, INTO_SHARED)
        for impl, leaf, begin, path in zip(
            self.impls, self.leaves, made.begins, self._paths, strict=True
        ):
            if leaf.twin is not None:
                continue
            try:
                write_tensor(segment, begin, impl)
            except (BufferError, EnforceNotMet) as error:
                raise at(path, error) from error


def _numpy_scalar() -> tuple[type, ...]:
    generic = getattr(sys.modules.get("numpy"), "generic", None)
    return () if generic is None else (generic,)


def _on_host(impl: TensorImpl) -> TensorImpl:
    if str(impl.device()) not in ("cpu", "cuda_host"):
        raise BufferError(
            f"The tensor is on {impl.device()}, and processes share host memory: share x.cpu()."
        )
    return impl


def _identity(impl: TensorImpl, number: int) -> tuple[Any, ...]:
    """Return a key that is equal for tensors of the same elements of the same memory."""
    if not impl.numel():
        return (number,)
    storage = impl.get_storage()
    first = storage.data_ptr() + impl.storage_offset() * impl.dtype().itemsize
    return first, impl.dtype().name, tuple(impl.sizes()), tuple(impl.strides())


class _Spec:
    """Sizes and an element type."""

    def __init__(self, dtype: TypeMeta, sizes: tuple[int, ...]) -> None:
        self.dtype = dtype
        self.sizes = sizes


class Specs(Source):
    """Zeros of given sizes and types."""

    def __init__(self, spec: Any) -> None:
        """Read pairs of sizes and a type, and trees of them.

        Raises TypeError: there is no pair. BufferError: a type that is not plain memory.
        """
        super().__init__(_marked(spec))
        if isinstance(self.value, _Spec):
            self.leaves.append(Leaf("tensor", self.value.dtype, self.value.sizes, None))
        for leaf in () if self._flat is None else self._flat.leaves:
            if isinstance(leaf.value, _Spec):
                self._add(leaf, leaf.value.dtype, leaf.value.sizes)
        if not self.leaves:
            raise TypeError(
                "Shared.empty takes sizes and an element type, as ((2, 3), 'float32'), or a tree "
                f"of such pairs; there is none in {spec!r:.200}."
            )


def _marked(spec: Any) -> Any:
    """Return a copy of `spec` with a _Spec in the place of each pair."""
    if isinstance(spec, (tuple, list)):
        if len(spec) == 2 and _are_sizes(spec[0]):
            return _spec(*spec)
        items = [_marked(item) for item in spec]
        make = getattr(type(spec), "_make", type(spec))
        return make(items)
    if isinstance(spec, dict):
        out = copy(spec)
        for key, value in spec.items():
            out[key] = _marked(value)
        return out
    if is_dataclass(spec) and not isinstance(spec, type):
        values = {field.name: getattr(spec, field.name) for field in fields(spec) if field.init}
        return replace(spec, **{name: _marked(value) for name, value in values.items()})
    return spec


def _spec(sizes: Any, T: Any) -> _Spec:
    dtype = as_type(T)
    if not dtype.is_pod or not dtype:
        raise BufferError(f"Shared memory holds plain elements, not elements of {dtype}.")
    return _Spec(dtype, tuple(sizes_of(sizes, "Shared.empty")))


def _are_sizes(x: Any) -> bool:
    """Return whether `x` is an int or a sequence of ints."""
    if isinstance(x, (str, bytes, dict)):
        return False
    if hasattr(x, "__len__"):
        return all(hasattr(size, "__index__") for size in x)
    return hasattr(x, "__index__")


class _Pickler(pickle.Pickler):
    """Writes the number of a tensor in its place."""

    def __init__(self, out: io.BytesIO, numbers: dict[int, int]) -> None:
        super().__init__(out, protocol=5)
        self._numbers = numbers

    def persistent_id(self, obj: Any) -> int | None:
        return self._numbers.get(id(obj))


class _Unpickler(pickle.Unpickler):
    def __init__(self, tree: bytes, tensors: list[Tensor]) -> None:
        super().__init__(io.BytesIO(tree))
        self._tensors = tensors

    def persistent_load(self, number: int) -> Tensor:
        return self._tensors[number]


def build(segment: Segment, description: Description) -> Any:
    """Return the value that `description` describes: at.Tensors on the segment, or a tree of them.

    Raises BufferError: they are not all in the segment. Unpickling the tree may raise others.
    """
    tensors = list(map(Tensor._of, impls(segment, description.table, description.types)))
    if not description.tree:
        if len(tensors) != 1:
            raise BufferError("The description of the segment's tensor is damaged.")
        return tensors[0]
    return _Unpickler(description.tree, tensors).load()
