"""What PyTorch's autocast does, for comparison.

Usage: torch_precision.py accuracy FOLDER. Reads FOLDER/job.json (config, batch, context, dtype, device, ids,
  targets) and FOLDER/weights.safetensors; writes FOLDER/exact.safetensors with each parameter's gradient in
  float64, and FOLDER/errors.json: {torch, loss, lossError, squaredErrors}, errors being those of autocast to
  `dtype` against float64.
Usage: torch_precision.py dtypes DEVICE DTYPE. Prints the dtypes in a toy model under autocast, as JSON.
"""

import json
import os
import sys

import torch
import torch.nn as nn

import safetensors_file
from transformer_lm import TransformerLM, cross_entropy


def accuracy(folder):
    with open(os.path.join(folder, "job.json")) as file:
        job = json.load(file)
    device = torch.device(job["device"])
    shape = (job["batch"], job["context"])
    ids = torch.tensor(job["ids"], device=device).reshape(shape)
    targets = torch.tensor(job["targets"], device=device).reshape(shape)
    model = TransformerLM(job["config"], job["context"], job["attention"])
    weights = safetensors_file.read(os.path.join(folder, "weights.safetensors"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    model.to(device)

    def gradients():
        return {name: parameter.grad for name, parameter in model.named_parameters()}

    with torch.autocast(device.type, getattr(torch, job["dtype"])):
        loss = cross_entropy(model(ids), targets)
    # As training does in float16; the scale is taken back in float64.
    scale = 65536.0 if job["dtype"] == "float16" else 1.0
    (loss * scale).backward()
    low = {name: gradient.double() / scale for name, gradient in gradients().items()}
    model.zero_grad(set_to_none=True)
    model.double()
    exact_loss = cross_entropy(model(ids), targets)
    exact_loss.backward()
    exact = gradients()

    safetensors_file.write(os.path.join(folder, "exact.safetensors"), exact)
    answer = {
        "torch": torch.__version__,
        "loss": exact_loss.item(),
        "lossError": abs(loss.item() / exact_loss.item() - 1),
        "squaredErrors": {name: (low[name] - exact[name]).square().sum().item() for name in exact},
    }
    with open(os.path.join(folder, "errors.json"), "w") as file:
        json.dump(answer, file)


class ToyModel(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.fc1 = nn.Linear(inputs, 10, bias=False)
        self.ln = nn.LayerNorm(10)
        self.fc2 = nn.Linear(10, outputs, bias=False)

    def forward(self, x):
        hidden = self.fc1(x)
        normal = self.ln(torch.relu(hidden))
        return hidden, normal, self.fc2(normal)


def dtypes(device, dtype):
    model = ToyModel(5, 5).to(device)
    with torch.autocast(torch.device(device).type, getattr(torch, dtype)):
        hidden, normal, logits = model(torch.randn(4, 5, device=device))
        loss = nn.functional.cross_entropy(logits, torch.randint(0, 5, (4,), device=device))
    loss.backward()

    def names(tensors):
        return ", ".join(sorted({str(tensor.dtype).replace("torch.", "") for tensor in tensors}))

    parameters = list(model.parameters())
    answer = {
        "parameters": names(parameters),
        "first layer": names([hidden]),
        "layerNorm": names([normal]),
        "logits": names([logits]),
        "loss": names([loss]),
        "gradients": names(parameter.grad for parameter in parameters),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    {"accuracy": accuracy, "dtypes": dtypes}[sys.argv[1]](*sys.argv[2:])
