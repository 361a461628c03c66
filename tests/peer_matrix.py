# SPDX-License-Identifier: Apache-2.0
"""What `from_dlpack` of each library makes of hard cases: the table of docs/peers.md.

    python -m tests.peer_matrix            print it
    python -m tests.peer_matrix --write    and put it into docs/peers.md

Each cell runs in a process of its own, since some end it. Takes some minutes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "peers.md"
MARK = "<!-- measured -->"

# What to pass on, and the values it has; None: the only right answer is an error.
CASES = {
    "negative strides": ("np.arange(6.0)[::-1]", "np.arange(6.0)[::-1]"),
    "read-only NumPy array": ("frozen()", "np.arange(6.0)"),
    "foreign byte order": ("np.arange(6.0).astype('>f8')", "np.arange(6.0)"),
    "`complex.conj().imag` of torch": (
        "torch.tensor([1 + 2j, 3 + 4j]).conj().imag",
        "np.array([-2.0, -4.0])",
    ),
    "tensor that requires grad": ("torch.ones(3, requires_grad=True)", "None"),
    "storage smaller than its tensor": ("shrunk()", "None"),
    "`int64` beyond 32 bits": ("torch.tensor([2**40 + 1])", "np.array([2**40 + 1])"),
    "JAX array, which is immutable": ("jax.numpy.arange(6.0)", "np.arange(6.0)"),
    "string of TensorFlow": ("tf.constant('text')", "None"),
}

CONSUMERS = {
    "bridge": ("import bridge", "bridge.from_dlpack(x)", "bridge.to_numpy(y)"),
    "torch": ("import torch", "torch.from_dlpack(x)", "y.resolve_neg().numpy()"),
    "NumPy": ("", "np.from_dlpack(x)", "y"),
    "JAX": ("import jax", "jax.dlpack.from_dlpack(x)", "np.asarray(y)"),
    "TensorFlow": (
        "import tensorflow as tf",
        "tf.experimental.dlpack.from_dlpack(x.__dlpack__())",
        "y.numpy()",
    ),
    "tvm-ffi": ("import tvm_ffi", "tvm_ffi.from_dlpack(x)", "np.from_dlpack(y)"),
}

PROGRAM = """
import numpy as np
address = lambda producer: np.asarray(producer).ctypes.data
{imports}
def frozen():
    x = np.arange(6.0)
    x.flags.writeable = False
    return x
def shrunk():
    x = torch.ones(1 << 24)
    x.untyped_storage().resize_(0)
    return x
x = {source}
expected = {expected}
try:
    y = {call}
except Exception as error:
    print("refused")
    raise SystemExit
if expected is None:
    print("right" if {strings} else "**taken**")
    raise SystemExit
values = {values}
if not np.array_equal(values, expected):
    print("**wrong values**")
elif {immutable} and {writable}:
    print("**writable**")
else:
    print("right")
"""

# How a consumer's result is written to, if it can be; JAX's and TensorFlow's cannot.
WRITABLE = {
    "bridge": "not y.readonly",
    "torch": "y.data_ptr() == address(x)",
    "NumPy": "y.flags.writeable",
    "tvm-ffi": "np.from_dlpack(y).flags.writeable",
}


def cell(case: str, consumer: str) -> str:
    """Return what a consumer makes of a case."""
    source, expected = CASES[case]
    imports, call, values = CONSUMERS[consumer]
    needed = {"torch.": "import torch", "jax.": "import jax", "tf.": "import tensorflow as tf"}
    lines = {imports, *(line for name, line in needed.items() if name in source)}
    lines |= {"import torch"} if source == "shrunk()" else set()
    program = PROGRAM.format(
        imports="\n".join(sorted(filter(None, lines))),
        source=source,
        expected=expected,
        call=call,
        values=values,
        immutable=source in ("frozen()", "jax.numpy.arange(6.0)"),
        # Strings have no memory to share; a copy of them is as right as an error.
        strings="y.tolist() == b'text'"
        if (consumer, "text" in source) == ("bridge", True)
        else False,
        writable=WRITABLE.get(consumer, "False"),
    )
    command = [sys.executable, "-W", "ignore", "-c", program]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "**hangs**"
    if done.returncode < 0:
        return "**crash**"
    answer = done.stdout.strip().splitlines()
    if not answer:
        raise RuntimeError(f"{case}, {consumer}: {done.stderr}")
    return answer[-1]


def table() -> str:
    """Return the table."""
    rows = [["", *CONSUMERS]]
    for case in CASES:
        rows.append([case, *(cell(case, consumer) for consumer in CONSUMERS)])
        print(rows[-1], flush=True)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|---" * len(rows[0]) + "|")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table; write it to the page if asked."""
    found = table()
    print(found)
    if "--write" in sys.argv:
        before, _, after = PAGE.read_text(encoding="utf-8").split(MARK)
        PAGE.write_text(f"{before}{MARK}\n{found}{MARK}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
