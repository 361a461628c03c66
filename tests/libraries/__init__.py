# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.libraries`; the modules whose tests have another name::

- awkward, dask, mindspore, mlx, onnx, onnxruntime, openvino, paddle, pandas, polars, pyarrow,
  taichi, tinygrad, tvm_ffi, warp, xarray: test_libraries, test_columns
- jax, jaxlib: exchange/matrix/test_jax, exchange/test_jax_modes
- tensorflow: exchange/matrix/test_tensorflow, exchange/test_tensorflow_modes
- *: test_libraries, test_objects, test_columns, test_arrow_doors, test_isolated
"""
