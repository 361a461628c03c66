# SPDX-License-Identifier: Apache-2.0
"""Detection in images: boxes, regions, proposals, keypoints."""
