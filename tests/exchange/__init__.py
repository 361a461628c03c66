# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.exchange`; of these modules the names of the files do not show it::

- adapters: test_front, test_cupy_adapter
- arrow: matrix/test_arrow
- cuda_interface: test_cuda_frameworks, test_array_interface
- cupy: test_cupy_adapter
- incoming, ingest, producers: matrix/test_dlpack, test_peers
- jax: matrix/test_jax, test_jax_modes
- keras: test_tensorflow_modes
- lend: test_torch_import, test_one_copy
- tensorflow: matrix/test_tensorflow, test_tensorflow_modes
- torch_state: test_torch_refused
- transfer: test_cupy_adapter, test_front
- values: test_front
- *: test_array_method, test_concurrent_routes, test_cuda, test_cuda_frameworks,
  test_cuda_processes, test_cuda_streams, test_exit, test_exit_frameworks, test_leaks,
  test_leaks_of_routes, test_lifetime, test_one_copy, test_peers
"""
