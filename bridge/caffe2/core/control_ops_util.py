# SPDX-License-Identifier: Apache-2.0
"""The operators If and While around nets, whose own blobs are theirs alone.

A net runs in a workspace of its own, by the operator Do: blobs of the outer scope are bound into
it, all others are created there. Follows caffe2/python/control_ops_util.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Collection

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.core.net import Net
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.ssa import get_ssa, get_undefined_blobs

__all__ = ["add_if_op", "add_while_op", "get_external_blob_names"]


def get_external_blob_names(net: Any, lexical_scope: Collection[str]) -> tuple[set[str], set[str]]:
    """Return the names of the outer blobs that a net reads, and of those that it writes.

    lexical_scope: the names of all outer blobs. Raises EnforceNotMet, also an AssertionError: the
    net reads a blob that is neither one of them nor its own.
    """
    scope = {str(name) for name in lexical_scope}
    versions, _ = get_ssa(net.Proto())
    read = {str(name) for name in get_undefined_blobs(versions)}
    if not read <= scope:
        raise EnforceAssertionError(
            f"Input blob {sorted(read - scope)[0]} is undefined", "get_external_blob_names"
        )
    return read, {name for op in net.Proto().op for name in op.output if name in scope}


def _references(names: Collection[str]) -> list[BlobReference]:
    return [BlobReference(name) for name in sorted(names)]


class _Inner:
    """A net within the operator Do: the blobs it reads and writes outside, and its workspace."""

    def __init__(
        self, outer: Any, net: Any, suffix: str, read: set[str], written: set[str], copy: bool
    ) -> None:
        self.read, self.written = read, written
        self.workspace = outer.NextScopedBlob(f"{outer.Name()}/{suffix}")
        self.net = Net(f"do_{suffix}_net")
        inputs, outputs = _references(read), _references(written)
        names = [str(blob) for blob in (*inputs, *outputs)]
        bound = sorted(read | written)
        self.net.Do(
            [*inputs, self.workspace],
            [*outputs, self.workspace],
            net=net.Proto(),
            inner_blobs=bound,
            outer_blobs_idx=[names.index(name) for name in bound],
            **({"copy_external_blobs": True} if copy else {}),
        )
        self.net.AddExternalOutput(*outputs, self.workspace)


def _add(
    outer: Any, op_type: str, cond: Any, inner: list[_Inner], arguments: dict[str, Any]
) -> None:
    """Add If or While around nets to the net `outer`."""
    read = set().union(*(one.read for one in inner))
    written = set().union(*(one.written for one in inner))
    workspaces = [one.workspace for one in inner]
    outputs = [*_references(written), *workspaces]
    for blob in workspaces:
        outer.CreateScope([], [blob])
    inputs = [cond, *_references(read), *workspaces]
    getattr(outer, op_type)(inputs, outputs, **arguments)
    outer.AddExternalOutput(*outputs)


def add_if_op(
    if_net: Any, cond_blob: Any, lexical_scope: Any, then_net: Any, else_net: Any = None
) -> None:
    """Add If to a net, which runs one of two nets.

    cond_blob: one bool. lexical_scope: the names of all outer blobs that the two may use; blobs of
    other names are their own. Raises EnforceNotMet, also an AssertionError: a net reads a blob that
    does not exist.
    """
    inner, arguments = [], {}
    for kind, net in (("then", then_net), ("else", else_net)):
        if net:
            names = get_external_blob_names(net, lexical_scope)
            inner.append(_Inner(if_net, net, f"workspace_if_{kind}", *names, copy=False))
            arguments[f"{kind}_net"] = inner[-1].net.Proto()
    _add(if_net, "If", cond_blob, inner, arguments)


def add_while_op(
    while_net: Any,
    cond_blob: Any,
    lexical_scope: Any,
    loop_body_net: Any,
    condition_body_net: Any = None,
) -> None:
    """Add While to a net, which runs a net as long as a condition holds.

    cond_blob: one bool. lexical_scope: see `add_if_op`. condition_body_net: a net that computes
    `cond_blob` before each run. Raises EnforceNotMet, also an AssertionError: a net reads a blob
    that does not exist, or `condition_body_net` does not write `cond_blob`.
    """
    read, written = get_external_blob_names(loop_body_net, lexical_scope)
    # Blobs that the body writes are read, too: it may not run even once.
    body = _Inner(
        while_net, loop_body_net, "workspace_loop_body", read | written, written, copy=True
    )
    inner, arguments = [body], {"loop_net": body.net.Proto()}
    condition = str(cond_blob)
    if condition_body_net:
        if all(condition not in op.output for op in condition_body_net.Proto().op):
            raise EnforceAssertionError(
                "Condition net does not write into condition blob", "add_while_op"
            )
        read, written = get_external_blob_names(condition_body_net, lexical_scope)
        written.add(condition)
        inner.append(
            _Inner(while_net, condition_body_net, "workspace_loop_cond", read, written, copy=False)
        )
        arguments["cond_net"] = inner[-1].net.Proto()
        if condition not in {str(name) for name in lexical_scope}:
            while_net.ConstantFill([], cond_blob, dtype=DataType.BOOL, value=False)
    _add(while_net, "While", cond_blob, inner, arguments)
