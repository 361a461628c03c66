# SPDX-License-Identifier: Apache-2.0
"""Tensors of other frameworks to TensorImpl and back. Knows no tensor class of the bridge.

Import: `import_tensor` takes any object; it calls `torch_import`, `numpy`, the importer of a
library in `registry`, `dlpack_producers`, `buffer_import`, `array_doors`
or `arrow_import`. `fresh_memory` finds out what is a copy.

Export: `torch_export`, `numpy`, `dlpack_capsule`, `buffer_export`,
`arrow_export`, and the exporters of `registry`.
"""
