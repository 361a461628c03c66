# SPDX-License-Identifier: Apache-2.0
"""Object detection in images: boxes, regions of interest, proposals, keypoints."""
