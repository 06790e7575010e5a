"""Ops that programs call by name: those that PyTorch 1.13 lacks, and what stands in the places of its own."""

import functools

import torch
import torch.nn.functional as F

LOW = (torch.float16, torch.bfloat16)

def wide(x):
    """As PyTorch's own kernels read low precision."""
    return x.float() if x.dtype in LOW else x


def number(value, beside):
    """A number where PyTorch takes tensors alone, of the dtype that makes it take part in promotion as a number."""
    return torch.tensor(value, dtype=torch.result_type(beside, value))


def floating(x):
    """`x`, if an op that takes floating-point tensors alone takes it."""
    if not x.is_floating_point():
        raise TypeError("not of integers")
    return x


def ordered(x):
    """`x`, if its dtype has an order; PyTorch looks for that only where there is something to compare."""
    if x.dtype == torch.bool:
        raise TypeError("bools have no order")
    return x


# Ops that PyTorch 1.13 does not have, as compositions; low precision is calculated in float32.


def any_of(x, dim=None, keepdim=False):
    return count_of(x != 0, dim, keepdim) > 0


def all_of(x, dim=None, keepdim=False):
    return count_of(x == 0, dim, keepdim) == 0


def count_of(truth, dim, keepdim):
    return truth.sum() if dim is None else truth.sum(dim, keepdim=keepdim)


def rms_norm(x, weight, eps, dtype):
    y = wide(x)
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps) * weight).to(dtype)


def product(a, b):
    """PyTorch's, which looks at the dtypes only where there are elements."""
    if a.dtype != b.dtype:
        raise TypeError("operands of one dtype")
    return torch.matmul(a, b)


def causal_mask(x):
    rows, columns = x.shape[-2:]
    seen = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)
    return floating(x).masked_fill(~seen, float("-inf"))


def rope(x, cosine, sine):
    if x.shape[-1] % 2:
        raise ValueError("the last dimension holds pairs")
    y = wide(floating(x)).reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
    a, b = y[..., 0], y[..., 1]
    cosine, sine = cosine.to(y.dtype), sine.to(y.dtype)
    return torch.stack([a * cosine - b * sine, a * sine + b * cosine], -1).reshape(x.shape).to(x.dtype)


def clamp(x, low, high):
    """Of bounds that are tensors, broadcast first: PyTorch's backward pass fails where their shapes differ."""
    given = [bound for bound in (low, high) if bound is not None]
    with torch.no_grad():
        dtype = torch.clamp(x, low, high).dtype
    x, *given = torch.broadcast_tensors(*(tensor.to(dtype) for tensor in (x, *given)))
    return torch.clamp(x, given[0] if low is not None else None, given[-1] if high is not None else None)


def swiglu(a, b, silu):
    if a.shape != b.shape:
        raise ValueError("a and b must be of one shape")
    dtype = torch.promote_types(a.dtype, b.dtype)
    a, b = wide(floating(a.to(dtype))), wide(b.to(dtype))
    return (silu(a) * b).to(dtype)


OPS = (number, all_of, any_of, causal_mask, clamp, floating, ordered, product, rms_norm, rope, swiglu, wide)
HELPERS = {f.__name__: f for f in OPS}
HELPERS.update(torch=torch, F=F, partial=functools.partial)
