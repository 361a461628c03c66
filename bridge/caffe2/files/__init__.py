# SPDX-License-Identifier: Apache-2.0
"""Files of serialized blobs: the databases minidb and LMDB, and blobs to and from them."""
