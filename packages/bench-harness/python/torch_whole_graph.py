"""A whole step of the model as one CUDA graph, captured by hand: the loss compiled by Inductor, backward, and fused AdamW.

It takes PyTorch at its strongest: `torch.compile(mode="reduce-overhead")` replays graphs of forward and backward alone, with
the optimizer and the host in between.
"""

import gc
import math

import torch

from peer_protocol import NotAvailable
from transformer_lm import cross_entropy

# PyTorch asks for three before a capture: kernels are compiled and tuned, and the optimizer makes its state.
WARMUP_STEPS = 3


def check_whole_graph(job):
    """Refuses what has no such graph, before a model is made."""
    if not job["device"].startswith("cuda"):
        raise NotAvailable(
            "whole-graph captures a CUDA graph, which the CPU has not; take --peer-execution compile, or --device cuda."
        )
    if job["dtype"] == "float16":
        raise NotAvailable(
            "whole-graph has no float16: whether a scaled step counts is decided on the host; take --dtype bfloat16."
        )
    if int(torch.__version__.split(".")[0]) < 2:
        raise NotAvailable(f"whole-graph needs PyTorch 2 or newer; this is {torch.__version__}.")


class WholeGraph:
    """Captures the step of a workload whose optimizer, if it has one, is capturable."""

    def __init__(self, workload):
        self.workload = workload
        model = workload.model
        self.has_loss = workload.mode != "forward"

        def loss(ids, targets):
            return cross_entropy(model(ids), targets)

        def logits(ids, targets):
            return model(ids)

        self.compute = torch.compile(loss if self.has_loss else logits, dynamic=False)
        self.warm_up()
        # What the warm-up held would be held twice: the graph has a pool of its own.
        gc.collect()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.output = self.step()

    def step(self):
        """Its loss, or the logits of a forward pass. With no gradients before, backward makes them where they stay."""
        workload = self.workload
        if not self.has_loss:
            with torch.no_grad(), workload.autocast():
                return self.compute(workload.ids, workload.targets)
        with workload.autocast():
            loss = self.compute(workload.ids, workload.targets)
        loss.backward()
        if workload.optimizer is not None:
            workload.optimizer.step()
        return loss.detach()

    def warm_up(self):
        # What is set up by the first steps belongs to their stream, and the default one cannot be captured.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARMUP_STEPS):
                self.step()
                self.workload.model.zero_grad(set_to_none=True)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()

    def replay(self):
        self.graph.replay()

    def checked_loss(self):
        """The loss of the last replay; None where there is none."""
        if not self.has_loss:
            return None
        loss = self.output.item()
        if not math.isfinite(loss):
            raise FloatingPointError(f"the loss became {loss}")
        return loss
