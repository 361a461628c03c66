/* SPDX-License-Identifier: Apache-2.0
 *
 * A function of nanobind that takes tensors of any library, by bridge.h. Compiled as any module of
 * nanobind, with one folder of headers more: that which bridge.get_include() returns.
 */
#include <nanobind/nanobind.h>

#include <bridge.h>

namespace nb = nanobind;

// Return the largest element of float64 memory of any library, strides and dimensions.
static double largest(nb::handle x) {
    bridge_tensor t;
    if (bridge_take(x.ptr(), &t, BRIDGE_FLOAT64, BRIDGE_ANY_NDIM, BRIDGE_CONTIGUOUS) < 0)
        nb::raise_python_error();
    double found = t.numel > 0 ? static_cast<double *>(t.data)[0] : 0.0;
    for (int64_t i = 1; i < t.numel; i++)
        if (static_cast<double *>(t.data)[i] > found) found = static_cast<double *>(t.data)[i];
    int64_t numel = t.numel;
    bridge_release(&t);
    if (numel == 0) throw nb::value_error("the tensor has no elements");
    return found;
}

NB_MODULE(header_nanobind, module) {
    if (bridge_import() < 0) nb::raise_python_error();
    module.def("largest", &largest);
}
