# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Steps of an LSTM on a few float32 states on the CPU: torch needs some twenty calls for one.

States are (n, d), gates (n, 4, d): input, forget, output and candidate, before their sigmoids.
Operands are row-major torch tensors; only their numbers of elements are checked. `lengths`, int32,
are those of the sequences, or None; `t`, int32, is the number of the step. The first operand is set
and returned, and those that are named beside it are set. For 4 × 32 a step takes 9 microseconds, by
torch 40. For more than some thousand states torch's vectors win.
"""

from libc.math cimport expf
from libc.stdint cimport int32_t, int64_t

from bridge.caffe2.operators.base.kernel_memory cimport floats_of


cdef inline float sigmoid(float x) noexcept nogil:
    return 1 / (1 + expf(-x))


cdef inline float tangent(float x) noexcept nogil:
    return 2 * sigmoid(2 * x) - 1


cdef const int32_t* numbers_of(object x, int64_t n) except? NULL:
    return NULL if x is None else <const int32_t *>floats_of(x, n)

# pyi: from torch import Tensor


def lstm_step(
    h: Tensor, c: Tensor, old_h: Tensor, old_c: Tensor, gates: Tensor, lengths: Tensor | None,
    t: Tensor, int64_t n, int64_t d, bint drop_states, float forget_bias
) -> Tensor:
    """Set `h` and `c` to the hidden and cell states after a step."""
    cdef float *hidden = floats_of(h, n * d)
    cdef float *cell = floats_of(c, n * d)
    cdef const float *before = floats_of(old_h, n * d)
    cdef const float *old = floats_of(old_c, n * d)
    cdef const float *gate = floats_of(gates, 4 * n * d)
    cdef const int32_t *length = numbers_of(lengths, n)
    cdef int32_t now = (<const int32_t *>floats_of(t, 1))[0]
    cdef float new
    cdef int64_t i, j
    for i in range(n):
        for j in range(d):
            if length == NULL or now < length[i]:
                new = sigmoid(gate[d + j] + forget_bias) * old[j] \
                    + sigmoid(gate[j]) * tangent(gate[3 * d + j])
                cell[j] = new
                hidden[j] = sigmoid(gate[2 * d + j]) * tangent(new)
            else:
                cell[j] = 0 if drop_states else old[j]
                hidden[j] = 0 if drop_states else before[j]
        hidden += d
        cell += d
        before += d
        old += d
        gate += 4 * d
    return h


def lstm_step_gradient(
    dhidden: Tensor, dcell: Tensor, dgates: Tensor, old_c: Tensor, gates: Tensor,
    lengths: Tensor | None, t: Tensor, new_c: Tensor, dh: Tensor, dc: Tensor, int64_t n, int64_t d,
    bint drop_states, float forget_bias
) -> Tensor:
    """Set the gradients of the states before a step and of its gates, from those after it."""
    cdef float *to_hidden = floats_of(dhidden, n * d)
    cdef float *to_cell = floats_of(dcell, n * d)
    cdef float *to_gate = floats_of(dgates, 4 * n * d)
    cdef const float *old = floats_of(old_c, n * d)
    cdef const float *gate = floats_of(gates, 4 * n * d)
    cdef const float *new = floats_of(new_c, n * d)
    cdef const float *of_hidden = floats_of(dh, n * d)
    cdef const float *of_cell = floats_of(dc, n * d)
    cdef const int32_t *length = numbers_of(lengths, n)
    cdef int32_t now = (<const int32_t *>floats_of(t, 1))[0]
    cdef float i, f, o, g, tanh_c, inner, given
    cdef int64_t k, j
    for k in range(n):
        for j in range(d):
            given = of_hidden[j]
            if length == NULL or now < length[k]:
                i = sigmoid(gate[j])
                f = sigmoid(gate[d + j] + forget_bias)
                o = sigmoid(gate[2 * d + j])
                g = tangent(gate[3 * d + j])
                tanh_c = tangent(new[j])
                inner = given * o * (1 - tanh_c * tanh_c) + of_cell[j]
                to_gate[j] = inner * g * i * (1 - i)
                to_gate[d + j] = inner * old[j] * f * (1 - f)
                to_gate[2 * d + j] = given * tanh_c * o * (1 - o)
                to_gate[3 * d + j] = inner * i * (1 - g * g)
                to_cell[j] = inner * f
                to_hidden[j] = 0
            else:
                to_gate[j] = to_gate[d + j] = to_gate[2 * d + j] = to_gate[3 * d + j] = 0
                to_cell[j] = 0 if drop_states else of_cell[j]
                to_hidden[j] = 0 if drop_states else given
        to_hidden += d
        to_cell += d
        to_gate += 4 * d
        old += d
        gate += 4 * d
        new += d
        of_hidden += d
        of_cell += d
    return dhidden
