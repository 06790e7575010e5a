"""Times data-parallel training steps of the Transformer language model in PyTorch, as one of several ranks, on request.

Requests and answers are JSON, one a line, on stdin and stdout:
  {"command": "prepare", "config": {...}, "batch", "context", "dtype", "device", "seed", "threads", "backend",
   "port", "rank", "worldSize", "timeoutSeconds", "parallelMode", "bucketBytes", "optimizer", "attention", "execution",
   "recompute", "logits"}
      -> {"torch", "python", "device"}, once all ranks are there
  {"command": "run", "steps": n}      -> {"stepMs": [...], "peakBytes"}, all ranks beginning each step together;
                                         "peakBytes" since the start of the first, null on the CPU
Failures are answered as peer_protocol.py does.
"""

import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from peer_protocol import serve
from torch_e2e import Workload
from torch_memory_saving import check_recompute
from torch_fsdp import check_fsdp, fast_attention, sharded
from torch_versions import describe
from transformer_lm import adamw


class ParallelWorkload(Workload):
    """`parallel_mode` is that of Roofline's ranks: `overlap`, `fsdp` and `hybrid` are PyTorch's own."""

    def __init__(self, job):
        self.parallel_mode = job["parallelMode"]
        self.is_sharded = self.parallel_mode in ("fsdp", "hybrid")
        if self.is_sharded:
            check_fsdp(job["recompute"])
            check_recompute(job["recompute"], job["attention"])
        dist.init_process_group(
            job["backend"],
            init_method=f"tcp://127.0.0.1:{job['port']}",
            rank=job["rank"],
            world_size=job["worldSize"],
            timeout=timedelta(seconds=job["timeoutSeconds"]),
        )
        # Gradients are reduced before parameters are updated; sharded parameters are what the optimizer gets.
        mode = "forward-backward" if self.is_sharded else "train-step"
        recompute = "none" if self.is_sharded else job["recompute"]
        own = {"mode": mode, "recompute": recompute, "execution": "eager", "updatesAtOnce": False}
        super().__init__({**job, **own})
        self.attends = lambda: fast_attention(job["attention"], self.device_type)
        if self.is_sharded:
            self.sharded = sharded(self.model, job, self.device_type)
            self.optimizer = adamw(self.sharded, torch.device(job["device"]))
        else:
            self.replicate(job)
        self.timeline.reset_peak_memory()

    def replicate(self, job):
        for parameter in self.model.parameters():
            dist.broadcast(parameter.data, 0)
        self.forward = self.model
        if self.parallel_mode == "overlap":
            # The tables of RoPE and the mask are the same everywhere, and Gloo does not take bools.
            buffers = [name for name, _ in self.model.named_buffers()]
            DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(self.model, buffers)
            self.forward = DistributedDataParallel(
                self.model,
                bucket_cap_mb=job["bucketBytes"] / 2**20,
                gradient_as_bucket_view=True,
                broadcast_buffers=False,
            )
        self.run_model = self.forward
        if job["optimizer"] == "sharded":
            fused = {"fused": True} if self.optimizer.defaults.get("fused") else {}
            self.optimizer = ZeroRedundancyOptimizer(self.model.parameters(), torch.optim.AdamW, **fused)

    def reduce_gradients(self):
        gradients = [parameter.grad for parameter in self.model.parameters()]
        if self.parallel_mode == "naive":
            for gradient in gradients:
                average(gradient)
        elif self.parallel_mode == "flat":
            flat = _flatten_dense_tensors(gradients)
            average(flat)
            for gradient, reduced in zip(gradients, _unflatten_dense_tensors(flat, gradients)):
                gradient.copy_(reduced)

    def train_step(self):
        if self.is_sharded:
            # In the dtype that its parameters are gathered in.
            self.sharded(self.ids, self.targets).backward()
        else:
            with self.autocast():
                loss = self.loss()
            loss.backward()
            self.reduce_gradients()
        self.optimizer.step()
        (self.sharded if self.is_sharded else self.model).zero_grad(set_to_none=True)

    def run(self, steps):
        step_ms = []
        for _ in range(steps):
            self.timeline.synchronize()
            dist.barrier()
            start = time.perf_counter()
            with self.attends():
                self.train_step()
            self.timeline.synchronize()
            step_ms.append((time.perf_counter() - start) * 1e3)
        return {"stepMs": step_ms, "peakBytes": self.timeline.memory()["peakAllocatedBytes"]}


def average(tensor):
    if dist.get_backend() == "nccl":
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        return
    # Gloo has no averages.
    dist.all_reduce(tensor)
    tensor.div_(dist.get_world_size())


class Server:
    workload = None

    def __call__(self, request):
        if request["command"] == "run":
            return self.workload.run(request["steps"])
        if request["command"] != "prepare":
            raise ValueError(f"unknown command {request['command']}")
        self.workload = ParallelWorkload(request)
        return describe(request)


if __name__ == "__main__":
    serve(Server())
