# SPDX-License-Identifier: Apache-2.0
"""The case of each rule: the function of its name."""

from __future__ import annotations

import inspect

from bridge.annotation import Any
from bridge.conform import consumer, producer
from bridge.conform.consumer import arguments as consumer_arguments
from bridge.conform.consumer import capsules as consumer_capsules
from bridge.conform.consumer import deleters as consumer_deleters
from bridge.conform.consumer import flags as consumer_flags
from bridge.conform.consumer import layouts as consumer_layouts
from bridge.conform.consumer import lifetimes as consumer_lifetimes
from bridge.conform.consumer import malformed as consumer_malformed
from bridge.conform.consumer import tables as consumer_tables
from bridge.conform.consumer import types as consumer_types
from bridge.conform.producer import arguments as producer_arguments
from bridge.conform.producer import capsules as producer_capsules
from bridge.conform.producer import deleters as producer_deleters
from bridge.conform.producer import devices as producer_devices
from bridge.conform.producer import flags as producer_flags
from bridge.conform.producer import layouts as producer_layouts
from bridge.conform.producer import lifetimes as producer_lifetimes
from bridge.conform.producer import tables as producer_tables
from bridge.conform.producer import types as producer_types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Case = Callable[..., None]


MODULES: tuple[Any, ...] = (
    producer_capsules,
    producer_deleters,
    producer_lifetimes,
    producer_arguments,
    producer_flags,
    producer_devices,
    producer_types,
    producer_layouts,
    producer_tables,
    consumer_capsules,
    consumer_deleters,
    consumer_lifetimes,
    consumer_flags,
    consumer_arguments,
    consumer_types,
    consumer_layouts,
    consumer_malformed,
    consumer_tables,
)
# Their cases end the life of a subject's tensors and see what becomes of the memory.
_LIVES = (producer_capsules, producer_deleters, producer_lifetimes, producer_tables)
_ROLES = tuple(module.__name__.rpartition(".")[2] + "_" for module in (producer, consumer))

CASES: dict[str, Case] = {
    name.replace("_", "-"): value
    for module in MODULES
    for name, value in vars(module).items()
    if name.startswith(_ROLES) and inspect.isfunction(value)
}


def parts_of(case: Case) -> dict[str, bool]:
    """Return the parts of a subject that a case takes, and whether it needs each."""
    parameters = inspect.signature(case).parameters.values()
    return {one.name: one.default is inspect.Parameter.empty for one in parameters}


def watches_lives(case: Case) -> bool:
    """Return whether a case counts references or sees whether memory lasts, or is freed."""
    return case.__name__.startswith(_ROLES[1]) or case.__module__ in {m.__name__ for m in _LIVES}
