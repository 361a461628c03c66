# SPDX-License-Identifier: Apache-2.0
"""Conversion of Caffe2's files: checkpoints to and from files of others, nets to programs.

Checkpoints are converted blob by blob, as streams of `entries.Entry`: a source lists its entries
without reading their values, a target takes them one after the other.
"""
