# SPDX-License-Identifier: Apache-2.0
"""Record what the real Caffe2 reads from odd messages, and what it writes for many arrays.

    PYTHON_OF_CAFFE2 tests/golden/record_blobs.py

Writes `read_blobs.json.gz` and `written_blobs.json` beside this file. Runs on Python 3.8 with the
torch 1.8.1 wheel. Each message is read in a child process, since some end it.
"""

import base64
import gzip
import hashlib
import json
import logging
import os
import random
import resource
import signal
import warnings
from pathlib import Path

import blob_messages
import numpy as np
from caffe2.proto import caffe2_pb2
from caffe2.python import workspace

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

HERE = Path(__file__).resolve().parent
MUTATIONS = 1200
DTYPES = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16")
SHAPES = ((1,), (7,), (1000,), (2, 3, 5), (0, 4), (), (33, 1, 31))


def is_part(data):
    """Whether a message brings part of a tensor; what the rest is, is left to chance."""
    message = caffe2_pb2.BlobProto()
    message.ParseFromString(data)
    tensor = message.tensor
    numel = int(np.prod(list(tensor.dims), dtype=object))
    return tensor.HasField("segment") and tensor.segment.end - tensor.segment.begin != numel


def described(value):
    """Describe a fetched value; elements of strings by length and bytes."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    flat = value.tobytes()
    if value.dtype == object:
        flat = b"".join(b"%d:%s" % (len(item), item) for item in value.ravel().tolist())
    sha256 = hashlib.sha256(flat).hexdigest()
    return {"dtype": value.dtype.name, "shape": list(value.shape), "sha256": sha256}


def read(data):
    """Say what the real Caffe2 makes of a message."""
    try:
        workspace.DeserializeBlob("x", data)
    except RuntimeError as error:
        return {"refused": str(error).split("\n")[0][:100]}
    try:
        value = workspace.FetchBlob("x")
    except TypeError:
        fetched = workspace.FetchInt8Blob("x")
        scale = np.float32(fetched.scale).tobytes().hex()
        return dict(described(fetched.data), scale=scale, zero_point=int(fetched.zero_point))
    except RuntimeError:
        return {"unfetchable": True}
    found = described(value)
    if not isinstance(value, bytes) and is_part(data):
        del found["sha256"]
    return found


def read_all(messages):
    """Read each in a child; a child that ends is followed by another."""
    found = []
    while len(found) < len(messages):
        out, into = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(out)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            resource.setrlimit(resource.RLIMIT_AS, (40 << 30, 40 << 30))
            with os.fdopen(into, "w") as file:
                for data in messages[len(found) :]:
                    signal.alarm(20)
                    workspace.ResetWorkspace()
                    file.write(json.dumps(read(data)) + "\n")
                    file.flush()
            os._exit(0)
        os.close(into)
        with os.fdopen(out) as file:
            found += [json.loads(line) for line in file if line.endswith("\n")]
        _, status = os.waitpid(child, 0)
        if len(found) < len(messages):
            found.append({"crashed": status})
    return found


def array(dtype, shape, seed):
    """Make an array of random bits; the tests make the same."""
    n = int(np.prod(shape))
    rng = np.random.RandomState(seed)
    if dtype == "bool":
        return (np.frombuffer(rng.bytes(n), np.uint8) & 1).astype(bool).reshape(shape)
    bits = rng.bytes(n * np.dtype(dtype).itemsize)
    return np.frombuffer(bits, dtype).reshape(shape)


def strings(shape, seed):
    """Make an array of random strings, some long."""
    rng = random.Random(seed)
    n = int(np.prod(shape))
    made = np.empty(n, dtype=object)
    for i in range(n):
        length = rng.choice((0, 1, 5, 127, 128, 300))
        made[i] = bytes(rng.randrange(256) for _ in range(length))
    return made.reshape(shape)


def written():
    """Give what the real Caffe2 writes, as a digest, for each type and shape."""
    seed = 0
    for shape in SHAPES:
        for dtype in (*DTYPES, "bool", "string"):
            seed += 1
            value = strings(shape, seed) if dtype == "string" else array(dtype, shape, seed)
            name = f"blob {seed}"
            workspace.FeedBlob(name, value)
            sha256 = hashlib.sha256(workspace.SerializeBlob(name)).hexdigest()
            yield {"name": name, "dtype": dtype, "shape": shape, "seed": seed, "sha256": sha256}


def main():
    """Write both files."""
    cases = list(blob_messages.crafted())
    seeds = [path.read_bytes() for path in sorted((HERE / "blobs").glob("*.pb"))]
    seeds = [data for data in seeds if len(data) < 300]
    rng = random.Random(20190531)
    for index in range(MUTATIONS):
        cases.append((f"mutation {index}", blob_messages.mutated(rng, seeds)))
    outcomes = read_all([data for _, data in cases])
    records = [
        {"label": cases[i][0], "data": base64.b64encode(cases[i][1]).decode(), "real": outcomes[i]}
        for i in range(len(cases))
    ]
    text = json.dumps(records, indent=0)
    # without a time, so that the same records are the same file
    (HERE / "read_blobs.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (HERE / "written_blobs.json").write_text(json.dumps(list(written()), indent=0) + "\n")


if __name__ == "__main__":
    main()
