# SPDX-License-Identifier: Apache-2.0
"""Nets written as .pt2 and .onnx files, and as a folder with Python source and weights."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec, module_from_spec, spec_from_file_location

import torch

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.conversion.entries import Entry
from bridge.caffe2.conversion.module_source import ModuleSource
from bridge.caffe2.conversion.net_programs import write_onnx, write_pt2
from bridge.caffe2.conversion.safetensors_files import write_safetensors
from bridge.caffe2.files.whole_file import WholeFile, encoded, whole_folder, write_whole

_CALLER = "convert"
_SOURCE, _WEIGHTS = "module.py", "weights.safetensors"
# The files of a folder that may be replaced: our own, and those that Python adds.
_FOLDER_FILES = frozenset({_SOURCE, _WEIGHTS, "__pycache__"})
# Wide enough for the rounding of float32: torch computes some operators otherwise when it exports.
_TOLERANCE = 1e-5


def write_net(path: str, kind: str, module: Any, inputs: tuple[Any, ...], title: str) -> None:
    """Write a NetModule as a program of a kind: "pt2", "onnx" or "folder".

    inputs: tensors of the inputs' sizes. title: the source of the net. A file at the path is
    replaced when all is on the disk. Raises EnforceNotMet: torch cannot export the net, a package
    is missing, or the file cannot be written (also an OSError).
    """
    if kind == "onnx":
        _require("onnxscript", "ONNX files")
    with wrapping(f"{path!r} cannot be written, and is unchanged", _CALLER, OSError):
        if kind == "folder":
            _write_folder(path, module, inputs, title)
        else:
            with WholeFile(path) as file:
                (write_pt2 if kind == "pt2" else write_onnx)(module, inputs, file)


def _require(package: str, what: str) -> None:
    if find_spec(package) is None:
        raise EnforceNotMet(f"{what} need the package {package}: pip install {package}.", _CALLER)


def _write_folder(path: str, module: Any, inputs: tuple[Any, ...], title: str) -> None:
    refusal = f"{path!r} has other files than {_SOURCE} and {_WEIGHTS}, and is not replaced."
    with whole_folder(path, _FOLDER_FILES, refusal, _CALLER) as folder:
        source = ModuleSource(module, inputs, title)
        os.mkdir(folder)
        write_whole(os.path.join(folder, _SOURCE), encoded(source.text))
        entries = [_entry(name, tensor) for name, tensor in source.weights.items()]
        with WholeFile(os.path.join(folder, _WEIGHTS)) as file:
            write_safetensors(file, entries, entries)
        _compare(folder, module, inputs)
        shutil.rmtree(os.path.join(folder, "__pycache__"), ignore_errors=True)


def _entry(name: str, tensor: torch.Tensor) -> Entry:
    plain = tensor.detach().cpu().contiguous()

    def chunks() -> Iterator[memoryview]:
        if plain.numel():
            yield plain.reshape(-1).view(torch.uint8).numpy().data

    return Entry(name, str(plain.dtype)[6:], list(plain.shape), plain.nbytes, chunks)


def _compare(folder: str, module: Any, inputs: tuple[Any, ...]) -> None:
    """Run the written program, and the net; both must give the same.

    Raises EnforceNotMet: they do not.
    """
    _require("safetensors", "Folders with a module")
    spec = spec_from_file_location("written_module", os.path.join(folder, _SOURCE))
    assert spec is not None
    assert spec.loader is not None
    written = module_from_spec(spec)
    spec.loader.exec_module(written)
    generator = torch.Generator().manual_seed(0)
    values = [
        torch.randn(x.shape, generator=generator).to(x.dtype) if x.is_floating_point() else x
        for x in inputs
    ]
    results = []
    for one in (module, written.load()):
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            found = one(*values)
        results.append(found if isinstance(found, tuple) else (found,))
    for name, wanted, found in zip(module.output_names, *results, strict=True):
        scale = float(wanted.abs().max()) if wanted.numel() else 0.0
        if found.shape != wanted.shape or not torch.allclose(
            found, wanted, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True
        ):
            raise EnforceNotMet(
                f"The source that was written does not compute {name!r} as the net does; please "
                "report this net.",
                _CALLER,
            )
