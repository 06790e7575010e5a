"""The Transformer language model of @roofline/transformer in plain eager PyTorch.

Parameter names, shapes and arithmetic are the same, each operation written out: RMSNorm with its statistics in
float32, RoPE over interleaved pairs, SwiGLU, and attention as separate products, mask and softmax
or, where asked for, as PyTorch's own function.
Runs on PyTorch 1.13 and newer.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def at_least_float32(x):
    return x if x.dtype == torch.float64 else x.float()


class Linear(nn.Linear):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, bias=False)

    def reset_parameters(self):
        std = math.sqrt(2 / (self.in_features + self.out_features))
        nn.init.trunc_normal_(self.weight, std=std, a=-3 * std, b=3 * std)


class RMSNorm(nn.Module):
    def __init__(self, dimension, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dimension))
        self.eps = eps

    def forward(self, x):
        dtype = x.dtype
        x = at_least_float32(x)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return (self.weight * x).to(dtype)


def rotate(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((cos * even - sin * odd, sin * even + cos * odd), -1).flatten(-2).to(x.dtype)


def plain_attention(q, k, v, mask):
    """softmax(q k^T / sqrt(d)) v as separate operations; `mask` is true where a query sees a key; None for all."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = torch.where(mask, scores, float("-inf"))
    return torch.softmax(scores, -1).to(v.dtype) @ v


def sdpa_attention(q, k, v, mask):
    """PyTorch's own function, causal, with the kernel that it chooses itself."""
    if not hasattr(F, "scaled_dot_product_attention"):
        raise RuntimeError(f"scaled_dot_product_attention needs PyTorch 2.0 or newer; this is {torch.__version__}")
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


ATTENTIONS = {"plain": plain_attention, "sdpa": sdpa_attention}


class CausalSelfAttention(nn.Module):
    def __init__(self, dimension, heads, attention):
        super().__init__()
        self.heads = heads
        self.attention = ATTENTIONS[attention]
        self.q_proj = Linear(dimension, dimension)
        self.k_proj = Linear(dimension, dimension)
        self.v_proj = Linear(dimension, dimension)
        self.output_proj = Linear(dimension, dimension)

    def forward(self, x, cos, sin, mask):
        batch, context, dimension = x.shape
        head_dimension = dimension // self.heads
        q, k, v = (
            projection(x).view(batch, context, self.heads, head_dimension).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        attended = self.attention(q, k, v, mask)
        return self.output_proj(attended.transpose(1, 2).reshape(batch, context, dimension))


class SwiGLU(nn.Module):
    def __init__(self, dimension, hidden):
        super().__init__()
        self.w1 = Linear(dimension, hidden)
        self.w2 = Linear(hidden, dimension)
        self.w3 = Linear(dimension, hidden)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, dimension, hidden, heads, attention):
        super().__init__()
        self.ln1 = RMSNorm(dimension)
        self.attn = CausalSelfAttention(dimension, heads, attention)
        self.ln2 = RMSNorm(dimension)
        self.ffn = SwiGLU(dimension, hidden)

    def forward(self, x, cos, sin, mask):
        x = x + self.attn(self.ln1(x), cos, sin, mask)
        return x + self.ffn(self.ln2(x))


class TransformerLM(nn.Module):
    """`config` has the keys of @roofline/transformer's ModelConfig; `attention` is one of ATTENTIONS.

    `run_layers(layers, x, *shared)`, if given, runs the blocks in place of a plain loop.
    """

    def __init__(self, config, context, attention="plain", run_layers=None):
        super().__init__()
        self.run_layers = run_layers
        dimension = config["modelDimension"]
        self.token_embeddings = nn.Embedding(config["vocabularySize"], dimension)
        self.layers = nn.ModuleList(
            Block(dimension, config["feedForwardDimension"], config["heads"], attention)
            for _ in range(config["layers"])
        )
        self.ln_final = RMSNorm(dimension)
        self.lm_head = Linear(dimension, config["vocabularySize"])

        head_dimension = dimension // config["heads"]
        theta = config.get("ropeTheta", 10000.0)
        # In float64 first, as Roofline computes them.
        pairs = torch.arange(0, head_dimension, 2, dtype=torch.float64) / head_dimension
        angles = torch.arange(context, dtype=torch.float64)[:, None] * theta**-pairs
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)
        mask = torch.ones(context, context, dtype=torch.bool).tril() if attention == "plain" else None
        self.register_buffer("mask", mask, persistent=False)

    def features(self, ids):
        x = self.token_embeddings(ids)
        if self.run_layers is not None:
            return self.ln_final(self.run_layers(self.layers, x, self.cos, self.sin, self.mask))
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, self.mask)
        return self.ln_final(x)

    def forward(self, ids, features_only=False):
        features = self.features(ids)
        return features if features_only else self.lm_head(features)


def cross_entropy(logits, targets):
    return F.cross_entropy(at_least_float32(logits.flatten(0, 1)), targets.flatten())


def adamw(model, device, **options):
    return adamw_of(model.parameters(), device, **options)


def adamw_of(parameters, device, **options):
    """PyTorch's own choice on the CPU, its fused kernel on the GPU (from PyTorch 2.0)."""
    if torch.device(device).type == "cuda" and int(torch.__version__.split(".")[0]) >= 2:
        options["fused"] = True
    return torch.optim.AdamW(parameters, **options)
