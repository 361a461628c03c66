# SPDX-License-Identifier: Apache-2.0
"""Blobs as bytes: messages that Caffe2 reads and writes, and the databases that hold them."""
