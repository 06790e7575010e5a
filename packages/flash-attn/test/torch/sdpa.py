"""How far PyTorch's scaled_dot_product_attention is from float64, on problems that lie in a folder.

usage: sdpa.py FOLDER DEVICE. FOLDER/problems.json is a list of {shapeQ, shapeK, causal, scale, dtype}; the operands of
number i are FOLDER/i.q, i.k, i.v and i.gradO, float32. For each, FOLDER/i.output, i.gradQ, i.gradK and i.gradV are
written, float64's; and FOLDER/torch.json, a list of {errors, terms}, each of {output, gradQ, gradK, gradV}. Errors are
norms of PyTorch's differences from them, in the problem's dtype, by the kernel that it chooses; in float32 the larger of its
two kernels', which on a few peaked rows differ by a factor of up to ten between themselves, by luck. Terms are norms of what
the results would be if nothing cancelled: sums of magnitudes.
"""

import json
import os
import sys
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

FLOAT32_KERNELS = (SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION)
NAMES = ("output", "gradQ", "gradK", "gradV")


def weights(q, k, causal, scale):
    scores = torch.matmul(q, k.transpose(-1, -2)) * scale
    if causal:
        queries, keys = scores.shape[-2:]
        seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
        scores = scores.masked_fill(~seen, float("-inf"))
    return torch.softmax(scores, -1)


def for_each_query_head(q, *shared):
    return (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in shared)


def exact_attention(q, k, v, causal, scale):
    k, v = for_each_query_head(q, k, v)
    return torch.matmul(weights(q, k, causal, scale), v)


def terms(q, k, v, grad, causal, scale):
    """Of the output, and of the gradients by dS = P (dP - sum(dO O))."""
    heads = k.shape[1]
    k, v = for_each_query_head(q, k, v)
    p = weights(q, k, causal, scale)
    q, k, v, grad = (x.abs() for x in (q, k, v, grad))
    output = torch.matmul(p, v)
    scores = p * (torch.matmul(grad, v.transpose(-1, -2)) + (grad * output).sum(-1, keepdim=True)) * abs(scale)
    fold = lambda x: x.unflatten(1, (heads, -1)).sum(2)
    of_keys = (torch.matmul(x.transpose(-1, -2), y) for x, y in ((scores, q), (p, grad)))
    return [output, torch.matmul(scores, k), *(fold(x) for x in of_keys)]


def sdpa(q, k, v, causal, scale):
    queries, keys = q.shape[2], k.shape[2]
    mask = None
    if causal and queries != keys:  # is_causal aligns the mask at the top left
        mask = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries)
    options = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=causal and mask is None, scale=scale, **options
    )


def read(path, shape):
    count = torch.Size(shape).numel()
    return torch.from_file(path, size=count, dtype=torch.float32).reshape(shape)


def write(path, x):
    torch.from_file(path, shared=True, size=x.numel(), dtype=torch.float64).copy_(x.flatten())


def run(attention, operands, problem, dtype):
    q, k, v, grad = (x.to(dtype) for x in operands)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    output = attention(*leaves, problem["causal"], problem["scale"])
    return [output.detach().double(), *(x.double() for x in torch.autograd.grad(output, leaves, grad))]


def errors(operands, problem, exact):
    """By name, of the kernels that the problem is held to, as far as they take it."""
    kernels = FLOAT32_KERNELS if problem["dtype"] == "float32" else [None]
    largest = dict.fromkeys(NAMES, 0.0)
    for kernel in kernels:
        try:
            with nullcontext() if kernel is None else sdpa_kernel(kernel):
                own = run(sdpa, operands, problem, getattr(torch, problem["dtype"]))
        except RuntimeError as error:
            if "No available kernel" not in str(error):
                raise
            continue
        for name, x, y in zip(NAMES, own, exact):
            largest[name] = max(largest[name], (x - y).norm().item())
    return largest


def main(folder, device):
    path = lambda i, name: os.path.join(folder, f"{i}.{name}")
    with open(os.path.join(folder, "problems.json")) as file:
        problems = json.load(file)
    answers = []
    for i, problem in enumerate(problems):
        shapes = {"q": problem["shapeQ"], "k": problem["shapeK"], "v": problem["shapeK"], "gradO": problem["shapeQ"]}
        operands = [
            read(path(i, name), shape).to(device).double() for name, shape in shapes.items()
        ]
        exact = run(exact_attention, operands, problem, torch.float64)
        for name, x in zip(NAMES, exact):
            write(path(i, name), x)
        sizes = terms(*operands, problem["causal"], problem["scale"])
        answers.append(
            {
                "errors": errors(operands, problem, exact),
                "terms": {name: x.norm().item() for name, x in zip(NAMES, sizes)},
            }
        )
    with open(os.path.join(folder, "torch.json"), "w") as file:
        json.dump(answers, file)


main(*sys.argv[1:])
