"""Runs programs in PyTorch: in the dtypes that they ask for, in float64, and in float64 with roundings put in.

Reads cases from stdin and answers each on stdout: a 32-bit length, a JSON header of so many bytes, and then the
tensors' elements as raw bytes, one behind the other, as many as the header says.
"""

import json
import re
import struct
import sys
import warnings

import torch

from torch_modes import DTYPES, FLOATS, PATTERNS, ROWS, Mode
from torch_ops import HELPERS, LOW

NAMES = {dtype: name for name, dtype in DTYPES.items()}
LACKING = re.compile(r"not implemented for '(Half|BFloat16)'")
FLOAT64 = torch.finfo(torch.float64).eps


def seed_gradient(x):
    values = (torch.arange(x.numel(), dtype=torch.int64) * 7 + 3) % 13 - 6
    return (values.double() / 4).to(x.dtype).reshape(x.shape)


def decode(spec, payload):
    dtype = DTYPES[spec["dtype"]]
    data = payload[spec["offset"] : spec["offset"] + spec["bytes"]]
    if not data:
        return torch.empty(spec["shape"], dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(spec["shape"])


def execute(case, bases, mode):
    """The outputs and the bases' gradients."""
    leaves = []
    scope = {**HELPERS, **mode.names}
    mode.keeps_whole = any("pow(" in statement for statement in case["steps"])
    for i, spec in enumerate(case["inputs"]):
        if "aliasOf" in spec:
            leaf = leaves[spec["aliasOf"]]
        else:
            leaf = mode.leaf(bases[i].clone()).requires_grad_(spec["requiresGrad"])
        leaves.append(leaf)
        scope["r%d" % i] = mode.operand(eval("x" + spec["views"], {"x": leaf}))
    register = len(leaves)
    results = []
    with mode.saving():
        for statement in case["steps"]:
            value = eval(statement, scope)
            results = [mode.result(x) for x in (value if isinstance(value, (tuple, list)) else (value,))]
            for x in results:
                scope["r%d" % register] = x
                register += 1
    if mode.name == "widened":
        results = round_back(case, results, [scope["r%d" % i] for i in range(len(leaves))])
    outputs = leaves if case["mutates"] else results
    root = None if case["mutates"] else next((x for x in results if x.requires_grad), None)
    if root is not None:
        root.backward(seed_gradient(root))
    return leaves, outputs, [leaf.grad for leaf in leaves]


def round_back(case, results, inputs):
    """To low precision, where that is the dtype of all floating-point inputs that have a say in promotion."""
    specs = [(spec["dtype"], x.dim() > 0) for spec, x in zip(case["inputs"], inputs) if spec["dtype"] in FLOATS]
    floats = {dtype for dtype, counts in specs if counts} or {dtype for dtype, _ in specs}
    if len(floats) != 1 or case["keepsFloat32"]:
        return results
    dtype = DTYPES[floats.pop()]
    return [x.to(dtype) if x.dtype == torch.float32 else x for x in results]


def native(case, bases):
    try:
        return execute(case, bases, Mode("native"))
    except RuntimeError as error:
        if not LACKING.search(str(error)):
            raise
    return execute(case, bases, Mode("widened"))


def unit_of(tensors):
    """The unit roundoff of the coarsest floating-point dtype there; twice that of float64, where half a unit is lost."""
    units = [torch.finfo(x.dtype).eps / 2 for x in tensors if x.is_floating_point()]
    return max([FLOAT64, *units])


def tiny_of(tensors):
    """Half the largest distance of neighbours below the normal numbers; of float64, whose half is none, all of it."""
    limits = [torch.finfo(x.dtype) for x in tensors if x.is_floating_point()]
    return max([2.0**-1074, *(limit.tiny * limit.eps / 2 for limit in limits)])


def references(case, bases, outputs, gradients):
    """Outputs and gradients in float64, and how far roundings move each; None where float64 cannot."""
    known = [x for x in [*bases, *outputs, *gradients] if x is not None]
    unit, tiny = unit_of(known), tiny_of(known)
    torch.set_default_dtype(torch.float64)
    try:
        _, values, slopes = execute(case, bases, Mode("reference"))
        exact = [*values, *slopes]
        noise = [None if x is None else torch.zeros_like(x, dtype=torch.float64) for x in exact]
        count = len(outputs)
        addends = {"none": 0.0, "float64": FLOAT64, "own": unit}[case["addends"]]
        # Rounded addends may tame what exact ones do, such as a row of equal elements whose variance is 0.
        units = [addends] * PATTERNS + [0.0] * (addends != 0.0)
        for sample in range(len(units) * ROWS):
            mode = Mode("perturbed", unit, tiny, sample, units[sample // ROWS])
            _, values, slopes = execute(case, bases, mode)
            for i, x in enumerate([*values, *slopes]):
                if x is None or exact[i] is None or not x.is_floating_point():
                    continue
                distance = (x.detach() - exact[i].detach()).abs()
                # An infinity less itself: the same.
                noise[i] = torch.maximum(noise[i], torch.nan_to_num(distance, 0.0, float("inf")))
        if case["rule"] == "rounded":
            noise[:count] = neighbouring_errors(case, bases, exact[:count])
        return exact, noise
    except Exception:
        return None
    finally:
        torch.set_default_dtype(torch.float32)


def neighbouring_errors(case, bases, like):
    """PyTorch's largest errors at inputs a few units in the last place away: at one input alone it may be lucky."""
    largest = [torch.zeros_like(x, dtype=torch.float64) for x in like]
    forward = {**case, "inputs": [{**spec, "requiresGrad": False} for spec in case["inputs"]]}
    for step in (-3, -2, -1, 1, 2, 3):
        shifted = [shift(x, step) for x in bases]
        torch.set_default_dtype(torch.float32)
        _, values, _ = native(forward, shifted)
        torch.set_default_dtype(torch.float64)
        _, exact, _ = execute(forward, shifted, Mode("reference"))
        for i, x in enumerate(values):
            if x.is_floating_point():
                distance = (x.double() - exact[i]).abs()
                largest[i] = torch.maximum(largest[i], torch.nan_to_num(distance, 0.0, 0.0))
    return largest


def shift(x, steps):
    if x is None or not x.is_floating_point():
        return x
    return (x.double() * (1 + steps * torch.finfo(x.dtype).eps)).to(x.dtype)


def raw(x):
    x = x.detach().contiguous().reshape(-1)
    if x.dtype in LOW:
        x = x.view(torch.int16)
    return x.numpy().tobytes()


def aliases(x, leaves):
    if x.numel() == 0:
        return []
    return [i for i, leaf in enumerate(leaves) if leaf.storage().data_ptr() == x.storage().data_ptr()]


def describe(x, leaves, exact, noise, payload):
    if x is None:
        return None
    header = {
        "dtype": NAMES.get(x.dtype, str(x.dtype)),
        "shape": list(x.shape),
        "requiresGrad": x.requires_grad,
        "aliases": aliases(x, leaves),
    }
    parts = [raw(x)]
    if exact is not None and x.is_floating_point():
        header["hasReference"] = True
        parts += [raw(exact.double()), raw(noise)]
    header["bytes"] = [len(part) for part in parts]
    payload += parts
    return header


def answer(case, payload):
    bases = [None if "aliasOf" in spec else decode(spec, payload) for spec in case["inputs"]]
    try:
        leaves, outputs, gradients = native(case, bases)
    except Exception as error:
        return {"error": "%s: %s" % (type(error).__name__, str(error).split("\n")[0])}, []
    exact, noise = [None] * (len(outputs) + len(gradients)), [None] * (len(outputs) + len(gradients))
    if case["rule"] in ("rounded", "accumulated") or any(x is not None for x in gradients):
        found = references(case, bases, outputs, gradients)
        if found:
            exact, noise = found
    parts = []
    headers = [describe(x, leaves, exact[i], noise[i], parts) for i, x in enumerate([*outputs, *gradients])]
    count = len(outputs)
    return {"error": None, "outputs": headers[:count], "gradients": headers[count:]}, parts


def read(length):
    data = sys.stdin.buffer.read(length)
    return data if len(data) == length else None


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    while True:
        prefix = read(4)
        if prefix is None:
            return
        case = json.loads(read(struct.unpack("<I", prefix)[0]))
        header, parts = answer(case, read(case["bytes"]) if case["bytes"] else b"")
        text = json.dumps(header).encode()
        sys.stdout.buffer.write(struct.pack("<I", len(text)) + text + b"".join(parts))
        sys.stdout.buffer.flush()


main()
