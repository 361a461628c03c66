# SPDX-License-Identifier: Apache-2.0
"""New names for blobs in operators that name blobs, or have whole nets, among their arguments.

Follows DEFAULT_REMAP_FUNCS and its kin, caffe2/python/core.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.definitions.ssa import get_ssa, get_undefined_blobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from bridge.caffe2.nets.net import Net

__all__ = [
    "DEFAULT_REMAP_FUNCS",
    "clone_and_bind_net",
    "control_op_remap",
    "recurrent_network_op_remap",
    "remap_proto",
]


def recurrent_network_op_remap(op: Any, prefix: str, blob_remap: dict[str, Any]) -> None:
    """Rename blobs in the arguments of a RecurrentNetwork, in place."""
    for argument in op.arg:
        if argument.strings:
            renamed = [_renamed(one, blob_remap) for one in argument.strings]
            del argument.strings[:]
            argument.strings.extend(renamed)
        elif argument.name == "timestep":
            argument.s = _renamed(argument.s, blob_remap)
        elif argument.name.endswith("step_net"):
            remap_proto(argument, blob_remap)


def _renamed(name: bytes, blob_remap: dict[str, Any]) -> bytes:
    text = name.decode()
    return str(blob_remap.get(text, text)).encode()


def control_op_remap(op: Any, prefix: str, blob_remap: dict[str, Any]) -> None:
    """Rename blobs in the nets of an If or a While, in place.

    Raises EnforceNotMet, also an AssertionError: an argument that should have a net has none.
    """
    names = ("then_net", "else_net") if op.type in ("If", "AsyncIf") else ("loop_net", "cond_net")
    for argument in op.arg:
        if argument.name in names:
            if not argument.HasField("n"):
                raise EnforceAssertionError(
                    f"Expected non empty net in {op.type}'s {argument.name} argument",
                    "control_op_remap",
                    condition="argument.n",
                )
            _rename_in(argument, None, blob_remap)


def remap_proto(argument: Any, blob_remap: dict[str, Any]) -> None:
    """Rename blobs in the net that an argument has, in place."""
    _rename_in(argument, "cloned_sub_net", blob_remap)


def _rename_in(argument: Any, name: str | None, blob_remap: dict[str, Any]) -> None:
    from bridge.caffe2.nets.net import Net

    inner = Net(argument.n)
    argument.n.CopyFrom(inner.Clone(name or f"{inner.Name()}_remapped", blob_remap).Proto())


# For each operator type, what is called as ``f(operator, prefix, blob_remap)`` when its net is
# cloned.
DEFAULT_REMAP_FUNCS: dict[str, Callable[[Any, str, dict[str, Any]], None]] = {
    "RecurrentNetwork": recurrent_network_op_remap,
    "RecurrentNetworkGradient": recurrent_network_op_remap,
    "If": control_op_remap,
    "While": control_op_remap,
    "AsyncIf": control_op_remap,
}


def clone_and_bind_net(
    net: Net,
    name: str,
    prefix: str,
    blob_remap: dict[str, Any] | None = None,
    inputs: None = None,
    keep_schema: bool = True,
) -> tuple[Net, dict[str, Any]]:
    """Copy a net, the blobs that it makes getting `prefix`; return it and the names, old to new.

    blob_remap: names for some, brought up to date. There are no schemas here, so `inputs` is None;
    keep_schema is taken for compatibility.
    """
    if inputs is not None:
        raise EnforceAssertionError(
            "There are no schemas here to bind inputs by; give names by blob_remap.",
            "clone_and_bind_net",
            condition="inputs is None",
        )
    remap = {} if blob_remap is None else blob_remap
    ssa, versions = get_ssa(net.Proto())
    undefined = get_undefined_blobs(ssa)
    for blob in versions:
        remap.setdefault(blob, blob if blob in undefined else prefix + blob)
    return net.Clone(name, remap, keep_schema=keep_schema), remap
