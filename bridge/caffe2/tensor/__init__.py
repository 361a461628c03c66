# SPDX-License-Identifier: Apache-2.0
"""caffe2.Tensor."""
