/* SPDX-License-Identifier: Apache-2.0
 *
 * A function of pybind11 that takes tensors of any library, by bridge.h.
 *
 *     c++ -std=c++17 -shared -fPIC $(python3 -m pybind11 --includes) \
 *         -I $(python3 -c "import bridge; print(bridge.get_include())") \
 *         header_pybind11.cpp -o header_pybind11.so
 */
#include <pybind11/pybind11.h>

#include <bridge.h>

namespace py = pybind11;

// Release the tensor at the end of the block, after an exception too.
struct Taken : bridge_tensor {
    Taken(py::handle x, int type, int ndim, int flags) {
        if (bridge_take(x.ptr(), this, type, ndim, flags) < 0) throw py::error_already_set();
    }
    ~Taken() { bridge_release(this); }
    Taken(const Taken &) = delete;
};

// Return x + y, vectors of float32 of any library, as a new tensor.
static py::object add(py::object x, py::object y) {
    Taken a(x, BRIDGE_FLOAT32, 1, 0), b(y, BRIDGE_FLOAT32, 1, 0);
    if (a.shape[0] != b.shape[0]) throw py::value_error("the vectors have different sizes");
    bridge_tensor out;
    PyObject *result = bridge_new(BRIDGE_FLOAT32, 1, a.shape, &out);
    if (result == nullptr) throw py::error_already_set();
    for (int64_t i = 0; i < a.shape[0]; i++)
        static_cast<float *>(out.data)[i] = static_cast<float *>(a.data)[i * a.strides[0]] +
                                            static_cast<float *>(b.data)[i * b.strides[0]];
    bridge_release(&out);
    return py::reinterpret_steal<py::object>(result);
}

PYBIND11_MODULE(header_pybind11, module) {
    if (bridge_import() < 0) throw py::error_already_set();
    module.def("add", &add);
}
