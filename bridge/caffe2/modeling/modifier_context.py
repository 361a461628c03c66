# SPDX-License-Identifier: Apache-2.0
"""Contexts that give optimizers, regularizers and normalizers to parameters, by name.

Follows caffe2/python/modifier_context.py, optimizer_context.py, regularizer_context.py and
normalizer_context.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.modeling.context import DefaultManaged

__all__ = [
    "DEFAULT_MODIFIER",
    "DEFAULT_OPTIM",
    "ModifierContext",
    "NormalizerContext",
    "OptimizerContext",
    "RegularizerContext",
    "UseModifierBase",
    "UseNormalizer",
    "UseOptimizer",
    "UseRegularizer",
]

# The name under which a modifier is set that is given without a name.
DEFAULT_MODIFIER = DEFAULT_OPTIM = "DEFAULT"


class ModifierContext:
    """Objects by name; `push_modifiers` and `pop_modifiers` set and unset several."""

    def __init__(self) -> None:
        self._levels: list[dict[str, Any]] = []

    def push_modifiers(self, modifiers: dict[str, Any]) -> None:
        """Set objects by name; they hide earlier objects of the same name."""
        self._levels.append(modifiers)

    def pop_modifiers(self) -> None:
        """Undo the last push. Raises EnforceNotMet, also an AssertionError: nothing to undo."""
        if not self._levels:
            raise EnforceAssertionError(
                "pop_modifiers without push_modifiers.", f"{type(self).__name__}.pop_modifiers"
            )
        self._levels.pop()

    def _has_modifier(self, name: str) -> bool:
        """Return whether an object is set under `name`."""
        return any(name in level for level in self._levels)

    def _get_modifier(self, name: str) -> Any:
        return next((level[name] for level in reversed(self._levels) if name in level), None)


def _required(kind: str) -> Any:
    """Return the method that returns the object of a name; it raises if there is none."""

    def get(self: ModifierContext, name: str) -> Any:
        if not self._has_modifier(name):
            raise EnforceAssertionError(
                f"{name} {kind} is not provided!", f"{type(self).__name__}.get_{kind}"
            )
        return self._get_modifier(name)

    get.__name__ = f"get_{kind}"
    get.__doc__ = f"Return the {kind} set under `name`; raise an AssertionError if none is."
    return get


class OptimizerContext(ModifierContext, DefaultManaged):
    """The optimizers of the `UseOptimizer` blocks around."""

    has_optimizer = ModifierContext._has_modifier
    get_optimizer = _required("optimizer")


class RegularizerContext(ModifierContext, DefaultManaged):
    """The regularizers of the `UseRegularizer` blocks around."""

    has_regularizer = ModifierContext._has_modifier
    get_regularizer = _required("regularizer")


class NormalizerContext(ModifierContext, DefaultManaged):
    """The normalizers of the `UseNormalizer` blocks around."""

    has_normalizer = ModifierContext._has_modifier
    get_normalizer = _required("normalizer")


class UseModifierBase:
    """A block in which modifiers are set: one, named `DEFAULT_MODIFIER`, or a dict by name."""

    def __init__(self, modifier_or_dict: Any) -> None:
        named = isinstance(modifier_or_dict, dict)
        self._modifiers = modifier_or_dict if named else {DEFAULT_MODIFIER: modifier_or_dict}

    def _context_class(self) -> Any:
        raise NotImplementedError("A subclass returns its ModifierContext here.")

    def __enter__(self) -> Any:
        self._context_class().current().push_modifiers(self._modifiers)
        return self

    def __exit__(self, *error: object) -> None:
        self._context_class().current().pop_modifiers()


class UseOptimizer(UseModifierBase):
    """Sets optimizers of the parameters created in the block, by their tags.

    >>> from bridge.caffe2 import brew, model_helper, optimizer
    >>> from bridge.caffe2.modeling.modifier_context import UseOptimizer
    >>> model = model_helper.ModelHelper(name="use_optimizer_doc")
    >>> adam = optimizer.AdamOptimizer()
    >>> with UseOptimizer({"BIAS": adam}):
    ...     y = brew.fc(model, "x", "y", dim_in=3, dim_out=2)
    >>> [model.get_param_info(param).optimizer is adam for param in model.params]
    [False, True]
    """

    def _context_class(self) -> Any:
        return OptimizerContext


class UseRegularizer(UseModifierBase):
    """Sets regularizers of the parameters created in the block."""

    def _context_class(self) -> Any:
        return RegularizerContext


class UseNormalizer(UseModifierBase):
    """Sets normalizers of the layers created in the block."""

    def _context_class(self) -> Any:
        return NormalizerContext
