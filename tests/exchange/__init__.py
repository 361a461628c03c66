# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.exchange`; the modules whose tests have another name::

- adapters: test_front, test_cupy_adapter
- arrow: matrix/test_arrow
- buffer_export: test_wrapper, test_lifetime
- consumers: test_consumers, test_torch_import_modes, test_torch_export
- conversion: test_front, test_one_copy
- cuda_interface_export, cuda_interface_import: test_cuda_frameworks, test_array_interface
- dlpack_capsule, dlpack_import, dlpack_producers, import_tensor: matrix/test_dlpack, test_peers,
  dlpack/test_capsule_import
- jax: matrix/test_jax, test_jax_modes
- keras: test_tensorflow_modes
- strings: test_front
- tensorflow: matrix/test_tensorflow, test_tensorflow_modes
- to_device: test_cupy_adapter, test_front
- torch_api: test_torch_import, test_torch_export
- *: test_array_method, test_concurrent_routes, test_cuda, test_cuda_frameworks,
  test_cuda_processes, test_cuda_rules, test_cuda_streams, test_cuda_waits, test_exit,
  test_exit_frameworks, test_jax_modes,
  test_leaks, test_leaks_of_routes, test_lifetime, test_one_copy, test_peers,
  test_tensorflow_modes
"""
