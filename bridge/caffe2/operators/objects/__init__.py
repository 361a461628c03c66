# SPDX-License-Identifier: Apache-2.0
"""Blobs that hold objects and strings: counters, maps, mutexes, indexes, statistics."""
