# SPDX-License-Identifier: Apache-2.0
"""Nets with their weights, read from files of any kind, and made into modules with inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.hardware import without_absent_gpus
from bridge.caffe2.base.message_text import read_net
from bridge.caffe2.base.names import listed
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.conversion.checkpoints import (
    NET,
    PredictorExport,
    kind_of_file,
    open_entries,
    predictor_export_in,
    unknown_file,
)
from bridge.caffe2.conversion.entries import Entry, blob_of
from bridge.caffe2.definitions.ssa import reads_and_writes
from bridge.caffe2.tensor.tensor import Tensor
from bridge.caffe2.workspaces.named_nets import run_init_net, run_net_once
from bridge.caffe2.workspaces.workspace import Workspace

_CALLER = "convert"
# Sizes that mobile_exporter gives to inputs, whatever they are.
_UNKNOWN = [1]


class UnknownInputError(EnforceValueError):
    """The caller gives sizes of an input that the net has not."""


class MissingSizesError(EnforceValueError):
    """Neither the caller nor the files give the sizes of an input."""


def net_in(path: str) -> Any:
    """Return the NetDef in a file, text or bytes.

    Raises EnforceNotMet: it cannot be read, or (also a ValueError) is not a net.
    """
    try:
        net = read_net(path, _CALLER)
    except EnforceValueError as cause:
        raise unknown_file(path) from cause
    # Bytes of other messages may parse as a NetDef, too, but for their contents.
    if not (net.op or net.external_input) or not all(operator.type for operator in net.op):
        raise unknown_file(path)
    return net


def net_of_file(path: str) -> Any:
    """Return the NetDef in a file: a net, or a predictor export.

    Raises EnforceNotMet: it cannot be read, or (also a ValueError) has no net.
    """
    kind = kind_of_file(path)
    if kind == NET:
        return net_in(path)
    with open_entries(path, kind) as opened:
        return _export_in(path, opened.entries).net


def _export_in(path: str, entries: Sequence[Entry]) -> PredictorExport:
    export = predictor_export_in(entries)
    if export is None:
        raise EnforceValueError(f"{path!r} has blobs, and no net.", _CALLER)
    return export


class NetSource:
    """A net and the blobs that its files have.

    path: of a net or a predictor export. init: of an init net, or a checkpoint with the weights.
    sizes: of inputs by name, and the names of their element types. Raises EnforceNotMet: a
    file cannot be read, is neither, or the init net failed.
    """

    def __init__(
        self, path: str, init: str | None, sizes: Mapping[str, tuple[Sequence[int], str]]
    ) -> None:
        self._path = path
        self._table = Workspace()
        self._input_sizes = sizes
        self._hints: dict[str, Tensor] = {}
        self.outputs: list[str] | None = None
        kind = kind_of_file(path)
        if kind == NET:
            self.net: Any = net_in(path)
        else:
            with open_entries(path, kind) as opened:
                export = _export_in(path, opened.entries)
                self._load([one for one in opened.entries if one.name in export.parameters])
            self.net, self.outputs = export.net, export.outputs or None
            if export.shapes is not None:
                hints = Workspace()
                run_net_once(hints, without_absent_gpus(export.shapes, _CALLER), _CALLER)
                self._hint(hints, export.inputs)
        if init is not None:
            init_kind = kind_of_file(init)
            if init_kind == NET:
                net = net_in(init)
                with wrapping(repr(init), _CALLER, EnforceNotMet):
                    run_init_net(self._table, net, _CALLER)
            else:
                with open_entries(init, init_kind) as opened:
                    self._load(opened.entries)
        self._hint(self._table, sizes)
        for name in sizes:
            self._table._blobs.pop(name, None)

    def _load(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._table._blobs[entry.name] = blob_of(entry)

    def _hint(self, table: Workspace, names: Any) -> None:
        """Keep the tensors of inputs, whose sizes may be those that the net expects."""
        for name in names:
            blob = table._blobs.get(name)
            tensor = None if blob is None else blob._tensor
            if tensor is not None and tensor.dtype() and list(tensor.sizes()) != _UNKNOWN:
                self._hints[name] = tensor

    def module(self) -> Any:
        """Return the net as a module; see `to_module`.

        Raises EnforceNotMet: a name of `sizes` is not read, or a blob is missing (also a KeyError).
        """
        from bridge.caffe2.modules.net_module import module_on

        module = module_on(self.net, self._table, None, self.outputs)
        unread = [name for name in self._input_sizes if name not in module.input_names]
        if unread:
            raise UnknownInputError(
                f"The net does not read {listed(unread)}; its inputs are "
                f"{listed(module.input_names)}.",
                _CALLER,
            )
        return module

    def example_inputs(self, names: Sequence[str]) -> tuple[Any, ...]:
        """Return tensors of zeros of the inputs' sizes.

        Raises MissingSizesError: they are not known. EnforceNotMet, also a ValueError: there are no
        inputs, or a type is unknown.
        """
        import torch

        if not names:
            raise MissingSizesError(
                "The init net sets every blob that the net reads. Say which of them are inputs.",
                _CALLER,
            )
        missing = [
            name for name in names if name not in self._input_sizes and name not in self._hints
        ]
        if missing:
            raise MissingSizesError(
                f"The net does not say what sizes its inputs {listed(missing)} have, or they are "
                "weights and their file is missing.",
                _CALLER,
            )
        inputs = []
        for name in names:
            if name in self._input_sizes:
                sizes, text = self._input_sizes[name]
                dtype = getattr(torch, text, None)
                if not isinstance(dtype, torch.dtype):
                    raise EnforceValueError(f"torch has no elements of {text!r}.", _CALLER)
            else:
                hint = self._hints[name]
                sizes, dtype = list(hint.sizes()), hint.dtype().torch
            inputs.append(torch.zeros(list(sizes), dtype=dtype))
        return tuple(inputs)

    def blobs(self) -> dict[str, Blob]:
        """Return the blobs that the net, an init net, creates when it is run without inputs.

        Raises EnforceNotMet: it reads blobs (also a ValueError), or an operator failed.
        """
        read, _ = reads_and_writes((one.input, one.output) for one in self.net.op)
        if read:
            raise EnforceValueError(
                f"{self._path!r} is a net that reads {listed(read)} and holds no weights. Convert "
                "its init net or checkpoint instead; with --init-net FILE this net becomes a .pt2 "
                "or .onnx file, or a folder with module.py.",
                _CALLER,
            )
        run_net_once(self._table, without_absent_gpus(self.net, _CALLER), _CALLER)
        return dict(self._table._blobs)
