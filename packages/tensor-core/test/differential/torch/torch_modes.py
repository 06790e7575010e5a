"""How a program is calculated: natively, in float64, and in float64 with roundings put in."""

import contextlib
import math

import torch
import torch.nn.functional as F

from torch_ops import LOW

DTYPES = {
    name: getattr(torch, name)
    for name in ("float32", "float16", "bfloat16", "float64", "int32", "int64", "bool")
}
FLOATS = ("float16", "bfloat16", "float32", "float64")
# Of each pattern of signs among elements, as many samples as a Hadamard matrix has rows.
PATTERNS = 2
ROWS = 8

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
        """PyTorch's multiplies out (x - mean) * rstd, which cancels. The gradient of each use of x is rounded, which
        is all that is left where an expanded x adds up what cancels."""
        x = x.view_as(x)
        if x.requires_grad:
            x.register_hook(self.mode.result)
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

    def gelu_tanh(self, x):
        """The hyperbolic tangent is rounded, and far below 0 all that is left of 1 + tanh is that rounding."""
        inner = self.mode.result(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
        return x * 0.5 * (1 + self.mode.result(torch.tanh(inner)))

    def log_softmax(self, x, dim):
        """The sum whose logarithm is taken is rounded, which near 0 is all that errs."""
        if x.numel() == 0:
            return torch.log_softmax(x, dim)
        shifted = x - x.detach().amax(dim, keepdim=True)
        powers = self.mode.result(torch.exp(shifted))
        return shifted - torch.log(self.mode.result(powers.sum(dim, keepdim=True)))

    def cross_entropy(self, x, targets, ignore_index):
        return F.nll_loss(self.log_softmax(x, -1), targets, ignore_index=ignore_index)

    def linear_cross_entropy(self, x, weight, targets):
        """Logits and their gradient are rounded between the product and the loss."""
        logits = self.mode.result(F.linear(self.mode.operand(x), self.mode.operand(weight)))
        if logits.requires_grad:
            logits.register_hook(self.mode.result)
        return self.cross_entropy(logits, targets, -100)


NATIVE = {
    "var": torch.var,
    "std": torch.std,
    "layer_norm": F.layer_norm,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "linspace": torch.linspace,
    "log_softmax": torch.log_softmax,
    "cross_entropy": F.cross_entropy,
    "linear_cross_entropy": lambda x, weight, targets: F.cross_entropy(F.linear(x, weight), targets),
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
        self.keeps_whole = False
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
        if not x.is_floating_point():
            return x
        x = x.detach()
        # A power of a negative base has no value beside a whole exponent.
        return torch.where(x == x.round(), x, self.perturb(x)) if self.keeps_whole else self.perturb(x)
