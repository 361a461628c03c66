# SPDX-License-Identifier: Apache-2.0
"""Elements found, sorted, counted: the greatest, the unique, histograms, percentiles."""
