# SPDX-License-Identifier: Apache-2.0
"""Measure what ways to share memory between processes do in ten situations: docs/processes.md.

``python tools/compare_processes.py [bridge | torch | SharedMemory | ray ...]`` prints a line for
each. Every situation runs in an interpreter of its own, so that a crash or a hang is a result.
"""

from __future__ import annotations

import os
import subprocess
import sys

TIME_LIMIT_S = 60

# What each peer does first: `make()` shares four float64, `give(q)` sends them, `take(q)` receives.
PRELUDE = """
import ctypes, gc, mmap, multiprocessing, os, signal, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
fork = multiprocessing.get_context("fork")
def child(run):
    pid = os.fork()
    if pid == 0:
        try:
            run(); os._exit(0)
        except BaseException as error:
            print(type(error).__name__); sys.stdout.flush(); os._exit(1)
    return pid
def status(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
PEERS = {
    "bridge": """
import bridge
def make(): return bridge.share(np.arange(4.0))
def array(x): return x.value.numpy()
def received(x): return x.value.numpy()
""",
    "torch": """
import torch, torch.multiprocessing
def make(): return torch.arange(4.0).double().share_memory_()
def array(x): return x.numpy()
received = array
""",
    "SharedMemory": """
from multiprocessing.shared_memory import SharedMemory
def make():
    x = SharedMemory(create=True, size=32)
    array(x)[:] = np.arange(4.0)
    return x
def array(x): return np.ndarray(4, "float64", buffer=x.buf)
received = array
""",
}
SITUATIONS = {
    "the array is used after its handle was closed": """
x = make(); a = array(x)
if hasattr(x, "close"): x.close()
del x; gc.collect()
print("right" if a[:4].tolist() == [0, 1, 2, 3] else "wrong")
""",
    "another process writes to it by ctypes": """
r = fork.SimpleQueue()
def run():
    y = r.get(); a = received(y)
    ctypes.memset(a.ctypes.data, 1, 1)
if PEER != "bridge": pid = child(run)
x = make()
if PEER == "bridge":
    import subprocess
    done = subprocess.run([sys.executable, "-c",
        "import bridge, ctypes, sys; x = bridge.attach(sys.argv[1]);"
        "ctypes.memset(x.data_ptr(), 1, 1)", x.path])
    print("refused by the kernel" if done.returncode == -11 else "written")
else:
    r.put(x); ended = status(pid)
    print("written" if array(x)[0] != 0 else f"refused ({ended})")
""",
    "another process shrinks it": """
x = make(); a = array(x)
maps = [line.split() for line in open("/proc/self/maps")]
at = a.ctypes.data
found = [m for m in maps if int(m[0].split("-")[0], 16) <= at < int(m[0].split("-")[1], 16)][0]
files = [f"/proc/self/fd/{n}" for n in os.listdir("/proc/self/fd")]
files = [f for f in files if os.path.exists(f) and str(os.stat(f).st_ino) == found[4]]
if not files and found[-1].startswith("/dev/shm"): files = [found[-1]]
pid = child(lambda: os.truncate(files[0], 0))
if status(pid): print("refused")
else:
    sys.stdout.flush()
    print("read", a[0])
""",
    "a message of a sender that is stopped": """
q, go = fork.SimpleQueue(), fork.SimpleQueue()
def run():
    x = make(); q.put(x); go.get()
pid = child(run)
while q.empty(): time.sleep(0.01)
os.kill(pid, signal.SIGSTOP)
signal.alarm(5)
def late(*a): print("waits for it"); sys.stdout.flush(); os.kill(pid, signal.SIGKILL); os._exit(0)
signal.signal(signal.SIGALRM, late)
a = received(q.get())
print("arrives")
os.kill(pid, signal.SIGKILL)
""",
    "a message whose sender was killed": """
q = fork.SimpleQueue()
def run():
    x = make(); q.put(x); os.kill(os.getpid(), signal.SIGKILL)
status(child(run))
try:
    x = q.get()
    print("arrives", received(x)[:4].tolist())
except BaseException as error: print(type(error).__name__)
""",
    "the maker is killed: what is left": """
before = set(os.listdir("/dev/shm"))
def run():
    x = make(); time.sleep(0.2); os.kill(os.getpid(), signal.SIGKILL)
status(child(run)); time.sleep(0.5)
left = set(os.listdir("/dev/shm")) - before
print("nothing" if not left else f"{len(left)} file in /dev/shm")
for name in left: os.unlink("/dev/shm/" + name)
""",
    "threads and processes that it starts": """
def count():
    tasks = len(os.listdir("/proc/self/task"))
    me = str(os.getpid())
    children = 0
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try: children += open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1] == me
            except OSError: pass
    return tasks, children
before = count(); q = fork.SimpleQueue(); x = make(); q.put(x); after = count()
print(f"{after[0] - before[0]} threads, {after[1] - before[1]} processes")
""",
    "a reader in an unrelated process ends": """
import subprocess
x = make()
code = {
    "bridge": "import bridge, sys; bridge.attach(sys.argv[1])",
    "SharedMemory": "from multiprocessing.shared_memory import SharedMemory as S; import sys;"
        "x = S(sys.argv[1])",
}.get(PEER)
if code is None: print("there is none")
else:
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, getattr(x, "path", None) or x.name],
        stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    kept = PEER == "bridge" or x.name.lstrip("/") in os.listdir("/dev/shm")
    print("nothing happens" if kept else "the block is removed")
""",
    "a name is all that an unrelated process needs": {
        "bridge": "yes", "torch": "no", "SharedMemory": "yes: bytes", "ray": "no: an actor's name",
    },
    "libraries whose tensors come out": {
        "bridge": "all that `convert` knows", "torch": "torch", "SharedMemory": "bytes",
        "ray": "NumPy, read-only",
    },
}  # fmt: skip
# Ray has actors instead of handles and queues, so it has programs of its own.
PEERS["ray"] = """
import glob, logging, ray
def init():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.FATAL)
def make(): return ray.put(np.arange(65536.0))
@ray.remote
class Sender:
    def pid(self): return os.getpid()
    def made(self): self.x = make(); return [self.x]
    def read(self, xs): return ray.get(xs[0])[:4].tolist()
    def write(self, xs): ctypes.memset(ray.get(xs[0]).ctypes.data, 1, 1)
def late(*a): print("waits for it"); sys.stdout.flush(); os._exit(0)
def from_sender(signalled):
    init()
    sender = Sender.remote()
    (x,) = ray.get(sender.made.remote())
    os.kill(ray.get(sender.pid.remote()), signalled)
    time.sleep(0.5); signal.signal(signal.SIGALRM, late); signal.alarm(10)
    try: ray.get(x); print("arrives")
    except Exception as error: print(type(error).__name__)
def servers(): return sum(
    open(f"/proc/{n}/comm").read().strip() in ("raylet", "gcs_server")
    for n in os.listdir("/proc") if n.isdigit() and os.path.exists(f"/proc/{n}/comm"))
"""
RAY_SITUATIONS = {
    "the array is used after its handle was closed": """
init(); x = make(); a = ray.get(x); del x; gc.collect(); time.sleep(0.5)
print("right" if a[:4].tolist() == [0, 1, 2, 3] else "wrong")
""",
    "another process writes to it by ctypes": """
init(); x = make(); a = ray.get(x); ray.get(Sender.remote().write.remote([x]))
print("written" if a[0] != 0 else "refused")
""",
    "another process shrinks it": """
init(); x = make(); a = ray.get(x)
maps = [line.split() for line in open("/proc/self/maps")]
at = a.ctypes.data
found = [m for m in maps if int(m[0].split("-")[0], 16) <= at < int(m[0].split("-")[1], 16)][0]
files = [f for f in glob.glob("/proc/[0-9]*/fd/*") if os.path.exists(f)]
files = [f for f in files if str(os.stat(f).st_ino) == found[4]]
pid = child(lambda: os.truncate(files[0], 0))
if status(pid): print("refused")
else: print("read", a[0])
""",
    "a message of a sender that is stopped": "from_sender(signal.SIGSTOP)",
    "a message whose sender was killed": "from_sender(signal.SIGKILL)",
    "the maker is killed: what is left": """
def run(): init(); x = make(); os.kill(os.getpid(), signal.SIGKILL)
status(child(run)); time.sleep(0.5); first, begin = servers(), time.time()
while servers() and time.time() < begin + 30: time.sleep(0.1)
print(f"{first} servers, for {time.time() - begin + 0.5:.0f} s" if first else "nothing")
""",
    "threads and processes that it starts": "init(); print(f'{servers()} servers, and workers')",
    "a reader in an unrelated process ends": """
init(); x = make(); reader = Sender.remote(); ray.get(reader.read.remote([x])); ray.kill(reader)
time.sleep(0.5)
print("nothing happens" if ray.get(x)[1] == 1 else "wrong")
""",
}


def outcome(peer: str, code: str) -> str:
    """Return what a situation printed, or how it ended."""
    program = f"PEER = {peer!r}\n{PRELUDE}{PEERS[peer]}{code}"
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode < 0:
        return f"crashes (signal {-done.returncode})"
    lines = done.stdout.strip().splitlines()
    return lines[-1] if lines else done.stderr.strip().splitlines()[-1][:80]


def main() -> None:
    """Print the table."""
    peers = sys.argv[1:] or list(PEERS)
    print("| situation |", " | ".join(peers), "|")
    print("|---|" + "---|" * len(peers))
    for what, code in SITUATIONS.items():
        found = [
            code[peer]
            if isinstance(code, dict)
            else outcome(peer, RAY_SITUATIONS[what] if peer == "ray" else code)
            for peer in peers
        ]
        print(f"| {what} |", " | ".join(found), "|", flush=True)


if __name__ == "__main__":
    main()
