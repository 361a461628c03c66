# SPDX-License-Identifier: Apache-2.0
from bridge.c10.storage cimport Storage

cdef object torch_owner(Storage storage)
