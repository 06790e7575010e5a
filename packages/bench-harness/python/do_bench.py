"""Times work on a device as triton.testing.do_bench does; src/measuring/do-bench.ts does the same for Roofline."""

import time

import torch

ESTIMATES = 5


def do_bench(work, device, warmup_ms, repeat_ms, before_each, flush):
    """Milliseconds of each call of `work`, between two events on the device.

    Calls fill `repeat_ms` after `warmup_ms`, at least one of each. `before_each` and `flush` (None for nothing) run
    before every one that counts, outside of its time. On a GPU the host does not wait between calls.
    """
    mark, elapsed_ms, synchronize = timeline(device)

    def prepare():
        before_each()
        if flush is not None:
            flush()

    prepare()
    work()
    synchronize()
    start = mark()
    for _ in range(ESTIMATES):
        prepare()
        work()
    end = mark()
    synchronize()
    estimate_ms = elapsed_ms(start, end) / ESTIMATES
    for _ in range(max(1, int(warmup_ms / estimate_ms))):
        before_each()
        work()
    marks = []
    for _ in range(max(1, int(repeat_ms / estimate_ms))):
        prepare()
        start = mark()
        work()
        marks.append((start, mark()))
    synchronize()
    return [elapsed_ms(start, end) for start, end in marks]


def timeline(device):
    if device.type != "cuda":
        return time.perf_counter, lambda start, end: (end - start) * 1e3, lambda: None

    def mark():
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    return mark, lambda start, end: start.elapsed_time(end), lambda: torch.cuda.synchronize(device)
