# SPDX-License-Identifier: Apache-2.0
"""Operators of several processes: stores, common worlds, collectives, on `torch.distributed`.

The processes meet in a store (a folder that all see, or a Redis server), and form common worlds: a
process group of torch each, by gloo or NCCL. A collective works on the memory of the blobs
themselves. Follows caffe2/contrib/gloo, caffe2/distributed and caffe2/operators/communicator_op.cc,
PyTorch 1.8.1.
"""
