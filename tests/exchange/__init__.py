# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.exchange`; the modules whose tests have another name::

- array_doors: test_array_method, test_array_interface, test_cuda_frameworks
- arrow_layout, arrow_structures: test_arrow_import, matrix/test_arrow
- buffer_export: test_wrapper, test_lifetime
- consumers: test_consumers, test_torch_import_modes, test_torch_export
- conversion: test_front, test_one_copy
- dlpack_capsule, dlpack_import, dlpack_producers, import_tensor, protocols: matrix/test_dlpack,
  test_peers, dlpack/test_capsule_import
- library_fit: libraries/test_libraries
- refusal: test_doors
- registry: test_register
- fresh_memory: test_doors
- nested_strings: test_front
- device_memory: test_device_memory, libraries/test_cupy, test_front
- torch_api: test_torch_import, test_torch_export
- torch_settings: caffe2/execution/test_function_operator
- *: test_array_interface, test_array_method, test_arrow_libraries, test_concurrent_routes,
  test_cuda, test_cuda_frameworks, test_cuda_out_of_memory, test_cuda_processes, test_cuda_rules,
  test_cuda_streams, test_cuda_threads, test_cuda_waits,
  test_doors, test_exit, test_exit_frameworks, test_jax_modes, test_leaks, test_leaks_of_routes,
  test_lifetime, test_one_copy, test_peers, test_register,
  test_tensorflow_modes, test_torch_subclasses
"""
