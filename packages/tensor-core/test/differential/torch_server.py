"""Runs programs in PyTorch: in the dtypes that they ask for, in float64, and in float64 with roundings put in.

Reads cases from stdin and answers each on stdout: a 32-bit length, a JSON header of so many bytes, and then the
tensors' elements as raw bytes, one behind the other, as many as the header says.
"""

import contextlib
import functools
import json
import math
import re
import struct
import sys
import warnings

import torch
import torch.nn.functional as F

DTYPES = {
    name: getattr(torch, name)
    for name in ("float32", "float16", "bfloat16", "float64", "int32", "int64", "bool")
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FLOATS = ("float16", "bfloat16", "float32", "float64")
LOW = (torch.float16, torch.bfloat16)
LACKING = re.compile(r"not implemented for '(Half|BFloat16)'")
# Of each pattern of signs among elements, as many samples as a Hadamard matrix has rows.
PATTERNS = 2
ROWS = 8
FLOAT64 = torch.finfo(torch.float64).eps


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
    x, *given = torch.broadcast_tensors(x, *given)
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


# Ops of which float64 needs a better reference than PyTorch's own kernel, which are those of these names in native mode.


class References:
    """Compositions that lose fewer digits than the kernels, and that have roundings put in where any kernel has them."""

    def __init__(self, mode):
        self.mode = mode

    def var(self, x, dim, keepdim=False, unbiased=True):
        """In two passes; PyTorch's updates the mean with each element. No gradient goes through the mean."""
        mean = self.mode.operand(x.detach().mean(dim, keepdim=True))
        squares = (x - mean).pow(2).sum(dim, keepdim=keepdim)
        dims = [dim] if isinstance(dim, int) else dim
        count = math.prod(x.shape[i] for i in dims) if x.dim() > 0 else 1
        return squares / max(0, count - int(unbiased))

    def std(self, x, dim, keepdim=False, unbiased=True):
        variance = self.var(x, dim, keepdim, unbiased)
        # The slope at 0 is 0.
        return torch.where(variance == 0, variance, variance.where(variance != 0, torch.ones(())).sqrt())

    def layer_norm(self, x, shape, weight, bias, eps):
        """PyTorch's multiplies out (x - mean) * rstd, which cancels."""
        distance = x - self.mode.operand(x.mean(-1, keepdim=True))
        variance = distance.pow(2).mean(-1, keepdim=True)
        return self.mode.result(distance * torch.rsqrt(variance + eps)) * weight + bias

    def linspace(self, start, end, steps, dtype):
        """The products are rounded, which near 0 is all that errs."""
        weights = torch.arange(steps) / max(1.0, steps - 1)
        return self.mode.result(start * (1 - weights)) + self.mode.result(end * weights)

    def silu(self, x):
        """The sigmoid is rounded, whose difference from 1 the gradient reads."""
        return x * self.mode.result(torch.sigmoid(x))

    def gelu(self, x):
        """The error function is rounded, and far below 0 all that is left of 1 + erf is that rounding."""
        return x * 0.5 * (1 + self.mode.result(torch.erf(self.mode.result(x * math.sqrt(0.5)))))

    def log_softmax(self, x, dim):
        """The sum whose logarithm is taken is rounded, which near 0 is all that errs."""
        if x.numel() == 0:
            return torch.log_softmax(x, dim)
        shifted = x - x.detach().amax(dim, keepdim=True)
        powers = self.mode.result(torch.exp(shifted))
        return shifted - torch.log(self.mode.result(powers.sum(dim, keepdim=True)))

    def cross_entropy(self, x, targets, ignore_index):
        return F.nll_loss(self.log_softmax(x, -1), targets, ignore_index=ignore_index)


NATIVE = {
    "var": torch.var,
    "std": torch.std,
    "layer_norm": F.layer_norm,
    "gelu": F.gelu,
    "silu": F.silu,
    "linspace": torch.linspace,
    "log_softmax": torch.log_softmax,
    "cross_entropy": F.cross_entropy,
}


class Mode:
    """How floating-point tensors are calculated with.

    native: as they are. widened: low precision in float32, rounded at the end, for ops that this PyTorch lacks in
    low precision on the CPU. reference: in float64. perturbed: in float64, with a rounding error of relative size
    `unit`, and one of absolute size `tiny` for underflow, put into every result, every tensor saved for the backward
    pass and every gradient on its way back, and, of relative size `addend_unit`, into the inputs of ops that accumulate
    (Monte Carlo arithmetic, Parker 1997). Signs are random among elements; from sample to sample those of each error
    turn as a row of a Hadamard matrix says, so that no two of the first eight errors cancel in all samples.
    """

    def __init__(self, name, unit=0.0, tiny=0.0, sample=0, addend_unit=0.0):
        self.name = name
        self.unit = unit
        self.tiny = tiny
        self.addend_unit = addend_unit
        self.row = sample % ROWS
        self.patterns = torch.Generator().manual_seed(7919 * (sample // ROWS + 1))
        self.flips = torch.Generator().manual_seed(104729 * (sample + 1))
        self.signs = {}
        self.errors = 0
        self.names = dict(DTYPES)
        if name in ("reference", "perturbed"):
            self.names.update({float_: torch.float64 for float_ in FLOATS})
        if name == "widened":
            self.names.update(float16=torch.float32, bfloat16=torch.float32)
        exact = References(self)
        wide_modes = ("reference", "perturbed")
        self.names.update({op: getattr(exact, op) for op in NATIVE} if name in wide_modes else NATIVE)

    def leaf(self, x):
        if not x.is_floating_point():
            return x
        return x.double() if self.name in ("reference", "perturbed") else x

    def operand(self, x):
        if self.name == "widened" and x.dtype in LOW:
            return x.float()
        return self.perturb(x, self.addend_unit) if self.name == "perturbed" and self.addend_unit else x

    def result(self, x):
        return self.perturb(x) if self.name == "perturbed" else x

    def perturb(self, x, unit=None):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return x
        with torch.no_grad():
            signs = self.signs_of(x)
            underflow = torch.where(x == 0, torch.zeros(()), self.tiny * signs)
        return x * (1 + (unit or self.unit) * signs) + (underflow if unit in (None, self.unit) else 0)

    def signs_of(self, x):
        if x.shape not in self.signs:
            self.signs[x.shape] = torch.randint(0, 2, x.shape, generator=self.patterns).to(x.dtype) * 2 - 1
        if self.errors < ROWS:
            sign = 1 - 2 * (bin(self.errors & self.row).count("1") % 2)
        else:
            sign = 1 - 2 * int(torch.randint(0, 2, (), generator=self.flips))
        self.errors += 1
        return sign * self.signs[x.shape]

    def saving(self):
        if self.name != "perturbed":
            # No hooks: of what they saved, PyTorch does not see that it was written to.
            return contextlib.nullcontext()
        return torch.autograd.graph.saved_tensors_hooks(self.saved, lambda x: x)

    def saved(self, x):
        """But for whole numbers: a power of a negative base has no value beside them."""
        if not x.is_floating_point():
            return x
        x = x.detach()
        return torch.where(x == x.round(), x, self.perturb(x))


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
        for sample in range(PATTERNS * ROWS):
            mode = Mode("perturbed", unit, tiny, sample, {"none": 0.0, "float64": FLOAT64, "own": unit}[case["addends"]])
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
