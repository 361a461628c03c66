# SPDX-License-Identifier: Apache-2.0
"""Rows of numbers of few bits, with the scale and bias or the limits of each row.

Of bytes each row is followed by scale and bias: a value is byte * scale + bias. They are float32,
or float16 for types with HalfScaleBias. Of two or four bits the first number of a byte is in its
lowest bits, and scale and bias are float16; "Fake" rows have one byte per number, and float32 scale
and bias.

A row that is rounded randomly, of 1, 2, 4 or 8 bits, consists of the bits per number, the number of
unused numbers in the last byte, the minimum and the maximum (float32), and the numbers: the first
numbers in the lowest bits of all bytes, then the second numbers, and so on.
Codes of one or more bytes are indices into a list of values (QuantDecode), or linear steps.
Follows fused_rowwise_8bit_conversion_ops.h, fused_rowwise_nbit_conversion_ops.h,
fused_rowwise_random_quantization_ops.cc, quant_decode_op.h and byte_weight_dequant_op.h in
caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import Out, OutputCount, RandomGenerator, operator
from bridge.caffe2.operators.base.checks import FLOAT, INTS, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import along_rows, row_indices, select_rows
from bridge.caffe2.operators.quantized import byte_kernels

HALF = (c10.float16,)
BYTES = (c10.uint8,)


def _quantized(x: Tensor, half: bool) -> Tensor:
    """Return rows, the last dimension, as rows of bytes; `half`: scale and bias are float16."""
    rows = _rows(x).float()
    if rows.shape[1]:
        low, high = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
    else:
        # The initial values of Caffe2's search for the extremes.
        low = rows.new_full((rows.shape[0], 1), torch.finfo(rows.dtype).max)
        high = -low
    scale, bias = (high - low) / 255, low
    inverse = 255 / (high - low + 1e-8)
    if half:
        # Quantized with the rounded scale and bias, which are stored.
        bias = low.half()
        scale = ((high - bias.float()) / 255).half()
        scale = torch.where(scale == 0, 1.0, scale)
        inverse = 1 / scale.float()
    numbers = ((rows - bias.float()) * inverse).round().clamp(0, 255).to(torch.uint8)
    done = torch.cat([numbers, torch.cat([scale, bias], 1).view(torch.uint8)], 1)
    return done.reshape(*x.shape[:-1], done.shape[1])


def dequantized(rows: Tensor, half: bool = False, out: Out = None) -> Tensor:
    """Return rows of bytes, the last dimension, as float32; `half`: scale and bias are float16.

    Raises EnforceNotMet: the rows are too short.
    """
    tail = 4 if half else 8
    fits = rows.dim() > 0 and rows.shape[-1] > tail
    require(fits, f"rows are longer than their scale and bias, {tail} bytes", rows)
    *sizes, width = rows.shape
    width -= tail
    if not half and takes_kernels(rows, dtype=torch.uint8):
        made = rows.new_empty((*sizes, width), dtype=torch.float32) if out is None else out
        return run_kernel(byte_kernels.to_floats, rows, made, math.prod(sizes), width)
    ends = rows[..., width:].clone(memory_format=torch.contiguous_format)
    ends = ends.view(torch.float16 if half else torch.float32).float()
    return rows[..., :width].float() * ends[..., :1] + ends[..., 1:]


@operator("FloatToFused8BitRowwiseQuantized", gradient="none")
@operator("HalfFloatToFused8BitRowwiseQuantized", types=HALF, gradient="none")
def float_to_fused_8bit_rowwise_quantized(x: Tensor, *, out: Out = None) -> Tensor:
    """Quantize rows, the last dimension; scale and bias are float32."""
    if takes_kernels(x) and x.numel():
        *sizes, width = x.shape
        if out is None:
            out = x.new_empty((*sizes, width + 8), dtype=torch.uint8)
        return run_kernel(byte_kernels.to_bytes, x, out, math.prod(sizes), width)
    return _quantized(x, half=False)


@operator("FloatToFused8BitRowwiseQuantizedHalfScaleBias", gradient="none")
@operator("HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias", types=HALF, gradient="none")
def float_to_fused_8bit_rowwise_quantized_half_scale_bias(x: Tensor) -> Tensor:
    """Quantize rows, the last dimension; scale and bias are float16."""
    return _quantized(x, half=True)


@operator("Fused8BitRowwiseQuantizedToFloat", types=BYTES, gradient="none")
def fused_8bit_rowwise_quantized_to_float(x: Tensor, *, out: Out = None) -> Tensor:
    """Convert rows of bytes, the last dimension, to float32."""
    return dequantized(x, out=out)


@operator("Fused8BitRowwiseQuantizedToHalfFloat", types=BYTES, gradient="none")
def fused_8bit_rowwise_quantized_to_half_float(x: Tensor) -> Tensor:
    """Convert rows of bytes, the last dimension, to float16."""
    return dequantized(x).half()


# float32 in spite of the second name, as in Caffe2
@operator("Fused8BitRowwiseQuantizedHalfScaleBiasToFloat", types=BYTES, gradient="none")
@operator("Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat", types=BYTES, gradient="none")
def fused_8bit_rowwise_quantized_half_scale_bias_to_float(x: Tensor) -> Tensor:
    """Convert rows of bytes, the last dimension, whose scale and bias are float16, to float32."""
    return dequantized(x, half=True)


@operator("GatherFused8BitRowwise", types={"data": BYTES, "indices": INTS})
def gather_fused_8bit_rowwise(data: Tensor, indices: Tensor, *, out: Out = None) -> Tensor:
    """The rows at the indices as float32."""
    require(data.dim() == 2, "the data have two dimensions", data)
    rows = select_rows(data, indices).view(*indices.shape, data.shape[1])
    return dequantized(rows, out=out)


@operator("FloatToRowwiseQuantized8Bits", gradient="none")
def float_to_rowwise_quantized_8bits(x: Tensor) -> tuple[Tensor, Tensor]:
    """The bytes of X, with its sizes; output 1: scale and bias of each row."""
    require(x.dim() > 0 and x.numel() > 0, "X has elements, and at least one dimension", x)
    rows = x.reshape(x.shape[0], -1)
    low, high = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
    scale = torch.where(high - low > 1e-10, (high - low) / 255, 1.0)
    numbers = ((rows - low) / scale).round().clamp(0, 255).to(torch.uint8)
    return numbers.view(x.shape), torch.cat([scale, low], 1)


@operator("Rowwise8BitQuantizedToFloat", types={"x": BYTES}, gradient="none")
def rowwise_8bit_quantized_to_float(x: Tensor, scale_bias: Tensor) -> Tensor:
    """The bytes of X as float32, by scale and bias of each row."""
    fits = x.dim() > 0 and scale_bias.shape == (x.shape[0], 2)
    require(fits, "there is one scale and one bias per row", x, scale_bias)
    scale, bias = (along_rows(one, x) for one in scale_bias.unbind(1))
    return x.float() * scale + bias


_BINS = 200  # number of steps per range in the greedy search
_RATIO = 0.16  # part of the range by which it may shrink


def scale_of(low: Tensor, high: Tensor, bits: int) -> Tensor:
    """Return the scale of rows with values from `low` to `high`, rounded to float16."""
    scale = ((high - low) / (2**bits - 1)).half().float()
    return torch.where((high == low) | (scale == 0) | torch.isinf(1 / scale), 1.0, scale)


def numbers_of(x: Tensor, low: Tensor, high: Tensor, bits: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the numbers, scales and biases of rows with values from `low` to `high`."""
    low = low.half().float()
    scale = scale_of(low, high, bits)
    numbers = ((x - low) * (1 / scale)).round().clamp(0, 2**bits - 1)
    return numbers, scale, low


def error_of(x: Tensor, low: Tensor, high: Tensor, bits: int) -> Tensor:
    """Return the norm of the quantization error of each row for these ranges."""
    numbers, scale, bias = numbers_of(x, low, high, bits)
    return torch.linalg.vector_norm(x - (numbers * scale + bias), dim=1, keepdim=True)


def greedy_range(x: Tensor, low: Tensor, high: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Return ranges with a smaller error, found by greedy search.

    In each step the end is moved inwards that results in the smaller error. The result is the best
    range that is better than both of its neighbours, or the whole range if there is none.
    """
    step = (high - low) / _BINS
    least = _BINS * (1 - _RATIO) * step
    error = error_of(x, low, high, bits)
    best_low, best_high, best = low, high, torch.full_like(error, torch.inf)
    going = low + least < high
    while bool(going.any()):
        left, right = error_of(x, low + step, high, bits), error_of(x, low, high - step, bits)
        better = going & (error < left) & (error < right) & (error < best)
        best_low = torch.where(better, low, best_low)
        best_high = torch.where(better, high, best_high)
        best = torch.where(better, error, best)
        from_left = left < right
        low = torch.where(going & from_left, low + step, low)
        high = torch.where(going & ~from_left, high - step, high)
        error = torch.where(from_left, left, right)
        going = going & (low + least < high)
    return best_low, best_high


def packed(numbers: Tensor, bits: int) -> Tensor:
    """Return rows of numbers as rows of bytes."""
    per_byte = 8 // bits
    apart = numbers.to(torch.uint8).view(numbers.shape[0], numbers.shape[1] // per_byte, per_byte)
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8, device=numbers.device)
    return (apart << shifts).sum(2, dtype=torch.uint8)


def unpacked(rows: Tensor, bits: int) -> Tensor:
    """Return rows of bytes with scale and bias as rows of float32."""
    width = rows.shape[1] - 4
    ends = rows[:, width:].clone(memory_format=torch.contiguous_format)
    ends = ends.view(torch.float16).float()
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8, device=rows.device)
    numbers = (rows[:, :width, None] >> shifts) & (2**bits - 1)
    flat = numbers.reshape(rows.shape[0], width * (8 // bits)).float()
    return flat * ends[:, :1] + ends[:, 1:]


def _rows(x: Tensor) -> Tensor:
    """Return the rows of a tensor, its last dimension, as a matrix."""
    require(x.dim() > 0, "X has at least one dimension", x)
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _nbit_quantized(x: Tensor, bits: int, fake: bool, greedy: bool) -> Tensor:
    """Return rows of float32 or float16 as rows of bytes, with `fake` one per number."""
    require(x.dim() == 2 or not fake, "X has two dimensions", x)
    rows = _rows(x).float()
    require(rows.shape[1] > 0, "there are columns", x)
    per_byte = 1 if fake else 8 // bits
    require(rows.shape[1] % per_byte == 0, f"the columns are a multiple of {per_byte}", x)
    numbers, scale, bias = numbers_of(rows, *_range_of(rows, bits, greedy), bits)
    ends = torch.cat([scale, bias], 1)
    ends = (ends if fake else ends.half()).view(torch.uint8)
    done = torch.cat([numbers.to(torch.uint8) if fake else packed(numbers, bits), ends], 1)
    return done.view(*x.shape[:-1], done.shape[1])


def _range_of(rows: Tensor, bits: int, greedy: bool) -> tuple[Tensor, Tensor]:
    low, high = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
    return greedy_range(rows, low, high, bits) if greedy else (low, high)


def _dequantized(x: Tensor, bits: int) -> Tensor:
    rows = _rows(x)
    require(rows.shape[1] >= 4, "rows have four bytes of scale and bias", x)
    done = unpacked(rows, bits)
    return done.view(*x.shape[:-1], done.shape[1])


def _declare_quantized(name: str, types: Any, engine: str, bits: int) -> None:
    effects = ("values",) if engine else ()

    @operator(name, types=types, gradient="none", engine=engine, effects=effects)
    def quantize(x: Tensor) -> Tensor:
        """Quantize rows, the last dimension, from the least element to the greatest.

        A fake one has one byte per number. The engine GREEDY takes the range with the least error.
        """
        return _nbit_quantized(x, bits, "Fake" in name, bool(engine))


def _declare(bits: int) -> None:
    """Declare the operators on rows of numbers of `bits` bits."""
    for kind, types in (("Float", FLOAT), ("Half", (c10.float16,))):
        for fake in ("", "Fake"):
            for engine in ("", "GREEDY"):
                name = f"{kind}ToFused{bits}Bit{fake}RowwiseQuantized"
                _declare_quantized(name, types, engine, bits)

    @operator(f"Fused{bits}BitRowwiseQuantizedToFloat", types=c10.uint8, gradient="none")
    def to_float(x: Tensor) -> Tensor:
        """Convert quantized rows to float32."""
        return _dequantized(x, bits)

    @operator(f"Fused{bits}BitRowwiseQuantizedToHalf", types=c10.uint8, gradient="none")
    def to_half(x: Tensor) -> Tensor:
        """Convert quantized rows to float16."""
        return _dequantized(x, bits).half()


_declare(2)
_declare(4)


_HEAD = 10  # bytes before the numbers
_BITS = (1, 2, 4, 8)
_LEAST_GAP = 1e-8


@operator("FloatToFusedRandRowwiseQuantized", gradient="none", effects=("random",))
def float_to_fused_rand_rowwise_quantized(
    x: Tensor, *, bitwidth: int = 8, random: bool = True, generator: RandomGenerator = None
) -> Tensor:
    """Quantize the rows of a matrix with `bitwidth` bits per number.

    With `random` a value is rounded up with a probability equal to its fraction, otherwise to the
    nearest number.
    """
    require(bitwidth in _BITS, f"bitwidth is one of {_BITS}", bitwidth)
    require(x.dim() == 2, "X has two dimensions", x)
    rows, columns = x.shape
    per_byte = 8 // bitwidth
    width = -(-columns // per_byte)
    tail = width * per_byte - columns
    low, high = _extreme(x, -1), _extreme(x, 1)
    most = 2**bitwidth - 1
    # In float64, as in Caffe2: the precision decides how halves are rounded.
    gap = ((high - low) / most).double() + _LEAST_GAP
    steps = ((x - low).double() / gap).float()
    if random:
        chance = torch.rand(x.shape, generator=generator, dtype=torch.float32, device=x.device)
        steps = (steps + chance).floor()
    numbers = steps.round().nan_to_num(most).clamp(0, most).to(torch.uint8)
    numbers = torch.cat([numbers, numbers.new_zeros(rows, tail)], 1)
    packed = numbers.new_zeros(rows, width)
    for place in range(per_byte):
        packed = packed | numbers[:, place * width : (place + 1) * width] << place * bitwidth
    head = numbers.new_tensor([bitwidth, tail]).expand(rows, 2)
    return torch.cat([head, torch.cat([low, high], 1).view(torch.uint8), packed], 1)


def _extreme(x: Tensor, sign: int) -> Tensor:
    """Return the maximum of each row, with `sign` -1 the minimum; NaN is ignored.

    Of an empty row it is -infinity or infinity.
    """
    nothing = x.new_full((x.shape[0], 1), -torch.inf)
    found = torch.cat([nothing, torch.where(x.isnan(), -torch.inf, x * sign)], 1)
    return found.amax(1, keepdim=True) * sign


@operator("FusedRandRowwiseQuantizedToFloat", types=c10.uint8, gradient="none", effects=("values",))
def fused_rand_rowwise_quantized_to_float(x: Tensor) -> Tensor:
    """Convert such rows to a matrix; the first row specifies the bits per number."""
    require(x.dim() == 2, "X has two dimensions", x)
    require(x.numel() > 0 and x.shape[1] >= _HEAD, f"a row has at least {_HEAD} bytes", x)
    bits, tail = x[0, :2].tolist()
    require(bits in _BITS, f"the number of bits is one of {_BITS}", bits)
    packed = x[:, _HEAD:]
    columns = packed.shape[1] * (8 // bits) - tail
    require(columns >= 0, "no more numbers are missing than a byte has", tail)
    ends = x[:, 2:_HEAD].clone(memory_format=torch.contiguous_format).view(torch.float32)
    low, high = ends[:, :1], ends[:, 1:]
    most = 2**bits - 1
    gap = ((high - low) / most).double() + _LEAST_GAP
    numbers = torch.cat([(packed >> shift) & most for shift in range(0, 8, bits)], 1)
    return (low.double() + gap * numbers[:, :columns].double()).float()


CODES = (c10.uint8, c10.uint16, c10.int32)


def _codes(codes: Tensor, book: Tensor) -> Tensor:
    """Return the codes as indices into the codebook, flat."""
    return row_indices(codes.to(torch.int64), book.shape[0])


@operator("QuantDecode", types={"codes": CODES}, inputs="2-*", gradient="$Gradient i* g* > 0")
def quant_decode(codebook: Tensor, *codes: Tensor, outputs: OutputCount) -> list[Tensor]:
    """The values of the codebook at the codes in each further input.

    Raises EnforceNotMet: a code is out of range.
    """
    require(outputs == len(codes), "there is one output per input of codes", outputs, len(codes))
    book = codebook.reshape(-1)
    return [book.index_select(0, _codes(one, book)).reshape(one.shape) for one in codes]


@operator(
    "QuantDecodeGradient", types={"codes_and_gradients": (*CODES, c10.float32)}, inputs="2n+1"
)
def quant_decode_gradient(codebook: Tensor, *codes_and_gradients: Tensor) -> Tensor:
    """(codebook, all codes, gradients of all outputs) -> the gradient of the codebook."""
    book = codebook.reshape(-1)
    n = len(codes_and_gradients) // 2
    result = torch.zeros_like(book)
    for given, dy in zip(codes_and_gradients[:n], codes_and_gradients[n:], strict=True):
        require(not given.is_floating_point(), "codes are integers", given.dtype)
        require(dy.dtype == torch.float32, "gradients are float32", dy.dtype)
        require(dy.numel() == given.numel(), "there is one gradient per code", dy, given)
        result = result.index_add(0, _codes(given, book), dy.reshape(-1))
    return result.reshape(codebook.shape)


@operator("ByteWeightDequant", types=c10.uint8)
def byte_weight_dequant(
    x: Tensor,
    *,
    min: float = -3.0,
    max: float = 3.0,
    shape: list[int] | None = None,
    out: Out = None,
) -> Tensor:
    """Bytes as float32 from `min` to `max`, with the sizes `shape`.

    Raises EnforceNotMet: there are fewer bytes than elements.
    """
    sizes = shape or []
    require(all(size >= 0 for size in sizes), "no size is negative", sizes)
    n = math.prod(sizes)
    require(n <= x.numel(), f"there are bytes for the sizes {sizes}", x)
    values = x.reshape(-1)[:n].float().reshape(sizes) / 255 * (max - min)
    return torch.add(values, min, out=out)
