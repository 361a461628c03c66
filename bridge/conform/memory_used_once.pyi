# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

def use_memory_once(spoil: bool) -> None: ...
