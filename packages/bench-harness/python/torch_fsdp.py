"""PyTorch's FSDP2 for the Transformer language model: parameters sharded by block, as Roofline's fullyShard does it.

As torchtitan composes them: each block is a checkpoint, compiled with it, and sharded last.
"""

import contextlib

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

from peer_protocol import NotAvailable
from torch_memory_saving import chunked_cross_entropy, keeping_attention
from transformer_lm import cross_entropy

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
except ImportError:
    fully_shard = None


def check_fsdp(recompute):
    """Refuses what this PyTorch has not, before a model is made."""
    if fully_shard is None:
        raise NotAvailable(f"sharded parameters need FSDP2 of PyTorch 2.6 or newer; this is {torch.__version__}.")
    if recompute not in ("none", "block", "attention-kept"):
        raise NotAvailable(f"FSDP2 shards by block, and recomputes so; take --recompute block, not {recompute}.")


class WithLoss(nn.Module):
    """The model and its loss, in the forward of the module that gathers the head's weights."""

    def __init__(self, model, logits, compiled):
        super().__init__()
        self.model = model
        self.logits = logits
        self.compiled = compiled

    def forward(self, ids, targets):
        if self.logits == "whole":
            return cross_entropy(self.model(ids), targets)
        features = self.model(ids, features_only=True)
        weight = self.model.lm_head.weight
        return chunked_cross_entropy(features, weight, targets, features.dtype, self.compiled)


def sharded(model, job, device_type):
    """The model with its loss, over all ranks, or over half of them, twice, for the mode `hybrid`."""
    compiles = job["execution"] != "eager"
    ranks = job["worldSize"]
    if job["parallelMode"] == "hybrid":
        mesh = init_device_mesh(device_type, (2, ranks // 2), mesh_dim_names=("replicate", "shard"))
    else:
        mesh = init_device_mesh(device_type, (ranks,))
    low = None if job["dtype"] == "float32" else getattr(torch, job["dtype"])
    options = {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(param_dtype=low, reduce_dtype=torch.float32)}
    for layer in model.layers:
        forward = recomputed(layer.forward, job["recompute"])
        layer.forward = torch.compile(forward) if compiles else forward
        fully_shard(layer, reshard_after_forward=True, **options)
    return fully_shard(WithLoss(model, job["logits"], compiles), **options)


def recomputed(forward, policy):
    if policy == "none":
        return forward
    options = {"context_fn": keeping_attention} if policy == "attention-kept" else {}
    return lambda *inputs: checkpoint(forward, *inputs, use_reentrant=False, **options)


def fast_attention(attention, device_type):
    """Lets scaled_dot_product_attention choose between the two that are fast on GPUs."""
    if attention != "sdpa" or device_type != "cuda":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION])
