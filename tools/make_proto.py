# SPDX-License-Identifier: Apache-2.0
"""Compile ``tools/proto/*.proto``: run after one was changed, commit what it writes.

    pip install grpcio-tools ruff
    python tools/make_proto.py

Writes to ``bridge/caffe2/proto``, for each ``NAME.proto``, ``NAME_descriptor.py`` (the compiled
messages, as bytes that protobuf 3.20 and every later one reads) and ``NAME_pb2.pyi`` (their types).
What it writes depends on the ``.proto`` only: no generated code, which would be tied to protobuf's
version.
"""

import base64
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES, FOLDER = ROOT / "tools" / "proto", ROOT / "bridge" / "caffe2" / "proto"
LICENSE = "# SPDX-License-Identifier: Apache-2.0\n"
MADE_BY = "Made by tools/make_proto.py"


def compiled(name: str, out: pathlib.Path) -> descriptor_pb2.FileDescriptorProto:
    """Run protoc: the descriptor, and the types under `out`."""
    # As in Caffe2's own build, so that the file has the name there that it has here.
    path = f"caffe2/proto/{name}.proto"
    descriptors = out / "descriptors"
    arguments = ["protoc", f"-Icaffe2/proto={SOURCES}", f"--pyi_out={out}"]
    if protoc.main([*arguments, f"--descriptor_set_out={descriptors}", path]):
        sys.exit(f"protoc refused {name}.proto")
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


def descriptor_module(name: str, serialized: bytes) -> str:
    """The text of NAME_descriptor.py."""
    return (
        f'{LICENSE}"""{name}.proto, compiled: a FileDescriptorProto. {MADE_BY}."""\n\n'
        "import binascii\n\n"
        f'SERIALIZED = binascii.a2b_base64("""\n{base64.encodebytes(serialized).decode()}""")\n'
    )


def types(name: str, out: pathlib.Path, file: descriptor_pb2.FileDescriptorProto) -> str:
    """The text of NAME_pb2.pyi: protoc's, and the device types under Caffe2's short names."""
    text = (out / f"caffe2/proto/{name}_pb2.pyi").read_text()
    # protoc leaves the parameters away, which a strict type checker does not like.
    text = text.replace("_Mapping]", "_Mapping[str, object]]")
    text = text.replace("from caffe2.proto import", "from bridge.caffe2.proto import")
    devices = [enum for enum in file.enum_type if enum.name == "DeviceTypeProto"]
    short = (value.name.removeprefix("PROTO_") for enum in devices for value in enum.value)
    aliases = "".join(f"{one}: DeviceTypeProto\n" for one in short)
    return f"{LICENSE}# {MADE_BY}.\n{text}\n{aliases}"


def main() -> None:
    """Write both files of each."""
    written = []
    for name in sorted(path.stem for path in SOURCES.glob("*.proto")):
        stub, descriptor = FOLDER / f"{name}_pb2.pyi", FOLDER / f"{name}_descriptor.py"
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            file = compiled(name, out)
            stub.write_text(types(name, out, file))
        serialized = file.SerializeToString(deterministic=True)
        descriptor.write_text(descriptor_module(name, serialized))
        written += [str(stub), str(descriptor)]
    fix = ["ruff", "check", "--quiet", "--fix", "--exit-zero", *written]
    # It complains of long lines, which the formatter then breaks.
    subprocess.run(fix, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ruff", "format", "--quiet", *written], check=True)


if __name__ == "__main__":
    main()
