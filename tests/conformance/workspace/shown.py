# SPDX-License-Identifier: Apache-2.0
"""How a result is written down: by the recorder, in the real Caffe2, and by the tests, here."""

import json


def shown(value):
    """Write a result as JSON values, so that two of different libraries can be compared."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    kind = type(value).__name__
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if kind == "ndarray":
        return {
            "dtype": value.dtype.name,
            "shape": list(value.shape),
            "values": [shown(one) for one in value.reshape(-1).tolist()],
        }
    if hasattr(value, "SerializeToString"):
        return {"message": value.DESCRIPTOR.name, "bytes": value.SerializeToString().hex()}
    if isinstance(value, dict):
        return {"dict": [[shown(key), shown(value[key])] for key in value]}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((shown(one) for one in value), key=json.dumps)}
    if isinstance(value, (list, tuple)):
        return {kind: [shown(one) for one in value]}
    if hasattr(value, "MergeFrom") and hasattr(value, "__getitem__"):
        return {"list": [shown(one) for one in value]}
    if kind == "BlobReference":
        return {"BlobReference": str(value)}
    return {"object": kind}
