# SPDX-License-Identifier: Apache-2.0
"""BlobReference: the name of a blob, and the net that writes it.

Follows BlobReference, caffe2/python/core.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.definitions import scope
from bridge.caffe2.definitions.operator_types import (
    RegisteredOperators,
    is_registered,
    nearby_names,
)


class BlobReference:
    """The name of a blob, with a reference to the net that writes it; equal to the name itself.

    ``reference.Relu(...)`` is ``net.Relu([reference], ...)`` of that net. ``reference + "text"``
    and ``"text" + reference`` are references to blobs of those names. Scripts may store anything in
    the dict `meta`.

    Raises EnforceNotMet, also a ValueError: `name` is bytes that are not UTF-8.

    >>> from bridge.caffe2 import core
    >>> core.BlobReference("x") + "_grad" == "x_grad"
    True
    """

    def __init__(self, name: Any, net: Any = None) -> None:
        self._name = _text(name, "BlobReference") if isinstance(name, bytes) else str(name)
        self._from_net = net
        self.meta: dict[Any, Any] = {}

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BlobReference):
            return self._name == other._name
        if isinstance(other, bytes):
            return self._name.encode() == other
        return isinstance(other, str) and self._name == other

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f'BlobReference("{self._name}")'

    def __add__(self, other: object) -> BlobReference:
        if not isinstance(other, str):
            raise EnforceTypeError(
                f"Only a str can be added to a BlobReference, not {type(other).__name__}.",
                "BlobReference",
            )
        return BlobReference(self._name + other, self._from_net)

    def __radd__(self, other: object) -> BlobReference:
        if not isinstance(other, str):
            raise EnforceTypeError(
                f"A BlobReference can be added to a str, not to {type(other).__name__}.",
                "BlobReference",
            )
        return BlobReference(other + self._name, self._from_net)

    def Net(self) -> Any:
        """Return the net that writes the blob, or None if it is not known."""
        return self._from_net

    def GetNameScope(self) -> str:
        """Return the part of the name up to and including its last slash."""
        return self._name[: self._name.rfind(scope._NAMESCOPE_SEPARATOR) + 1]

    def GetUnscopedName(self) -> str:
        """Return the part of the name after its last slash."""
        return self._name[self._name.rfind(scope._NAMESCOPE_SEPARATOR) + 1 :]

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("__"):
            raise AttributeError(f"A BlobReference has no attribute {op_type!r}.")
        net = self.__dict__.get("_from_net")
        if net is None:
            raise AttributeError(
                f"BlobReference {self.__dict__.get('_name')!r} does not know its net, so it cannot "
                f"add an operator {op_type!r}; call the net: net.{op_type}([reference], ...)."
            )
        if not is_registered(op_type):
            raise no_operator(op_type)

        def add(inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
            if inputs is None:
                others = []
            elif isinstance(inputs, (BlobReference, str, bytes)):
                others = [inputs]
            else:
                others = list(inputs)
            return getattr(net, op_type)([self, *others], *args, **kwargs)

        return add

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *RegisteredOperators()})


def no_operator(op_type: str) -> AttributeError:
    """Return the AttributeError for an operator type that is not registered."""
    near = nearby_names(op_type)
    hint = f"Did you mean: [{','.join(near)}]" if near else "RegisteredOperators() lists them."
    return AttributeError(f"Method {op_type} is not a registered operator. {hint}")


def ScopedName(name: Any) -> Any:
    """Return `name` with the prefix of the current name scope; a reference for a reference.

    Raises EnforceNotMet: `name` is neither a str, bytes nor a BlobReference (also a TypeError), or
    bytes that are not UTF-8 (also a ValueError).

    >>> from bridge.caffe2 import core
    >>> with core.NameScope("tower_0"):
    ...     core.ScopedName("w")
    'tower_0/w'
    """
    return scope.CurrentNameScope() + (
        name if isinstance(name, BlobReference) else _text(name, "ScopedName")
    )


def _text(name: Any, caller: str) -> str:
    if isinstance(name, str):
        return name
    if not isinstance(name, bytes):
        raise EnforceTypeError(f"A name must be a str or bytes, not {type(name).__name__}.", caller)
    try:
        return name.decode()
    except UnicodeDecodeError as cause:
        raise EnforceValueError(f"{name!r} is not a valid name: {cause}", caller) from cause


def ScopedBlobReference(name: Any, *args: Any, **kwargs: Any) -> BlobReference:
    """Return a reference to the blob `name` of the current name scope; see `ScopedName`."""
    return BlobReference(ScopedName(name), *args, **kwargs)


def references(blobs: Any, net: Any = None, caller: str = "CreateOperator") -> list[BlobReference]:
    """Return a list of references to inputs or outputs of an operator.

    blobs: a name, a BlobReference, or a list or tuple of these. Names get the prefix of the current
    name scope; references are returned unchanged. net: the net of the new references.

    Raises EnforceNotMet: `blobs` is none of these (also a TypeError), or a name is not UTF-8 (also
    a ValueError).
    """
    if isinstance(blobs, (str, bytes, BlobReference)):
        blobs = [blobs]
    elif not isinstance(blobs, (list, tuple)):
        raise EnforceTypeError(
            f"Inputs and outputs must be names, BlobReferences or lists of them, not "
            f"{type(blobs).__name__}.",
            caller,
        )
    refs = []
    for number, blob in enumerate(blobs):
        if isinstance(blob, BlobReference):
            refs.append(blob)
        elif isinstance(blob, (str, bytes)):
            refs.append(BlobReference(scope.CurrentNameScope() + _text(blob, caller), net))
        else:
            raise EnforceTypeError(
                f"Input or output {number} must be a name or a BlobReference, not {blob!r} of type "
                f"{type(blob).__name__}.",
                caller,
            )
    return refs
