# SPDX-License-Identifier: Apache-2.0
"""What test modules share: an independent DLPack peer, and one look at every accessor."""
