"""Plain attention and its gradients in PyTorch, in float64 and in a dtype.

Reads problems from standard input as a JSON list of {q, k, v, gradO (flat lists), shapeQ, shapeK, causal, scale,
dtype}; writes a list of {exact, own}, each of {output, gradQ, gradK, gradV} as flat lists.
"""

import json
import sys

import torch


def attention(q, k, v, causal, scale):
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    scores = torch.matmul(q, k.transpose(-1, -2)) * scale
    if causal:
        queries, keys = scores.shape[-2:]
        seen = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
        scores = scores.masked_fill(~seen, float("-inf"))
    return torch.matmul(torch.softmax(scores, -1), v)


def run(problem, dtype):
    leaves = [
        torch.tensor(problem[name], dtype=torch.float64).reshape(shape).to(dtype).requires_grad_()
        for name, shape in [("q", problem["shapeQ"]), ("k", problem["shapeK"]), ("v", problem["shapeK"])]
    ]
    output = attention(*leaves, problem["causal"], problem["scale"])
    grad = torch.tensor(problem["gradO"], dtype=torch.float64).reshape(problem["shapeQ"]).to(dtype)
    output.backward(grad)
    flat = lambda x: x.detach().double().flatten().tolist()
    return {"output": flat(output), **{name: flat(x.grad) for name, x in zip(("gradQ", "gradK", "gradV"), leaves)}}


torch.set_num_threads(1)
json.dump(
    [
        {"exact": run(problem, torch.float64), "own": run(problem, getattr(torch, problem["dtype"]))}
        for problem in json.load(sys.stdin)
    ],
    sys.stdout,
)
