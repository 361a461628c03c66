# SPDX-License-Identifier: Apache-2.0
"""Copies of NetDefs with blobs renamed, also in operators whose arguments name blobs or are nets.

Follows Net.Clone and DEFAULT_REMAP_FUNCS, caffe2/python/core.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceIndexError
from bridge.caffe2.base.messages import check_text, copied, set_fields
from bridge.caffe2.base.names import new_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    # Called as f(operator, prefix, blob_remap); renames blobs in the arguments of the operator.
    RemapFunction = Callable[[Any, str, dict[str, Any]], None]

# The names of the nets that were created in this process; a second net of a name gets a number.
net_names_used: set[str] = set()


def rename(names: Any, remap: dict[str, str]) -> None:
    """Rename blobs in a repeated field of a message, in place."""
    renamed = [remap.get(name, name) for name in names]
    del names[:]
    names.extend(renamed)


def remap_input(op: Any, blob_name_remapping: dict[str, str]) -> None:
    """Rename inputs of an OperatorDef, in place."""
    rename(op.input, blob_name_remapping)


def blob_names(net: Any) -> set[str]:
    """Return the names of all inputs and outputs, of the NetDef and of its operators."""
    names = {*net.external_input, *net.external_output}
    for operator in net.op:
        names.update(operator.input, operator.output)
    return names


def copy_operators(operators: Iterable[Any]) -> list[Any]:
    """Return copies of OperatorDefs."""
    return [copied(operator, "OperatorDef", "Net") for operator in operators]


def clone_net_def(
    net: Any,
    name: str,
    blob_remap: dict[Any, Any] | None = None,
    op_id_mask: Iterable[int] | None = None,
    remap_funcs: dict[str, RemapFunction] | None = None,
    update_external_list: bool = False,
) -> Any:
    """Return a copy of a NetDef under another name.

    blob_remap: new names of blobs. op_id_mask: the positions of the operators to copy; None is all.
    remap_funcs: further functions as in `DEFAULT_REMAP_FUNCS`, by operator type.
    update_external_list: compute the external inputs and outputs of the copy from its operators.

    Raises EnforceNotMet: a position is out of range (also an IndexError), or an operator that runs
    a net has none (also an AssertionError).
    """
    remap = {str(old): str(new) for old, new in (blob_remap or {}).items()}
    functions = {**DEFAULT_REMAP_FUNCS, **(remap_funcs or {})}
    clone = copied(net, "NetDef", "Net.Clone")
    set_fields(clone, "Net.Clone", name=name)
    count = len(net.op)
    ids = range(count) if op_id_mask is None else list(op_id_mask)
    if not all(-count <= i < count for i in ids):
        raise EnforceIndexError(
            f"op_id_mask names operators {ids}, and the net has {count}.", "Net.Clone"
        )
    operators = copy_operators(net.op[i] for i in ids)
    for operator in operators:
        remap_input(operator, remap)
        rename(operator.output, remap)
        if operator.type in functions:
            functions[operator.type](operator, name + "/" if name else "", blob_remap or {})
    del clone.op[:]
    clone.op.extend(operators)
    rename(clone.external_input, remap)
    rename(clone.external_output, remap)
    if update_external_list:
        _update_externals(clone)
    return clone


def _update_externals(net: Any) -> None:
    """Set external inputs to blobs read before written, outputs to blobs not read once written."""
    written: dict[str, None] = {}
    read: set[str] = set()
    inputs: dict[str, None] = {}
    for operator in net.op:
        for name in operator.input:
            (read.add if name in written else inputs.setdefault)(name)
        written.update(dict.fromkeys(operator.output))
    del net.external_input[:]
    net.external_input.extend(inputs)
    del net.external_output[:]
    net.external_output.extend(name for name in written if name not in read)


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

    Raises EnforceNotMet, also an AssertionError: an argument that should be a net is not.
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
    """Rename blobs in the net that an Argument holds, in place."""
    _rename_in(argument, "cloned_sub_net", blob_remap)


def _rename_in(argument: Any, name: str | None, blob_remap: dict[str, Any]) -> None:
    """Replace the net of an Argument by a clone.

    Caffe2 constructs a Net of it and another of the clone, and each takes a name.
    """
    net = argument.n
    check_text(net, (net.name, *blob_names(net)), "Net")
    old_name = new_name(net.name, net_names_used)
    clone = clone_net_def(net, name or f"{old_name}_remapped", blob_remap)
    clone.name = new_name(clone.name, net_names_used)
    net.CopyFrom(clone)


# By operator type, the functions of `clone_net_def` for operators that name blobs in arguments.
DEFAULT_REMAP_FUNCS: dict[str, RemapFunction] = {
    "RecurrentNetwork": recurrent_network_op_remap,
    "RecurrentNetworkGradient": recurrent_network_op_remap,
    "If": control_op_remap,
    "While": control_op_remap,
    "AsyncIf": control_op_remap,
}
