"""Runs a small Transformer language model in PyTorch and writes all of it to a safetensors file.

Usage: reference.py CONFIG SEED OUTPUT, with CONFIG the JSON of a ModelConfig. The file holds what went in (`ids`,
`targets`, `weights.NAME`) and what came out: `logits`, `loss`, the gradients of the first step `gradients.NAME`,
and the parameters after three AdamW steps `updated.NAME`.

The model is that of Stanford's cs336_basics in plain operations. Runs on PyTorch 1.13 and newer, without NumPy.
"""

import ctypes
import json
import math
import struct
import sys

import torch
import torch.nn.functional as F

BATCH = 2
STEPS = 3
OPTIMIZER = {"lr": 1e-3, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}


def parameters(config):
    """Random parameters by name. Norms are away from one, so that their gradients matter."""
    d, hidden, vocabulary = (config[k] for k in ("modelDimension", "feedForwardDimension", "vocabularySize"))
    shapes = {"token_embeddings.weight": (vocabulary, d)}
    for i in range(config["layers"]):
        for name in ("q", "k", "v", "output"):
            shapes[f"layers.{i}.attn.{name}_proj.weight"] = (d, d)
        shapes[f"layers.{i}.ffn.w1.weight"] = (hidden, d)
        shapes[f"layers.{i}.ffn.w2.weight"] = (d, hidden)
        shapes[f"layers.{i}.ffn.w3.weight"] = (hidden, d)
        shapes[f"layers.{i}.ln1.weight"] = shapes[f"layers.{i}.ln2.weight"] = (d,)
    shapes["ln_final.weight"] = (d,)
    shapes["lm_head.weight"] = (vocabulary, d)

    def draw(shape):
        if len(shape) == 1:
            return 1 + 0.1 * torch.randn(shape)
        return torch.randn(shape) * math.sqrt(2 / sum(shape))

    return {name: draw(shape).requires_grad_() for name, shape in shapes.items()}


def norm(x, weight):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


def rotate(x, theta):
    length, d = x.shape[-2:]
    frequencies = theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * frequencies
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((cos * even - sin * odd, sin * even + cos * odd), -1).flatten(-2)


def attention(x, weights, config):
    batch, length, d = x.shape
    heads = config["heads"]
    q, k, v = (
        F.linear(x, weights(f"attn.{name}_proj")).view(batch, length, heads, d // heads).transpose(1, 2) for name in "qkv"
    )
    q, k = (rotate(y, config.get("ropeTheta", 10000.0)) for y in (q, k))
    scores = q @ k.transpose(-1, -2) / math.sqrt(d // heads)
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    y = torch.softmax(scores.masked_fill(~mask, -math.inf), -1) @ v
    return F.linear(y.transpose(1, 2).reshape(batch, length, d), weights("attn.output_proj"))


def feed_forward(x, weights):
    return F.linear(F.silu(F.linear(x, weights("ffn.w1"))) * F.linear(x, weights("ffn.w3")), weights("ffn.w2"))


def forward(ids, p, config):
    x = F.embedding(ids, p["token_embeddings.weight"])
    for i in range(config["layers"]):
        weights = lambda name: p[f"layers.{i}.{name}.weight"]
        x = x + attention(norm(x, weights("ln1")), weights, config)
        x = x + feed_forward(norm(x, weights("ln2")), weights)
    return F.linear(norm(x, p["ln_final.weight"]), p["lm_head.weight"])


def run(config, seed):
    torch.manual_seed(seed)
    p = parameters(config)
    ids, targets = (torch.randint(config["vocabularySize"], (BATCH, config["contextLength"])) for _ in range(2))
    tensors = {"ids": ids, "targets": targets}
    tensors.update({f"weights.{name}": parameter.detach().clone() for name, parameter in p.items()})
    optimizer = torch.optim.AdamW(p.values(), **OPTIMIZER)
    for step in range(STEPS):
        logits = forward(ids, p, config)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            tensors.update({"logits": logits, "loss": loss})
            tensors.update({f"gradients.{name}": parameter.grad.clone() for name, parameter in p.items()})
        optimizer.step()
    tensors.update({f"updated.{name}": parameter for name, parameter in p.items()})
    return tensors


def write(path, tensors, metadata):
    header, chunks, offset = {"__metadata__": metadata}, [], 0
    for name, tensor in tensors.items():
        tensor = tensor.detach().contiguous()
        chunk = ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())
        dtype = {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [offset, offset + len(chunk)]}
        chunks.append(chunk)
        offset += len(chunk)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


if __name__ == "__main__":
    config, seed = json.loads(sys.argv[1]), int(sys.argv[2])
    about = {"torch": torch.__version__, "seed": str(seed), "config": json.dumps(config)}
    about["optimizer"] = json.dumps(OPTIMIZER)
    write(sys.argv[3], run(config, seed), about)
