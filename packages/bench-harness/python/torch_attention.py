"""Times attention in PyTorch, on request: separate operations, those compiled, FlashAttention and cuDNN's.

Requests and answers, as peer_protocol.py carries them:
  {"command": "prepare", "batch", "heads", "sequence", "headDimension", "dtype", "device", "seed", "threads",
   "flushedBytes", "mask", "keepsGraph"}; "mask" is "causal", also if not given, or "full"; "keepsGraph", true if not given,
   whether a backward pass may run again
      -> {"torch", "python", "device"}
  {"command": "probe", "attention"}   -> {"peakAllocatedBytes"}, null on the CPU; runs both passes once
  {"command": "sample", "attention", "pass", "warmupMs", "repeatMs"}   -> {"samplesMs": [...]}
  {"command": "time", "attention", "pass", "count"}   -> {"deviceMs": [...], "wallMs": [...], "beforeBackwardBytes",
   "peakAllocatedBytes"}; each pass, forward or backward, from an idle device to an idle one; null on the CPU
  {"command": "release"}   -> {}; frees what was prepared
A failure has the code NOT_AVAILABLE where this PyTorch or this device has no such attention.
"""

import contextlib
import gc
import importlib
import sys
import time
import warnings

import torch
import torch.nn.functional as F

from do_bench import do_bench, timeline
from peer_protocol import NotAvailable, serve
from torch_versions import describe
from transformer_lm import plain_attention


def plain(causal, keeps_graph):
    return plain_attention, contextlib.nullcontext


def compiled(causal, keeps_graph):
    if not hasattr(torch, "compile"):
        raise NotAvailable(f"torch.compile needs PyTorch 2.0 or newer; this is {torch.__version__}")
    functorch = importlib.import_module("torch._functorch.config")
    if hasattr(functorch, "donated_buffer"):
        # A backward pass that runs again and again keeps what it reads; another may write into it.
        functorch.donated_buffer = not keeps_graph
    return torch.compile(plain_attention, fullgraph=True), contextlib.nullcontext


def sdpa(backend):
    """`scaled_dot_product_attention` with one kernel, and the context in which it takes that one or none."""

    def make(causal, keeps_graph):
        try:
            from torch.nn.attention import SDPBackend, sdpa_kernel
        except ImportError:
            raise NotAvailable(
                f"torch.nn.attention.sdpa_kernel needs PyTorch 2.3 or newer; this is {torch.__version__}"
            ) from None
        if not hasattr(SDPBackend, backend):
            raise NotAvailable(f"PyTorch {torch.__version__} has no SDPBackend.{backend}")
        attention = lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return attention, lambda: sdpa_kernel(getattr(SDPBackend, backend))

    return make


ATTENTIONS = {
    "plain": plain,
    "compiled": compiled,
    "flash": sdpa("FLASH_ATTENTION"),
    "cudnn": sdpa("CUDNN_ATTENTION"),
}
WITH_MASK = ("plain", "compiled")

# What scaled_dot_product_attention says where the one kernel that it may take does not take the inputs.
NO_KERNEL = ("No available kernel", "No viable backend")


class Workload:
    def __init__(self, job):
        self.device = torch.device(job["device"])
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        else:
            torch.set_num_threads(job["threads"])
        torch.manual_seed(job["seed"])
        shape = [job[name] for name in ("batch", "heads", "sequence", "headDimension")]
        dtype = getattr(torch, job["dtype"])
        draw = lambda: torch.randn(shape, dtype=torch.float32, device=self.device).to(dtype)
        self.leaves = [draw().requires_grad_() for _ in range(3)]
        self.gradient = draw()
        self.flushed_bytes = job["flushedBytes"]
        self.flushed = None
        self.made = {}
        self.keeps_graph = job.get("keepsGraph", True)
        # As in a new process: what was compiled for shapes before would have this one compiled for any.
        if "torch._dynamo" in sys.modules:
            torch._dynamo.reset()
        self.causal = job.get("mask", "causal") == "causal"
        self.mask = None

    def attention(self, name):
        if name not in self.made:
            self.made[name] = ATTENTIONS[name](self.causal, self.keeps_graph)
        return self.made[name]

    def forward(self, attention):
        return attention(*self.leaves, self.mask)

    def clear_gradients(self):
        for leaf in self.leaves:
            leaf.grad = None

    def probe(self, name):
        on_gpu = self.device.type == "cuda"
        self.make_ready(name)
        attention, context = self.attention(name)
        with warnings.catch_warnings(record=True) as caught, context():
            warnings.simplefilter("always")
            # The second pass counts: a compiler's first one takes memory of its own.
            for _ in range(2):
                if on_gpu:
                    torch.cuda.reset_peak_memory_stats(self.device)
                try:
                    self.forward(attention).backward(self.gradient)
                except RuntimeError as error:
                    if not any(words in str(error) for words in NO_KERNEL):
                        raise
                    # The warnings say what each kernel wants.
                    reasons = dict.fromkeys(str(each.message).split(" (Triggered")[0] for each in caught)
                    raise NotAvailable(" ".join([str(error), *reasons])) from None
                self.clear_gradients()
        return {"peakAllocatedBytes": torch.cuda.max_memory_allocated(self.device) if on_gpu else None}

    def sample(self, name, which, warmup_ms, repeat_ms):
        self.make_ready(name)
        attention, context = self.attention(name)
        timing = (self.device, warmup_ms, repeat_ms, self.clear_gradients, self.flush())
        with context():
            samples = do_bench(self.pass_of(attention, which), *timing)
        self.clear_gradients()
        return {"samplesMs": samples}

    def time(self, name, which, count):
        """Times each pass by itself, and one before them that does not count: it asks the driver for memory."""
        self.make_ready(name)
        attention, context = self.attention(name)
        mark, elapsed_ms, synchronize = timeline(self.device)
        on_gpu = self.device.type == "cuda"
        device_ms, wall_ms, held = [], [], None
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(self.device)
        with context():
            for _ in range(count + 1):
                output = self.forward(attention) if which == "backward" else None
                synchronize()
                if on_gpu and which == "backward":
                    held = torch.cuda.memory_allocated(self.device)
                wall_start, start = time.perf_counter(), mark()
                if which == "backward":
                    output.backward(self.gradient)
                else:
                    output = self.forward(attention)
                end = mark()
                synchronize()
                wall_ms.append((time.perf_counter() - wall_start) * 1e3)
                device_ms.append(elapsed_ms(start, end))
                output = None
                self.clear_gradients()
        peak = torch.cuda.max_memory_allocated(self.device) if on_gpu else None
        return {
            "deviceMs": device_ms[1:],
            "wallMs": wall_ms[1:],
            "beforeBackwardBytes": held,
            "peakAllocatedBytes": peak,
        }

    def pass_of(self, attention, which):
        if which == "forward":
            return lambda: self.forward(attention)
        if which == "both":
            return lambda: self.forward(attention).backward(self.gradient)
        output = self.forward(attention)
        return lambda: output.backward(self.gradient, retain_graph=True)

    def flush(self):
        """Writes more than the L2 cache holds; None where nothing is to be flushed."""
        if self.flushed_bytes == 0:
            return None
        if self.flushed is None:
            self.flushed = torch.empty(self.flushed_bytes, dtype=torch.int8, device=self.device)
        return self.flushed.zero_

    def make_ready(self, name):
        """Has a mask for those that take one, and nothing of what ran, or failed, before."""
        if name in WITH_MASK and self.causal and self.mask is None:
            sequence = self.leaves[0].shape[-2]
            self.mask = torch.ones(sequence, sequence, dtype=torch.bool, device=self.device).tril()
        if name not in WITH_MASK:
            self.mask = None
        self.give_back()

    def give_back(self):
        """Leaves to other processes the memory that nothing here holds."""
        give_back(self.device)


def give_back(device):
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


class Server:
    """The workload that was prepared last answers."""

    workload = None

    def __call__(self, request):
        command = request["command"]
        if command == "prepare":
            # Both at once would need twice the memory.
            self.workload = None
            self.workload = Workload(request)
            return describe(request)
        if command == "release":
            if self.workload is not None:
                device, self.workload = self.workload.device, None
                give_back(device)
            return {}
        reply = self.run(command, request)
        self.workload.give_back()
        return reply

    def run(self, command, request):
        if command == "probe":
            return self.workload.probe(request["attention"])
        if command == "sample":
            which, name = request["pass"], request["attention"]
            return self.workload.sample(name, which, request["warmupMs"], request["repeatMs"])
        if command == "time":
            return self.workload.time(request["attention"], request["pass"], request["count"])
        raise ValueError(f"unknown command {command}")


if __name__ == "__main__":
    serve(Server())
