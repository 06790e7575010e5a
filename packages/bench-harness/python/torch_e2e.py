"""Times and profiles the Transformer language model in PyTorch, eager, compiled or as one graph, on request.

Requests and answers are JSON, one a line, on stdin and stdout:
  {"command": "prepare", "config": {...}, "batch", "context", "mode", "dtype", "attention",
   "execution", "device", "seed", "threads", "recompute", "logits"}
      -> {"torch", "python", "device", "blas"}
  {"command": "run", "steps": n}      -> {"deviceMs": [...], "wallMs": [...], "phasesMs": {...}}, and of a whole graph
                                         its "loss"
  {"command": "profile"}              -> {"deviceMs", "busyUs", "strings", "kernels"}; see torch_profile.py
  {"command": "reset-peak-memory"}    -> {}
  {"command": "memory"}               -> {"peakAllocatedBytes", "peakReservedBytes"}, null on the CPU
Failures are answered as peer_protocol.py does.
"""

import time
from contextlib import contextmanager

import torch

from peer_protocol import NotAvailable, serve
from torch_profile import profile_step
from torch_versions import describe
from torch_whole_graph import WholeGraph, check_whole_graph
from torch_memory_saving import UpdateAtOnce, check_recompute, chunked_cross_entropy, run_layers
from transformer_lm import TransformerLM, adamw, adamw_of, cross_entropy


class CpuTimeline:
    def mark(self):
        return time.perf_counter()

    def elapsed_ms(self, start, end):
        return (end - start) * 1e3

    def synchronize(self):
        pass

    def reset_peak_memory(self):
        pass

    def memory(self):
        return {"peakAllocatedBytes": None, "peakReservedBytes": None}


class CudaTimeline:
    def __init__(self, device):
        self.device = device

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ms(self, start, end):
        return start.elapsed_time(end)

    def synchronize(self):
        torch.cuda.synchronize(self.device)

    def reset_peak_memory(self):
        torch.cuda.reset_peak_memory_stats(self.device)

    def memory(self):
        return {
            "peakAllocatedBytes": torch.cuda.max_memory_allocated(self.device),
            "peakReservedBytes": torch.cuda.max_memory_reserved(self.device),
        }


class Workload:
    def __init__(self, job):
        self.mode = job["mode"]
        execution = job.get("execution", "eager")
        if execution == "whole-graph":
            check_whole_graph(job)
        self.recompute, self.logits = job.get("recompute", "none"), job.get("logits", "whole")
        check_recompute(self.recompute, job["attention"])
        if execution == "whole-graph" and (self.recompute != "none" or self.logits != "whole"):
            raise NotAvailable("whole-graph keeps all of its activations; take --peer-execution compile or eager.")
        device = torch.device(job["device"])
        self.device_type = device.type
        if device.type == "cuda":
            torch.cuda.set_device(device)
            self.timeline = CudaTimeline(device)
        else:
            torch.set_num_threads(job["threads"])
            self.timeline = CpuTimeline()
        self.autocast_dtype = None if job["dtype"] == "float32" else getattr(torch, job["dtype"])

        torch.manual_seed(job["seed"])
        with default_device(device):
            self.model = TransformerLM(job["config"], job["context"], job["attention"], self.layer_runner()).to(device)
        self.run_model = compiled(self.model, execution)
        self.is_compiled = execution != "eager"
        shape = (job["batch"], job["context"])
        self.ids = torch.randint(0, job["config"]["vocabularySize"], shape, device=device)
        self.targets = torch.randint(0, job["config"]["vocabularySize"], shape, device=device)
        # A graph can have no optimizer that counts its steps on the host.
        options = {"capturable": True} if execution == "whole-graph" else {}
        trains = self.mode == "train-step"
        # To save memory, which is measured on GPUs; a scaled step looks at all gradients first.
        wanted = job.get("updatesAtOnce", self.recompute != "none" and device.type == "cuda")
        updates_at_once = trains and wanted and job["dtype"] != "float16"
        self.at_once = UpdateAtOnce(self.model, device, adamw_of) if updates_at_once else None
        self.optimizer = adamw(self.model, device, **options) if trains and not updates_at_once else None
        # PyTorch scales losses on the GPU alone; on the CPU it has no float16 autocast before 2.1 either.
        scaled = device.type == "cuda" and self.optimizer is not None and job["dtype"] == "float16"
        self.scaler = torch.cuda.amp.GradScaler(enabled=scaled)
        self.whole = WholeGraph(self) if execution == "whole-graph" else None

    def autocast(self):
        return torch.autocast(self.device_type, self.autocast_dtype, enabled=self.autocast_dtype is not None)

    def layer_runner(self):
        if self.recompute == "none":
            return None
        return lambda layers, x, *shared: run_layers(layers, x, self.recompute, *shared)

    def loss(self):
        if self.logits == "whole":
            return cross_entropy(self.run_model(self.ids), self.targets)
        features = self.run_model(self.ids, features_only=True)
        dtype = self.autocast_dtype or features.dtype
        return chunked_cross_entropy(features, self.model.lm_head.weight, self.targets, dtype, self.is_compiled)

    def step(self, phase):
        """One step; each of its phases runs in `with phase(name)`. A whole graph has none."""
        if self.whole is not None:
            self.whole.replay()
            return
        if self.mode == "forward":
            with phase("forward"), torch.no_grad(), self.autocast():
                self.run_model(self.ids)
            return
        with phase("forward"), self.autocast():
            loss = self.loss()
        with phase("backward"):
            self.scaler.scale(loss).backward()
        if self.optimizer is not None:
            with phase("optimizer"):
                self.scaler.step(self.optimizer)
                self.scaler.update()
        self.model.zero_grad(set_to_none=True)

    def run(self, steps):
        device_ms, wall_ms, phases_ms = [], [], {}
        timeline = self.timeline
        for _ in range(steps):
            marks = []

            @contextmanager
            def phase(name):
                phase_start = timeline.mark()
                yield
                marks.append((name, phase_start, timeline.mark()))

            timeline.synchronize()
            wall_start = time.perf_counter()
            start = timeline.mark()
            self.step(phase)
            end = timeline.mark()
            timeline.synchronize()
            wall_ms.append((time.perf_counter() - wall_start) * 1e3)
            device_ms.append(timeline.elapsed_ms(start, end))
            for name, phase_start, phase_end in marks:
                phases_ms.setdefault(name, []).append(timeline.elapsed_ms(phase_start, phase_end))
        times = {"deviceMs": device_ms, "wallMs": wall_ms, "phasesMs": phases_ms}
        return times if self.whole is None else {**times, "loss": self.whole.checked_loss()}


def compiled(model, execution):
    """The model as it is, or by torch.compile in one of its modes."""
    if execution in ("eager", "whole-graph"):
        return model
    if not hasattr(torch, "compile"):
        raise RuntimeError(f"torch.compile needs PyTorch 2 or newer; this is {torch.__version__}")
    return torch.compile(model, mode=None if execution == "compile" else execution)


class default_device:
    """Makes parameters on the device at once where PyTorch (2.0 and newer) can; elsewhere they are moved."""

    def __init__(self, device):
        self.context = torch.device(device) if hasattr(torch.device, "__enter__") else None

    def __enter__(self):
        if self.context is not None:
            self.context.__enter__()

    def __exit__(self, *exception):
        if self.context is not None:
            self.context.__exit__(*exception)


def answer(workload, request):
    command = request["command"]
    if command == "run":
        return workload.run(request["steps"])
    if command == "profile":
        return profile_step(workload)
    if command == "reset-peak-memory":
        workload.timeline.reset_peak_memory()
        return {}
    if command == "memory":
        return workload.timeline.memory()
    raise ValueError(f"unknown command {command}")


class Server:
    """The workload that was prepared last answers."""

    workload = None

    def __call__(self, request):
        if request["command"] != "prepare":
            return answer(self.workload, request)
        self.workload = Workload(request)
        return describe(request)


if __name__ == "__main__":
    serve(Server())
