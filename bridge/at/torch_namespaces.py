# SPDX-License-Identifier: Apache-2.0
"""torch's namespaces of functions for at.Tensors: at.linalg, at.fft, at.nn.functional, …"""

from __future__ import annotations

from types import ModuleType

from bridge.at.torch_ops import for_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.at.torch_ops import Run

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
        import importlib

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
        import importlib

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
