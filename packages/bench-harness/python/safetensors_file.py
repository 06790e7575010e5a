"""Reads and writes float32 tensors in the safetensors format with nothing but PyTorch.

The format: eight bytes with the little-endian length of a JSON header, the header (name -> dtype, shape,
data_offsets), then the raw bytes. https://github.com/huggingface/safetensors
"""

import ctypes
import json
import struct

import torch


def read(path):
    """The tensors of a file, by name."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    return {name: _tensor(entry, data) for name, entry in header.items()}


def _tensor(entry, data):
    if entry["dtype"] != "F32":
        raise ValueError(f"only F32 tensors are read here, not {entry['dtype']}")
    start, end = entry["data_offsets"]
    flat = torch.frombuffer(data, dtype=torch.float32, offset=start, count=(end - start) // 4)
    return flat.reshape(entry["shape"]).clone()


def write(path, tensors):
    """Writes a dict of tensors, each as float32."""
    header, chunks, offset = {}, [], 0
    for name, tensor in tensors.items():
        tensor = tensor.detach().to("cpu", torch.float32).contiguous()
        chunk = ctypes.string_at(tensor.data_ptr(), tensor.numel() * 4)
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(chunk)],
        }
        chunks.append(chunk)
        offset += len(chunk)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for chunk in chunks:
            file.write(chunk)
