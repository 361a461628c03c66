# SPDX-License-Identifier: Apache-2.0
"""Modules as torch's programs: exported with any batch size where the net allows it."""

from __future__ import annotations

import contextlib
import io
import warnings

import torch

from bridge.annotation import Any, BinaryIO
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.wrapped_errors import wrap_error

_CALLER = "convert"


def exported(module: Any, inputs: tuple[Any, ...]) -> torch.export.ExportedProgram:
    """Return a module as a program, for any size of the first dimension if that is possible.

    Raises EnforceNotMet: torch cannot export an operator; the error names it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program: torch.export.ExportedProgram | None = _with_any_batch(module, inputs)
        if program is not None:
            return program
        try:
            return torch.export.export(module, inputs)
        except EnforceNotMet:
            raise
        except Exception as cause:
            raise wrap_error("torch cannot export the net", _CALLER, cause) from cause


def exported_with_steps(module: Any, inputs: tuple[Any, ...]) -> torch.export.ExportedProgram:
    """Return `exported`, whose nodes have the position of their operator.

    It is in ``node.meta["custom"]["caffe2"]``; torch before 2.9 does not keep it. Raises alike.
    """
    from torch.fx import traceback

    if not hasattr(traceback, "annotate"):
        return exported(module, inputs)
    compute_step = module._compute_step

    def annotated(i: int, *args: Any) -> None:
        with traceback.annotate({"caffe2": module._steps[i].position}):
            compute_step(i, *args)

    module._compute_step = annotated
    try:
        with traceback.preserve_node_meta():
            return exported(module, inputs)
    finally:
        del module._compute_step


def _with_any_batch(module: Any, inputs: tuple[Any, ...]) -> Any:
    """Return the program with a dynamic first dimension of all inputs; None if it must be fixed.

    It is traced with a batch of two: torch takes the sizes 0 and 1 for constants.
    """
    batches = {x.shape[0] for x in inputs if x.dim()}
    if len(batches) != 1 or any(not x.dim() for x in inputs):
        return None
    examples = tuple(x.new_zeros((2, *x.shape[1:])) for x in inputs)
    shapes = tuple({0: torch.export.Dim.AUTO} for _ in inputs)
    try:
        with _silence():
            program = torch.export.export(module, examples, dynamic_shapes=shapes)
    except Exception:  # noqa: BLE001  whatever hinders it, the caller exports fixed sizes, and says why
        return None
    for node in program.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if node.name in program.graph_signature.user_inputs and isinstance(value.shape[0], int):
            return None
    return program


@contextlib.contextmanager
def _silence() -> Any:
    """Keep torch from writing of its attempts."""
    import logging

    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def write_pt2(module: Any, inputs: tuple[Any, ...], file: BinaryIO) -> None:
    """Write a module as torch.export.save does. Raises as `exported`."""
    program = exported(module, inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, file)


def write_onnx(module: Any, inputs: tuple[Any, ...], file: BinaryIO) -> None:
    """Write a module as an ONNX model in one file. Raises as `exported`; ImportError.

    Raises EnforceNotMet: ONNX has no operators for it.
    """
    program = exported(module, inputs)
    try:
        with warnings.catch_warnings(), _silence(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            model = torch.onnx.export(program, dynamo=True, verbose=False)
            assert model is not None
            data = model.model_proto.SerializeToString()
    except ImportError:
        raise
    except Exception as cause:
        raise wrap_error("torch cannot write the net as ONNX", _CALLER, cause) from cause
    file.write(data)
