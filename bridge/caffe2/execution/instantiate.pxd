# SPDX-License-Identifier: Apache-2.0
from bridge.caffe2.execution.operator_core cimport DefinitionCore, OperatorCore

cdef OperatorCore instantiate(DefinitionCore definition, object table, dict blobs, list new)
