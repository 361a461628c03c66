# SPDX-License-Identifier: Apache-2.0
"""Tensors of other frameworks to TensorImpl and back. Knows no tensor class of the bridge.

Import: `import_tensor` takes any object; it calls `torch_import`, `numpy`, `dlpack_producers`,
`buffer_import`, `cuda_interface_import`, or the adapter that `adapters` lists.

Export: `torch_export`, `numpy`, `dlpack_capsule`, `buffer_export`, `cuda_interface_export`, and
the same adapters.
"""
