"""Makes models of `transformers` for scripts/parity/compare.ts, and opens what that wrote.

Usage: transformers_models.py make FOLDER DEVICE [SEED], then transformers_models.py open FOLDER DEVICE. Needs `transformers` 5, PyTorch
and safetensors.

`make` draws a model of each family from the seed, with norms and biases away from where they start and all weights exact in bfloat16,
and saves it as `save_pretrained` does, the last family in several files. reference.safetensors has a batch of unequal lengths, padded
on the right (`ids`, `targets` with -100, `lengths`), and what float64 makes of it: `logits`, `loss` and `gradients.NAME`; its rotary
angles are calculated here in float64, because those of `transformers` are float32 in every dtype, and its attention is PyTorch's, because
the eager one of `transformers` has a softmax in float32, in which float64's mask is infinite: a row without a key becomes NaN. errors.json has the relative
errors of PyTorch itself against that, by dtype and attention, and the greedy tokens after each prompt.

`open` reads FOLDER/FAMILY/ours, which compare.ts saved, and exits with 1 unless every tensor and all logits are the same bits.
"""

import json
import math
import os
import sys

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

PADDING = [23, 96, 57, 1]
NEW_TOKENS = 24
# By dtype, the kinds of attention that have an error of their own in it.
ATTENTIONS = {"float64": ("sdpa",), "float32": ("eager", "sdpa"), "bfloat16": ("eager", "sdpa")}
DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}

SIZES = dict(
    vocab_size=1003,
    hidden_size=192,
    intermediate_size=416,
    num_hidden_layers=4,
    num_attention_heads=6,
    max_position_embeddings=256,
    bos_token_id=1,
    eos_token_id=None,
)


def rope(kind="default", **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **more}}


FAMILIES = {
    "llama": ("llama", {**SIZES, "num_key_value_heads": 6, **rope()}),
    "llama3": (
        "llama",
        {
            **SIZES,
            **{"num_key_value_heads": 2, "head_dim": 40, "rms_norm_eps": 1e-5},
            **rope("llama3", factor=8.0, original_max_position_embeddings=64, low_freq_factor=1.0, high_freq_factor=4.0),
        },
    ),
    "llama-linear": (
        "llama",
        {**SIZES, "num_key_value_heads": 3, "attention_bias": True, "mlp_bias": True, **rope("linear", factor=4.0)},
    ),
    "mistral": ("mistral", {**SIZES, "num_key_value_heads": 2, "head_dim": 48, "sliding_window": None, **rope()}),
    "qwen2": ("qwen2", {**SIZES, "num_key_value_heads": 1, "tie_word_embeddings": True, **rope()}),
    "qwen3": (
        "qwen3",
        {
            **SIZES,
            **{"num_key_value_heads": 2, "head_dim": 64, "tie_word_embeddings": False},
            **rope("yarn", factor=4.0, original_max_position_embeddings=64),
        },
    ),
    "gpt2": (
        "gpt2",
        dict(
            **{"vocab_size": 1003, "n_positions": 256, "n_embd": 192, "n_layer": 4, "n_head": 6},
            **{"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 1, "eos_token_id": None},
        ),
    ),
    "mistral-window": ("mistral", {**SIZES, "num_key_value_heads": 2, "head_dim": 32, "sliding_window": 16, **rope()}),
    "qwen2-window": (
        "qwen2",
        {
            **SIZES,
            **{"num_key_value_heads": 3, "use_sliding_window": True, "sliding_window": 24},
            **{"layer_types": [f"{kind}_attention" for kind in ("sliding", "full", "sliding", "sliding")]},
            **rope(),
        },
    ),
}


class ExactRotary(torch.nn.Module):
    """Cosines and sines in float64, by the formulas of the papers."""

    def __init__(self, config):
        super().__init__()
        parameters = config.rope_parameters
        head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        theta, kind = parameters["rope_theta"], parameters["rope_type"]
        f = theta ** -(torch.arange(0, head, 2, dtype=torch.float64) / head)
        self.amplitude = 1.0
        factor, original = (parameters.get(name) for name in ("factor", "original_max_position_embeddings"))
        if kind == "linear":
            f = f / factor
        elif kind == "llama3":
            low, high = parameters["low_freq_factor"], parameters["high_freq_factor"]
            kept = ((original * f / (2 * math.pi) - low) / (high - low)).clamp(0, 1)
            f = f * kept + f / factor * (1 - kept)
        elif kind == "yarn":
            pair = lambda turns: head * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))
            low, high = max(math.floor(pair(32)), 0), min(math.ceil(pair(1)), head - 1)
            ramp = ((torch.arange(head // 2, dtype=torch.float64) - low) / (high - low or 0.001)).clamp(0, 1)
            f = f / factor * ramp + f * (1 - ramp)
            self.amplitude = 0.1 * math.log(factor) + 1
        self.frequencies = f

    def forward(self, x, position_ids, *_, **__):
        angles = position_ids[..., None].to(torch.float64) * self.frequencies.to(x.device)
        angles = torch.cat((angles, angles), -1)
        return (angles.cos() * self.amplitude).to(x.dtype), (angles.sin() * self.amplitude).to(x.dtype)


def draw(model_type, fields, seed):
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **fields), dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
            elif "embed" in name or "wte" in name:
                parameter.normal_(0, 0.3)
            else:
                parameter.normal_(0, math.sqrt(2 / sum(parameter.shape)))
            parameter.copy_(parameter.bfloat16().float())
    return model


def load(folder, dtype, attention, device):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation=attention).to(device).eval()


def run(model, ids, targets, lengths):
    """Logits of the real tokens one after the other, the loss, and all gradients."""
    mask = (torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]).long()
    model.zero_grad()
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    wide = logits if logits.dtype == torch.float64 else logits.float()
    loss = F.cross_entropy(wide.flatten(0, 1), targets.flatten(), ignore_index=-100)
    loss.backward()
    gradients = {name: parameter.grad.double() for name, parameter in model.named_parameters()}
    return logits[mask.bool()].detach().double(), loss.detach().double(), gradients


def left_padded(ids, lengths):
    """The same sequences filled up at the left, and where they are."""
    mask = torch.arange(ids.shape[1], device=ids.device) >= ids.shape[1] - lengths[:, None]
    padded = torch.zeros_like(ids)
    for row, length in enumerate(lengths.tolist()):
        padded[row, ids.shape[1] - length :] = ids[row, :length]
    return padded, mask


def padded_logits(model, ids, lengths):
    """Logits of the real tokens of a batch that is filled up at the left, one after the other."""
    padded, mask = left_padded(ids, lengths)
    positions = (mask.long().cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        out = model(input_ids=padded, attention_mask=mask.long(), position_ids=positions, use_cache=False)
    return out.logits[mask].double()


def norm(tensors):
    return math.sqrt(sum(float(tensor.pow(2).sum()) for tensor in tensors))


def errors(results, reference):
    (logits, loss, gradients), (logits64, loss64, gradients64) = results, reference
    return {
        "logits": norm([logits - logits64]) / norm([logits64]),
        "loss": float(abs(loss - loss64) / abs(loss64)),
        "gradients": norm([gradients[name] - g for name, g in gradients64.items()]) / norm(gradients64.values()),
    }


def make(folder, family, number, device, seed):
    model_type, fields = FAMILIES[family]
    model = draw(model_type, fields, seed + number)
    several = {"max_shard_size": "500KB"} if number == len(FAMILIES) - 1 else {}
    model.save_pretrained(folder, **several)
    generator = torch.Generator().manual_seed(seed + number)
    ids = torch.randint(1, fields["vocab_size"], (len(PADDING), max(PADDING)), generator=generator)
    targets = torch.randint(1, fields["vocab_size"], ids.shape, generator=generator)
    for row, length in enumerate(PADDING):
        ids[row, length:] = 0
        targets[row, length:] = -100
    ids, targets, lengths = (x.to(device) for x in (ids, targets, torch.tensor(PADDING)))

    exact = load(folder, torch.float64, "sdpa", device)
    if hasattr(exact.config, "rope_parameters") and model_type != "gpt2":
        exact.model.rotary_emb = ExactRotary(exact.config)
    reference = run(exact, ids, targets, lengths)
    beside = {}
    for dtype in DTYPES:
        beside[dtype] = {}
        for attention in ATTENTIONS[dtype]:
            model = load(folder, DTYPES[dtype], attention, device)
            found = errors(run(model, ids, targets, lengths), reference)
            padded = padded_logits(model, ids, lengths)
            beside[dtype][attention] = {**found, "padded": norm([padded - reference[0]]) / norm([reference[0]])}
    # A reference that another formula made would show here.
    assert beside["float32"]["eager"]["logits"] < 1e-4, (family, beside)

    prompts = [ids[row, :length].tolist() for row, length in enumerate(PADDING)]
    model32 = load(folder, torch.float32, "eager", device)
    greedy = []
    for prompt in prompts:
        given = torch.tensor([prompt], device=device)
        out = model32.generate(
            given,
            attention_mask=torch.ones_like(given),
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            use_cache=True,
            pad_token_id=0,
        )
        greedy.append({"prompt": prompt, "tokens": out[0, len(prompt) :].tolist()})
    logits, loss, gradients = reference
    tensors = {"ids": ids, "targets": targets, "lengths": lengths, "logits": logits, "loss": loss}
    tensors.update({f"gradients.{name}": gradient for name, gradient in gradients.items()})
    save_file({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, f"{folder}/reference.safetensors")
    about = {"torch": torch.__version__, "transformers": transformers.__version__, "seed": seed + number}
    with open(f"{folder}/errors.json", "w") as file:
        json.dump({"about": about, "errors": beside, "greedy": greedy}, file, allow_nan=False)
    print(family, json.dumps(beside), flush=True)


def open_ours(folder, family, device):
    theirs, ours = (load(path, torch.float32, "eager", device) for path in (folder, f"{folder}/ours"))
    ids = load_file(f"{folder}/reference.safetensors")["ids"].to(device)
    state, written = theirs.state_dict(), ours.state_dict()
    odd = [name for name in state.keys() | written.keys() if not torch.equal(state.get(name), written.get(name))]
    with torch.no_grad():
        same = torch.equal(theirs(ids, use_cache=False).logits, ours(ids, use_cache=False).logits)
    print(f"{family}: opened as {type(ours).__name__}, tensors that differ: {odd}, logits the same bits: {same}")
    return not odd and same


if __name__ == "__main__":
    action, root, device = sys.argv[1:4]
    families = list(FAMILIES)
    if action == "make":
        os.makedirs(root, exist_ok=True)
        seed = int(sys.argv[4]) if len(sys.argv) > 4 else 20261124
        for number, family in enumerate(families):
            make(os.path.join(root, family), family, number, device, seed)
    else:
        results = [open_ours(os.path.join(root, family), family, device) for family in families]
        sys.exit(0 if all(results) else 1)
