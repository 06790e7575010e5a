"""Runs a model that Roofline saved, on the same data, and writes what came of it for comparison.

Usage: torch_agree.py FOLDER. Reads FOLDER/job.json (config, device, ids, targets, steps, learningRate,
weightDecay) and FOLDER/weights.safetensors; writes FOLDER/torch.safetensors with `logits`, `loss`, the
gradients `gradient.NAME` of the first step, and the parameters `parameter.NAME` after `steps` AdamW steps.
"""

import json
import os
import sys

import torch

import safetensors_file
from transformer_lm import TransformerLM, adamw, cross_entropy


def main(folder):
    with open(os.path.join(folder, "job.json")) as file:
        job = json.load(file)
    device = torch.device(job["device"])
    ids = torch.tensor(job["ids"], device=device)
    targets = torch.tensor(job["targets"], device=device)
    model = load(job, os.path.join(folder, "weights.safetensors"), ids.shape[1]).to(device)
    optimizer = adamw(model, device, lr=job["learningRate"], weight_decay=job["weightDecay"])

    outputs = {}
    for step in range(job["steps"]):
        logits = model(ids)
        loss = cross_entropy(logits, targets)
        loss.backward()
        if step == 0:
            outputs["logits"] = logits
            outputs["loss"] = loss
            for name, parameter in model.named_parameters():
                outputs[f"gradient.{name}"] = parameter.grad.clone()
        optimizer.step()
        model.zero_grad(set_to_none=True)
    for name, parameter in model.named_parameters():
        outputs[f"parameter.{name}"] = parameter
    safetensors_file.write(os.path.join(folder, "torch.safetensors"), outputs)


def load(job, path, context):
    model = TransformerLM(job["config"], context)
    weights = safetensors_file.read(path)
    expected = {name for name, _ in model.named_parameters()}
    if expected != set(weights):
        raise SystemExit(f"parameter names differ: {sorted(expected ^ set(weights))}")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    return model


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    main(sys.argv[1])
