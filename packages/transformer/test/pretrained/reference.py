"""Writes small models of each family as `transformers` stores them, and what they calculate, in float64.

Usage: reference.py SEED FOLDER. Each family gets a folder with config.json, model.safetensors (float32) and
golden.safetensors: `ids` with padding at the end, `targets` with -100 there, `logits`, `loss`, `gradients.NAME` of every stored
tensor, and `greedy`, what follows the first four tokens. Every operation is written out as in the papers and the files of
`transformers`: features i and i + d/2 are a pair of a rotary position, GPT-2's matrices are [in, out] with queries, keys and values
side by side. Runs on PyTorch 1.13 and newer, without `transformers` and NumPy.
"""

import ctypes
import json
import math
import os
import struct
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
PADDED = [5, 9]  # the lengths of both sequences, of which the first is padded
NEW_TOKENS = 6

LLAMA = {
    "vocab_size": 29,
    "max_position_embeddings": 40,
    "hidden_size": 12,
    "intermediate_size": 10,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-4,
    "tie_word_embeddings": False,
    "eos_token_id": 2,
}
FAMILIES = {
    # As transformers 4 writes it.
    "llama": {
        **LLAMA,
        "model_type": "llama",
        "num_key_value_heads": 2,
        "head_dim": 6,
        "rope_theta": 50.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 4.0,
            "original_max_position_embeddings": 10,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
        },
    },
    "llama-biases": {
        **LLAMA,
        "model_type": "llama",
        "hidden_size": 16,
        "attention_bias": True,
        "mlp_bias": True,
        "rope_scaling": {"type": "linear", "factor": 2.0},
    },
    "mistral": {**LLAMA, "model_type": "mistral", "num_key_value_heads": 1, "head_dim": 4, "sliding_window": None},
    "qwen2": {
        **LLAMA,
        "model_type": "qwen2",
        "hidden_size": 16,
        "num_key_value_heads": 2,
        "rope_theta": 1000.0,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "sliding_window": 4,
    },
    # As transformers 5 writes it.
    "qwen3": {
        **LLAMA,
        "model_type": "qwen3",
        "num_key_value_heads": 2,
        "head_dim": 8,
        "layer_types": ["full_attention"] * 2,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 100.0,
            "factor": 4.0,
            "original_max_position_embeddings": 10,
            "beta_fast": 4.0,
            "beta_slow": 1.0,
        },
    },
    "gpt2": {
        "model_type": "gpt2",
        "vocab_size": 29,
        "n_positions": 20,
        "n_embd": 12,
        "n_layer": 2,
        "n_head": 3,
        "n_inner": None,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-4,
        "resid_pdrop": 0.1,
        "eos_token_id": 2,
    },
    "mistral-window": {
        **LLAMA,
        "model_type": "mistral",
        "num_key_value_heads": 2,
        "head_dim": 4,
        "sliding_window": 3,
    },
    # Without layer_types the first layers see everything.
    "qwen2-window": {
        **LLAMA,
        "model_type": "qwen2",
        "hidden_size": 16,
        "num_key_value_heads": 1,
        "use_sliding_window": True,
        "sliding_window": 4,
        "max_window_layers": 1,
    },
}


def linear(shapes, name, rows, columns, bias):
    shapes[f"{name}.weight"] = (rows, columns)
    if bias:
        shapes[f"{name}.bias"] = (rows,)


def llama_shapes(c):
    d, heads, ff = c["hidden_size"], c["num_attention_heads"], c["intermediate_size"]
    head = c.get("head_dim", d // heads)
    keys = c.get("num_key_value_heads", heads)
    every = c.get("attention_bias", False)
    some = every or c["model_type"] == "qwen2"
    shapes = {"model.embed_tokens.weight": (c["vocab_size"], d)}
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        for name, count in (("q", heads), ("k", keys), ("v", keys)):
            linear(shapes, f"{layer}.self_attn.{name}_proj", count * head, d, some)
        linear(shapes, f"{layer}.self_attn.o_proj", d, heads * head, every)
        if c["model_type"] == "qwen3":
            shapes[f"{layer}.self_attn.q_norm.weight"] = shapes[f"{layer}.self_attn.k_norm.weight"] = (head,)
        for name, rows, columns in (("gate", ff, d), ("up", ff, d), ("down", d, ff)):
            linear(shapes, f"{layer}.mlp.{name}_proj", rows, columns, c.get("mlp_bias", False))
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{layer}.{name}.weight"] = (d,)
    shapes["model.norm.weight"] = (d,)
    if not c["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (c["vocab_size"], d)
    return shapes


def gpt2_shapes(c):
    d = c["n_embd"]
    shapes = {"transformer.wte.weight": (c["vocab_size"], d), "transformer.wpe.weight": (c["n_positions"], d)}
    norms = ["transformer.ln_f"]
    for i in range(c["n_layer"]):
        layer = f"transformer.h.{i}"
        norms += [f"{layer}.ln_1", f"{layer}.ln_2"]
        for name, rows, columns in (
            ("attn.c_attn", d, 3 * d),
            ("attn.c_proj", d, d),
            ("mlp.c_fc", d, 4 * d),
            ("mlp.c_proj", 4 * d, d),
        ):
            shapes[f"{layer}.{name}.weight"] = (rows, columns)
            shapes[f"{layer}.{name}.bias"] = (columns,)
    for name in norms:
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (d,)
    return shapes


def draw(name, shape):
    if len(shape) == 2:
        return torch.randn(shape) * math.sqrt(2 / sum(shape)) * (3 if "embed" in name or "wte" in name else 1)
    return 0.3 * torch.randn(shape) + (0 if name.endswith("bias") else 1)


def frequencies(c, head):
    """Angles from one position to the next, and the amplitude of cosines and sines."""
    scaling = c.get("rope_parameters") or c.get("rope_scaling") or {}
    theta = scaling.get("rope_theta", c.get("rope_theta", 10000.0))
    f = 1 / theta ** (torch.arange(0, head, 2) / head)
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return f, 1.0
    factor = scaling["factor"]
    if kind == "linear":
        return f / factor, 1.0
    original = scaling["original_max_position_embeddings"]
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        wavelength = 2 * math.pi / f
        smooth = (original / wavelength - low) / (high - low)
        between = (1 - smooth) * f / factor + smooth * f
        return torch.where(
            wavelength > original / low, f / factor, torch.where(wavelength < original / high, f, between)
        ), 1.0
    assert kind == "yarn"
    pair = lambda turns: head * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))
    low = max(math.floor(pair(scaling["beta_fast"])), 0)
    high = min(math.ceil(pair(scaling["beta_slow"])), head - 1)
    ramp = ((torch.arange(head // 2) - low) / (high - low)).clamp(0, 1)
    return f / factor * ramp + f * (1 - ramp), 0.1 * math.log(factor) + 1


def window_of(c, layer):
    """How many keys a query of a layer sees at most, itself among them."""
    if c["model_type"] == "mistral":
        return c["sliding_window"]
    return c["sliding_window"] if c.get("use_sliding_window") and layer >= c["max_window_layers"] else None


def causal_attention(q, k, v, window=None):
    """q, k, v: [B, H, T, d]; fewer heads of k and v are repeated."""
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if window is not None:
        mask = mask & mask.new_ones(mask.shape).triu(1 - window)
    y = torch.softmax(scores.masked_fill(~mask, -math.inf), -1) @ v
    return y.transpose(1, 2).flatten(2)


def rms_norm(x, weight, eps):
    return weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def llama(c, p, ids):
    heads = c["num_attention_heads"]
    head = c.get("head_dim", c["hidden_size"] // heads)
    f, amplitude = frequencies(c, head)
    angles = torch.arange(ids.shape[1])[:, None] * torch.cat((f, f))
    cos, sin = amplitude * angles.cos(), amplitude * angles.sin()
    turn = lambda x: x * cos + torch.cat((-x[..., head // 2 :], x[..., : head // 2]), -1) * sin
    product = lambda x, name: F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))
    norm = lambda x, name: rms_norm(x, p[f"{name}.weight"], c["rms_norm_eps"])
    x = p["model.embed_tokens.weight"][ids]
    for i in range(c["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        h = norm(x, f"{layer}.input_layernorm")
        q, k, v = (product(h, f"{layer}.self_attn.{n}_proj").unflatten(-1, (-1, head)).transpose(1, 2) for n in "qkv")
        if c["model_type"] == "qwen3":
            q, k = norm(q, f"{layer}.self_attn.q_norm"), norm(k, f"{layer}.self_attn.k_norm")
        attended = causal_attention(turn(q), turn(k), v, window_of(c, i))
        x = x + product(attended, f"{layer}.self_attn.o_proj")
        h = norm(x, f"{layer}.post_attention_layernorm")
        gated = F.silu(product(h, f"{layer}.mlp.gate_proj")) * product(h, f"{layer}.mlp.up_proj")
        x = x + product(gated, f"{layer}.mlp.down_proj")
    head_weight = p.get("lm_head.weight", p["model.embed_tokens.weight"])
    return F.linear(norm(x, "model.norm"), head_weight)


def gpt2(c, p, ids):
    product = lambda x, name: x @ p[f"{name}.weight"] + p[f"{name}.bias"]

    def norm(x, name):
        distance = x - x.mean(-1, keepdim=True)
        scaled = distance * torch.rsqrt(distance.pow(2).mean(-1, keepdim=True) + c["layer_norm_epsilon"])
        return scaled * p[f"{name}.weight"] + p[f"{name}.bias"]

    x = p["transformer.wte.weight"][ids] + p["transformer.wpe.weight"][: ids.shape[1]]
    for i in range(c["n_layer"]):
        layer = f"transformer.h.{i}"
        joined = product(norm(x, f"{layer}.ln_1"), f"{layer}.attn.c_attn")
        q, k, v = (y.unflatten(-1, (c["n_head"], -1)).transpose(1, 2) for y in joined.chunk(3, -1))
        x = x + product(causal_attention(q, k, v), f"{layer}.attn.c_proj")
        h = product(norm(x, f"{layer}.ln_2"), f"{layer}.mlp.c_fc")
        h = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h.pow(3))))
        x = x + product(h, f"{layer}.mlp.c_proj")
    return F.linear(norm(x, "transformer.ln_f"), p["transformer.wte.weight"])


def greedy(forward, c, p, prompt):
    tokens = list(prompt)
    for _ in range(NEW_TOKENS):
        tokens.append(int(forward(c, p, torch.tensor([tokens]))[0, -1].argmax()))
    return torch.tensor(tokens[len(prompt) :])


def write(path, tensors, metadata):
    header, chunks, offset = {"__metadata__": metadata}, [], 0
    names = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}
    for name, tensor in tensors.items():
        tensor = tensor.detach().contiguous()
        chunk = ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())
        header[name] = {
            "dtype": names[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(chunk)],
        }
        chunks.append(chunk)
        offset += len(chunk)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def run(config, folder, about):
    is_gpt2 = config["model_type"] == "gpt2"
    shapes = (gpt2_shapes if is_gpt2 else llama_shapes)(config)
    forward = gpt2 if is_gpt2 else llama
    stored = {name: draw(name, shape).float() for name, shape in shapes.items()}
    p = {name: tensor.double().requires_grad_() for name, tensor in stored.items()}
    ids = torch.randint(config["vocab_size"], (len(PADDED), max(PADDED)))
    targets = torch.randint(config["vocab_size"], ids.shape)
    for row, length in enumerate(PADDED):
        ids[row, length:] = 0
        targets[row, length:] = -100
    logits = forward(config, p, ids)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
    loss.backward()
    results = {"ids": ids, "targets": targets, "logits": logits, "loss": loss}
    results["greedy"] = greedy(forward, config, p, ids[1, :4].tolist())
    results.update({f"gradients.{name}": parameter.grad for name, parameter in p.items()})
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
        file.write("\n")
    write(os.path.join(folder, "model.safetensors"), stored, {"format": "pt"})
    write(os.path.join(folder, "golden.safetensors"), results, about)


if __name__ == "__main__":
    seed, root = int(sys.argv[1]), sys.argv[2]
    for number, (name, config) in enumerate(FAMILIES.items()):
        torch.manual_seed(seed + number)
        run(config, os.path.join(root, name), {"torch": torch.__version__, "seed": str(seed + number)})
