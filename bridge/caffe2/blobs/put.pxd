# SPDX-License-Identifier: Apache-2.0
from bridge.caffe2.blobs.core cimport BlobCore

cpdef put(BlobCore blob, object value)
