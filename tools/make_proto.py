# SPDX-License-Identifier: Apache-2.0
"""Compile ``bridge/caffe2/proto/caffe2.proto``: run after it was changed, commit what it writes.

    pip install grpcio-tools ruff
    python tools/make_proto.py

Writes, beside the ``.proto``, ``caffe2_descriptor.py`` (the compiled messages, as bytes that
protobuf 3.20 and every later one reads) and ``caffe2_pb2.pyi`` (their types). What it writes
depends on the ``.proto`` only: no generated code, which would be tied to protobuf's version.
"""

import base64
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "bridge" / "caffe2" / "proto"
# As in Caffe2's own build, so that the file has the name there that it has here.
NAME = "caffe2/proto/caffe2.proto"
LICENSE = "# SPDX-License-Identifier: Apache-2.0\n"
MADE_BY = "tools/make_proto.py from caffe2.proto"


def compiled(out: pathlib.Path) -> descriptor_pb2.FileDescriptorProto:
    """Run protoc: the descriptor, and the types under `out`."""
    descriptors = out / "descriptors"
    arguments = ["protoc", f"-I{ROOT / 'bridge'}", f"--pyi_out={out}"]
    if protoc.main([*arguments, f"--descriptor_set_out={descriptors}", NAME]):
        sys.exit("protoc refused caffe2.proto")
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes())
    (file,) = files.file
    without_json_names(file.message_type)
    return file


def without_json_names(messages) -> None:
    """protoc spells them out where they follow from the names; generated code leaves them away."""
    for message in messages:
        for field in message.field:
            field.ClearField("json_name")
        without_json_names(message.nested_type)


def descriptor_module(serialized: bytes) -> str:
    """The text of caffe2_descriptor.py."""
    return (
        f'{LICENSE}"""caffe2.proto, compiled: a FileDescriptorProto. Made by {MADE_BY}."""\n\n'
        "import binascii\n\n"
        f'SERIALIZED = binascii.a2b_base64("""\n{base64.encodebytes(serialized).decode()}""")\n'
    )


def types(out: pathlib.Path, file: descriptor_pb2.FileDescriptorProto) -> str:
    """The text of caffe2_pb2.pyi: protoc's, and the device types under Caffe2's short names."""
    (devices,) = (enum for enum in file.enum_type if enum.name == "DeviceTypeProto")
    short = (value.name.removeprefix("PROTO_") for value in devices.value)
    text = (out / "caffe2/proto/caffe2_pb2.pyi").read_text()
    # protoc leaves the parameters away, which a strict type checker does not like.
    text = text.replace("_Mapping]", "_Mapping[str, object]]")
    aliases = "".join(f"{name}: DeviceTypeProto\n" for name in short)
    return f"{LICENSE}# Made by {MADE_BY}.\n{text}\n{aliases}"


def main() -> None:
    """Write both files."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        file = compiled(out)
        (FOLDER / "caffe2_pb2.pyi").write_text(types(out, file))
    serialized = file.SerializeToString(deterministic=True)
    (FOLDER / "caffe2_descriptor.py").write_text(descriptor_module(serialized))
    written = [str(FOLDER / name) for name in ("caffe2_pb2.pyi", "caffe2_descriptor.py")]
    fix = ["ruff", "check", "--quiet", "--fix", "--exit-zero", *written]
    # It complains of long lines, which the formatter then breaks.
    subprocess.run(fix, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ruff", "format", "--quiet", *written], check=True)


if __name__ == "__main__":
    main()
