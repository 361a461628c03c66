# SPDX-License-Identifier: Apache-2.0
"""Elements searched, sorted, counted and encoded: top k, buckets, histograms, percentiles."""
