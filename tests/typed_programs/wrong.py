# SPDX-License-Identifier: Apache-2.0
"""A user's mistakes: type checkers refuse each line that says so, and no other."""

import torch

import bridge
from bridge import at

x = at.zeros(2)
bridge.from_dlpack(3)  # wrong
bridge.from_dlpack("abc")  # wrong
bridge.from_dlpack([1.0, 2.0])  # wrong
bridge.from_dlpack(x, device=1.5)  # wrong
bridge.asarray(object())  # wrong
bridge.convert(x)  # wrong
bridge.nosuch(x)  # wrong
at.nosuch(x)  # wrong
x.nosuch()  # wrong
at.softmax(x, "last")  # wrong
x.topk()  # wrong
x.clamp(minimum=0)  # wrong
text: str = at.relu(x)  # wrong
text = x.sum()  # wrong
torch.softmax(x, -1)  # wrong
