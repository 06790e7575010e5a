"""What a step of PyTorch does to take less memory: blocks made again, logits in chunks, parameters updated one by one."""

import functools

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from peer_protocol import NotAvailable

# As many bytes of logits at a time as Roofline's linearCrossEntropy takes.
CHUNK_BYTES = 2**30 - 2**26
ATTENTION_OPS = (
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
)


def check_recompute(policy, attention):
    """Refuses a policy that PyTorch has no like of, before a model is made."""
    if policy == "recursive":
        raise NotAvailable("PyTorch's checkpoint does not halve blocks again; take --recompute block or a number of blocks.")
    if policy != "attention-kept":
        return
    if attention != "sdpa":
        raise NotAvailable("PyTorch keeps attention that is one op: take --peer-attention sdpa with --recompute attention-kept.")
    if not hasattr(torch.utils.checkpoint, "create_selective_checkpoint_contexts"):
        raise NotAvailable(f"attention-kept needs selective checkpoints of PyTorch 2.4 or newer; this is {torch.__version__}.")


def run_layers(layers, x, policy, *shared):
    """Layers one after the other, of which the backward pass makes again what the policy says."""
    if policy == "none" or not torch.is_grad_enabled():
        return in_turn(layers, x, *shared)
    size = int(policy) if policy.isdigit() else 1
    options = {"context_fn": keeping_attention} if policy == "attention-kept" else {}
    for start in range(0, len(layers), size):
        group = layers[start : start + size]
        x = checkpoint(lambda y, group=group: in_turn(group, y, *shared), x, use_reentrant=False, **options)
    return x


def in_turn(layers, x, *shared):
    for layer in layers:
        x = layer(x, *shared)
    return x


def keeping_attention():
    from torch.utils.checkpoint import create_selective_checkpoint_contexts

    ops = [getattr(torch.ops.aten, name).default for name in ATTENTION_OPS if hasattr(torch.ops.aten, name)]
    return create_selective_checkpoint_contexts(ops)


def loss_and_gradient(logits, targets, count):
    """The sum of a chunk's losses, and the gradient of its logits for a mean over `count` rows."""
    wide = logits.float()
    loss = F.cross_entropy(wide, targets, reduction="sum")
    classes = torch.arange(logits.shape[1], device=logits.device)
    gradient = (torch.softmax(wide, -1) - (classes == targets[:, None]).float()) / count
    return loss, gradient.to(logits.dtype)


@functools.cache
def in_one_kernel():
    """By torch.compile, as the rest of a compiled step is."""
    return torch.compile(loss_and_gradient)


class ChunkedCrossEntropy(torch.autograd.Function):
    """Head and loss of some tokens at a time, with their part of both gradients while their logits are there."""

    @staticmethod
    def forward(ctx, x, weight, targets, dtype, compiled):
        rows = max(1, CHUNK_BYTES // (weight.shape[0] * torch.finfo(dtype).bits // 8))
        low_x, low_weight = x.to(dtype), weight.to(dtype)
        grad_x = torch.empty_like(low_x)
        grad_weight = torch.zeros(weight.shape, dtype=torch.float32, device=weight.device)
        total = torch.zeros((), dtype=torch.float32, device=x.device)
        with torch.autocast(x.device.type, enabled=False):
            for start in range(0, x.shape[0], rows):
                chunk = slice(start, start + rows)
                both = in_one_kernel() if compiled else loss_and_gradient
                loss, gradient = both(low_x[chunk] @ low_weight.t(), targets[chunk], x.shape[0])
                total += loss
                grad_x[chunk] = gradient @ low_weight
                grad_weight += gradient.t() @ low_x[chunk]
        ctx.save_for_backward(grad_x.to(x.dtype), grad_weight.to(weight.dtype))
        return total / x.shape[0]

    @staticmethod
    def backward(ctx, above):
        grad_x, grad_weight = ctx.saved_tensors
        return grad_x.mul_(above), grad_weight.mul_(above), None, None, None


def chunked_cross_entropy(features, weight, targets, dtype, compiled=False):
    return ChunkedCrossEntropy.apply(features.flatten(0, 1), weight, targets.flatten(), dtype, compiled)


class UpdateAtOnce:
    """AdamW that updates each parameter as soon as its gradient is there, and frees that, as Roofline's programs do."""

    def __init__(self, model, device, adamw_of):
        if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
            raise NotAvailable(
                f"updates within the backward pass need PyTorch 2.1 or newer; this is {torch.__version__}."
            )
        self.optimizers = {parameter: adamw_of([parameter], device) for parameter in model.parameters()}
        for parameter in self.optimizers:
            parameter.register_post_accumulate_grad_hook(self.update)

    def update(self, parameter):
        optimizer = self.optimizers[parameter]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
