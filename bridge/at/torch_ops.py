# SPDX-License-Identifier: Apache-2.0
"""The methods, functions and namespaces that at.Tensor and bridge.at get from torch, by name.

Each takes `run`, the TorchRunner.run that calls torch.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from bridge.annotation import Any
from bridge.at.storage_ops import set_metadata
from bridge.at.torch_defaults import CREATING, with_own_defaults
from bridge.at.torch_names import ATTRIBUTES, METHODS
from bridge.c10.errors import EnforceAttributeError, EnforceNotMet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Run: TypeAlias = Callable[[str, Callable[..., Any], Any, Any], Any]

# Methods of torch.Tensor that an at.Tensor does not get: they concern autograd, which the bridge
# leaves to torch, or expose storages, which belong to the bridge.
_EXCLUDED = frozenset(
    {
        "backward", "detach_", "module_load", "new", "numpy", "register_hook",
        "register_post_accumulate_grad_hook", "retain_grad", "share_memory_", "storage",
        "storage_type", "typed_storage", "untyped_storage", "as_subclass", "cdata", "volatile",
    }
)  # fmt: skip

# Operators and attributes that are functions of `bridge.at`, too, since ATen's tables name them.
OPERATORS = frozenset(
    {
        "__getitem__", "__radd__", "__rand__", "__rdiv__", "__rmatmul__", "__rmod__", "__rmul__",
        "__ror__", "__rpow__", "__rsub__", "__rxor__",
    }
)  # fmt: skip
_TRANSPOSING = frozenset({"H", "T", "mH", "mT"})

# Methods that change metadata in place, with the method that returns such a view.
_METADATA = {
    "as_strided_": "as_strided",
    "squeeze_": "squeeze",
    "swapaxes_": "transpose",
    "swapdims_": "transpose",
    "t_": "t",
    "transpose_": "transpose",
    "unsqueeze_": "unsqueeze",
}

# The namespaces, with those inside them.
_NAMESPACES: dict[str, tuple[str, ...]] = {
    "fft": (),
    "linalg": (),
    "masked": (),
    "nn": ("functional", "init"),
    "nn.functional": (),
    "nn.init": (),
    "signal": ("windows",),
    "signal.windows": (),
    "sparse": (),
    "special": (),
}


def method(run: Run, name: str) -> Any:
    """Return the method of at.Tensor that runs the method `name` of torch.Tensor."""
    if name in _METADATA:
        return _in_place_view(name, _METADATA[name])
    if name == "resize_as_":

        def resize_as_(self: Any, other: Any) -> Any:
            """Change the sizes to those of `other`, as `resize_` does; return this tensor."""
            return self.resize_(other.size())

        return resize_as_

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        import torch

        found = getattr(torch.Tensor, name, None)
        if found is None:
            raise AttributeError(f"This version of torch has no tensor method {name!r}.")
        return run(name, found, (self, *args), kwargs)

    call.__name__ = name
    call.__qualname__ = f"Tensor.{name}"
    call.__doc__ = f"Run ``torch.Tensor.{name}`` on the same memory; see its documentation."
    return call


def attribute(run: Run, name: str) -> Any:
    """Return the property of at.Tensor that reads the attribute `name` of torch.Tensor."""

    def read(self: Any) -> Any:
        try:
            return run(name, lambda tensor: getattr(tensor, name), (self,), {})
        except EnforceNotMet:
            raise
        except (RuntimeError, TypeError) as error:  # torch before 2.15, and from then on
            # ``hasattr`` asks, and takes only an AttributeError for no.
            raise EnforceAttributeError(str(error), f"Tensor.{name}") from error

    return property(read, doc=f"``torch.Tensor.{name}`` of the same memory.")


def newer_names() -> tuple[list[str], list[str]]:
    """Return the methods and attributes of the installed torch that `torch_names` lacks."""
    import torch

    listed = {*METHODS, *ATTRIBUTES}
    methods: list[str] = []
    attributes: list[str] = []
    for name in dir(torch.Tensor):
        if not name.startswith("_") and name not in _EXCLUDED and name not in listed:
            (methods if callable(getattr(torch.Tensor, name)) else attributes).append(name)
    return methods, attributes


def _in_place_view(name: str, view: str) -> Any:
    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        changed = getattr(self, view)(*args, **kwargs)
        set_metadata(self.unsafeGetTensorImpl(), changed.unsafeGetTensorImpl())
        return self

    change.__name__ = name
    change.__qualname__ = f"Tensor.{name}"
    change.__doc__ = f"Change sizes and strides as `{view}` does, in place; return this tensor."
    return change


def function(run: Run, name: str) -> Callable[..., Any]:
    """Return ``torch.<name>`` for at.Tensors, or the operator or method of that name.

    Raises AttributeError: torch has none.
    """
    found = _find(name) or _built_in(name) or _as_function(name) or _operator(name)
    if found is None:
        import torch

        raise AttributeError(
            f"bridge.at has no function {name!r}, nor has torch {torch.__version__}."
        )
    return for_tensors(run, name, found)


def functions(run: Run) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every function of torch and of torch.nn.functional, for at.Tensors, with its name."""
    import torch

    for name in {*dir(torch), *dir(torch.nn.functional)}:
        found = _find(name)
        if found is not None:
            yield name, for_tensors(run, name, found)


def _find(name: str) -> Callable[..., Any] | None:
    import torch

    if name.startswith("_"):
        return None
    for module in (torch, torch.nn.functional):
        found = vars(module).get(name)
        if callable(found) and not isinstance(found, type) and found.__module__ != "typing":
            return found  # type: ignore[no-any-return]
    return None


def _built_in(name: str) -> Callable[..., Any] | None:
    """Return torch's compiled function of a name such as ``linalg_svd``."""
    import torch

    if name.startswith("__"):
        return None
    core: Any = torch._C
    for place in (core._VariableFunctions, core._nn, core._linalg, core._fft, core._special):
        found = getattr(place, name, None)
        if callable(found) and not isinstance(found, type):
            return found  # type: ignore[no-any-return]
    return None


def _operator(name: str) -> Callable[..., Any] | None:
    """Return ATen's operator, of which some have no other function: ``native_dropout_backward``."""
    import torch

    found = None if name.startswith("__") else getattr(torch.ops.aten, name, None)
    return found if callable(found) else None


def _as_function(name: str) -> Callable[..., Any] | None:
    """Return a method of torch.Tensor, a reflected operator or a transposing attribute, to call."""
    import torch

    if name in _TRANSPOSING:
        return lambda x: getattr(x, name)
    if name.startswith("_") and name not in OPERATORS:
        return None
    found = None if name in _EXCLUDED else getattr(torch.Tensor, name, None)
    return found if callable(found) else None


def for_tensors(run: Run, name: str, found: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of torch that takes and returns at.Tensors."""
    if name in CREATING:

        def call(*args: Any, **kwargs: Any) -> Any:
            return run(name, found, args, with_own_defaults(name, args, kwargs))
    else:

        def call(*args: Any, **kwargs: Any) -> Any:
            return run(name, found, args, kwargs)

    call.__name__ = name
    home = getattr(found, "__module__", None) or "torch"
    call.__doc__ = f"Run ``{home}.{name}`` on the memory of at.Tensors."
    return call


class TorchNamespace(ModuleType):
    """The functions of ``torch.<name>``, with at.Tensors as arguments and results.

    They run on the same memory, as the functions of `bridge.at` do.

    >>> from bridge import at
    >>> at.linalg.det(at.eye(2)).item(), at.nn.functional.relu(at.tensor([-1, 2])).tolist()
    (1.0, [0, 2])
    """

    def __init__(self, run: Run, name: str) -> None:
        super().__init__(f"bridge.at.{name}", self.__doc__)
        self._run = run
        self._name = name

    def __getattr__(self, name: str) -> object:
        if name in _NAMESPACES[self._name]:
            found: object = TorchNamespace(self._run, f"{self._name}.{name}")
        else:
            found = self._function(name)
        setattr(self, name, found)
        return found

    def _function(self, name: str) -> object:
        theirs = f"torch.{self._name}"
        function = None
        if not name.startswith("_"):
            function = getattr(importlib.import_module(theirs), name, None)
        if isinstance(function, type) and issubclass(function, BaseException):
            return function
        if not callable(function) or isinstance(function, type):
            raise AttributeError(f"{self.__name__} has no function {name!r}, nor has {theirs}.")
        return for_tensors(self._run, name, function)

    def __dir__(self) -> list[str]:
        theirs = importlib.import_module(f"torch.{self._name}")
        functions = {
            name
            for name, one in vars(theirs).items()
            if not name.startswith("_") and callable(one) and not isinstance(one, type)
        }
        return sorted({*functions, *_NAMESPACES[self._name]})


def namespace(run: Run, name: str) -> TorchNamespace | None:
    """Return the namespace that `bridge.at` has by this name; None if it has none."""
    return TorchNamespace(run, name) if name in _NAMESPACES else None


def rounded(tensor: Any, ndigits: int | None) -> Any:
    """Return a new tensor with each element rounded half to even, as ``round`` does with numbers.

    The element type stays, also without `ndigits`. torch.round takes neither bool nor complex
    elements, nor digits with integers.
    """
    import torch

    digits = 0 if ndigits is None else int(ndigits)
    if tensor.is_floating_point():
        return torch.round(tensor, decimals=digits)
    if tensor.is_complex():
        return torch.complex(
            torch.round(tensor.real, decimals=digits), torch.round(tensor.imag, decimals=digits)
        )
    if digits >= 0 or tensor.dtype == torch.bool:
        return tensor.clone()
    unit = 10**-digits
    if unit > torch.iinfo(tensor.dtype).max:
        return torch.zeros_like(tensor)
    above = torch.remainder(tensor, unit)
    down = tensor - above
    odd = torch.remainder(torch.floor_divide(down, unit), 2) == 1
    # `above > unit - above`: twice `above` may overflow
    up = (above > unit - above) | ((above == unit - above) & odd)
    return torch.where(up, down + unit, down)
