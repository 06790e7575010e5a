"""Trains the Transformer language model in PyTorch on given windows, for scripts/parity/training.ts.

Usage: train_torch.py JOB.json. A training loop as nanoGPT's: autocast, one fused AdamW whose norms and embeddings have no decay, the norm
of the gradients clipped, torch.compile around the model. The job names a checkpoint of `roofline train` with the initial weights, a file
of windows (int32, each of context + 1 tokens, those of the steps and then those of the evaluation), the learning rate of each step, and
how PyTorch runs: `attention` (`sdpa` or `plain`), `compile`. Prints a JSON object with `losses`, `stepMs`, `validationLoss` and
versions. What the PyTorch at hand cannot do is an error; nothing is replaced by something else.
"""

import json
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../packages/bench-harness/python"))

from safetensors_file import read  # noqa: E402
from transformer_lm import TransformerLM, adamw_of, cross_entropy  # noqa: E402


def load_weights(model, path):
    """Those under `model.`; every one must have its place."""
    stored = {name[len("model.") :]: tensor for name, tensor in read(path).items() if name.startswith("model.")}
    model.load_state_dict(stored)


def decay_groups(model, weight_decay):
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, torch.nn.Embedding)}
    decayed = [p for p in model.parameters() if p.dim() >= 2 and id(p) not in embeddings]
    others = [p for p in model.parameters() if p.dim() < 2 or id(p) in embeddings]
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def read_windows(job):
    width = job["context"] + 1
    with open(job["windows"], "rb") as file:
        all_tokens = torch.frombuffer(bytearray(file.read()), dtype=torch.int32)
    return all_tokens.reshape(-1, job["batch"], width)


def main(job):
    device = torch.device(job["device"])
    if job["compile"] and not hasattr(torch, "compile"):
        raise SystemExit(f"torch.compile needs PyTorch 2.0 or newer; this is {torch.__version__}")
    torch.set_float32_matmul_precision("highest")
    model = TransformerLM(job["config"], job["context"], job["attention"])
    load_weights(model, job["weights"])
    model.to(device)
    optimizer = adamw_of(decay_groups(model, job["weightDecay"]), device, lr=1.0, betas=(0.9, 0.95), eps=1e-8)
    run = torch.compile(model) if job["compile"] else model
    dtype = None if job["dtype"] == "float32" else getattr(torch, job["dtype"])
    windows = read_windows(job)
    steps = job["learningRates"]

    def loss_of(window, run=run):
        window = window.to(device, non_blocking=True).long()
        with torch.autocast(device.type, dtype, enabled=dtype is not None):
            return cross_entropy(run(window[:, :-1]), window[:, 1:])

    losses, step_ms = [], []
    since = time.perf_counter()
    for step, learning_rate in enumerate(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate
        loss = loss_of(windows[step])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), job["clip"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        # As ours, the loss is read when the next step has been started.
        losses.append(loss.detach())
        if step > 0:
            losses[step - 1] = losses[step - 1].item()
        now = time.perf_counter()
        step_ms.append((now - since) * 1e3)
        since = now
    losses[-1] = losses[-1].item()
    with torch.no_grad():
        # Not by `run`, which would be compiled anew.
        validation = [loss_of(window, model).item() for window in windows[len(steps) :]]
    mean = sum(validation) / len(validation)
    print(json.dumps({"torch": torch.__version__, "losses": losses, "stepMs": step_ms, "validationLoss": mean}))


with open(sys.argv[1]) as file:
    main(json.load(file))
