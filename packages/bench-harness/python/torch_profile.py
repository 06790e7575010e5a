"""The kernels of one step, by torch.profiler: on a GPU what ran on it, on the CPU the aten ops by their self time."""

import json
import os
import tempfile
from typing import NamedTuple, Optional

import torch
from torch.profiler import ProfilerActivity, record_function

PHASES = ("forward", "backward", "optimizer")
# Categories of events in Kineto's traces.
DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
LAUNCHES = ("cuda_runtime", "cuda_driver")


class Kernel(NamedTuple):
    """Times are microseconds; `duration` is less than end - start where the time of others inside is left out."""

    name: str
    phase: Optional[str]
    start: float
    end: float
    duration: float


def profile_step(workload):
    """Runs one step under the profiler; gives its device time and its kernels as lists, names by index."""
    on_gpu = workload.device_type == "cuda"
    timeline = workload.timeline
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
    timeline.synchronize()
    with torch.profiler.profile(activities=activities) as profiler:
        start = timeline.mark()
        workload.step(record_function)
        end = timeline.mark()
        timeline.synchronize()
    kernels = gpu_kernels(trace_events(profiler)) if on_gpu else cpu_ops(profiler.events())
    return {"deviceMs": timeline.elapsed_ms(start, end), "busyUs": busy_us(kernels), **pack(kernels)}


def trace_events(profiler):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8", errors="replace") as file:
            return json.load(file, strict=False)["traceEvents"]


def gpu_kernels(events):
    """Of a trace's events, in Chrome's format.

    A kernel belongs to the phase in which the call that launched it began: both carry one correlation id. Thus
    phases need no synchronization at their borders, which would change the step, and it does not matter that the
    backward pass launches from a thread of its own. The trace names the kind of each event, while prof.events()
    mixes kernels with the device's copies of the phases.
    """
    phases = [
        (event["name"], event["ts"], event["ts"] + event["dur"])
        for event in events
        if event.get("cat") == "user_annotation" and event["name"] in PHASES
    ]
    launched_at = {
        event["args"]["correlation"]: event["ts"]
        for event in events
        if event.get("cat") in LAUNCHES and "correlation" in event.get("args", {})
    }
    kernels = []
    for event in events:
        if event.get("cat") in DEVICE_WORK:
            phase = phase_at(phases, launched_at.get(event.get("args", {}).get("correlation")))
            start, duration = event["ts"], event["dur"]
            kernels.append(Kernel(event["name"], phase, start, start + duration, duration))
    return kernels


def cpu_ops(events):
    phases = [(event.name, event.time_range.start, event.time_range.end) for event in events if event.name in PHASES]
    return [
        Kernel(
            event.name,
            phase_at(phases, event.time_range.start),
            event.time_range.start,
            event.time_range.end,
            event.self_cpu_time_total,
        )
        for event in events
        if event.name.startswith("aten::")
    ]


def phase_at(phases, time):
    if time is None:
        return None
    return next((name for name, start, end in phases if start <= time <= end), None)


def busy_us(kernels):
    """The time in which at least one of the kernels ran."""
    busy, reached = 0.0, float("-inf")
    for kernel in sorted(kernels, key=lambda kernel: kernel.start):
        busy += max(0.0, kernel.end - max(kernel.start, reached))
        reached = max(reached, kernel.end)
    return busy


def pack(kernels):
    """Lists in place of objects; names are indices into `strings`, -1 stands for no phase."""
    strings = {}

    def index(text):
        return -1 if text is None else strings.setdefault(text, len(strings))

    packed = {
        "name": [index(kernel.name) for kernel in kernels],
        "phase": [index(kernel.phase) for kernel in kernels],
        "durationUs": [round(kernel.duration, 3) for kernel in kernels],
    }
    return {"strings": list(strings), "kernels": packed}
