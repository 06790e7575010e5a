"""Times the Transformer language model in JAX, on request: each step is one jit, AdamW included.

Requests and answers, as peer_protocol.py carries them:
  {"command": "prepare", "config": {...}, "batch", "context", "mode", "dtype", "attention", "execution", "device", "seed",
   "threads"}
      -> {"jax", "python", "device", "attention"}; "attention" is the implementation that was taken, cudnn or xla
  {"command": "run", "steps": n}      -> {"deviceMs": [...], "wallMs": [...], "phasesMs": {}, "backToBackMs": [...], "loss"}
  {"command": "reset-peak-memory"}    -> {}
  {"command": "memory"}               -> {"peakAllocatedBytes", "peakReservedBytes"}, null where JAX does not count
A failure has the code NOT_AVAILABLE where JAX or this device has no such thing.
"""

import math
import os
import platform
import time
from collections import deque

from peer_protocol import NotAvailable, serve

# Steps that wait for the device while the one before them is awaited: it never runs dry, and few results are held.
STEPS_AHEAD = 2

INSTALL = 'Install it, for example by `python3 -m pip install "jax[cuda13]"` (on the CPU: jax), and set ROOFLINE_PYTHON.'


def load_jax(device, threads):
    """Imports JAX for one kind of device. Its settings must stand in the environment before it is loaded."""
    # Ours runs on the same GPU: by itself JAX would take three quarters of the memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ["JAX_PLATFORMS"] = "cuda" if device.startswith("cuda") else "cpu"
    if device == "cpu" and hasattr(os, "sched_setaffinity"):
        # XLA starts a thread for each processor that it may use.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    try:
        import jax
    except ImportError as error:
        raise NotAvailable(f"this Python has no JAX ({error}). {INSTALL}") from None
    try:
        return jax, jax.devices()[int(device.split(":")[1]) if ":" in device else 0]
    except RuntimeError as error:
        raise NotAvailable(f"JAX {jax.__version__} does not reach {device} ({error}). {INSTALL}") from None
    except IndexError:
        raise NotAvailable(f"JAX {jax.__version__} finds {len(jax.devices())} GPUs, no {device}.") from None


class Workload:
    def __init__(self, job):
        if job["dtype"] == "float16":
            raise NotAvailable(
                "float16 needs a scaled loss, which JAX does not bring along; take --dtype float32 or bfloat16."
            )
        if job.get("recompute", "none") != "none" or job.get("logits", "whole") != "whole":
            raise NotAvailable("recompute and chunked logits are compared with PyTorch alone; take --peer torch.")
        jax, self.device = load_jax(job["device"], job["threads"])
        import jax.numpy as jnp

        import jax_transformer as lm

        self.jax = jax
        jax.config.update("jax_default_device", self.device)
        # By default XLA rounds float32 to TF32 in products; ours and PyTorch do not.
        jax.config.update("jax_default_matmul_precision", "highest" if job["dtype"] == "float32" else None)
        on_gpu = job["device"].startswith("cuda")
        # cuDNN's attention has no float32.
        self.attention = "cudnn" if on_gpu and job["dtype"] == "bfloat16" else "xla"

        config, context, mode = job["config"], job["context"], job["mode"]
        key, *token_keys = jax.random.split(jax.random.key(job["seed"]), 3)
        shape = (job["batch"], context)
        ids, targets = (
            jax.random.randint(each, shape, 0, config["vocabularySize"], jnp.int32) for each in token_keys
        )
        logits = lm.make_model(config, context, getattr(jnp, job["dtype"]), self.attention)
        loss = lambda weights, ids, targets: lm.cross_entropy(logits(weights, ids), targets)

        def train(state, ids, targets):
            value, gradients = jax.value_and_grad(loss)(state[0], ids, targets)
            return lm.adamw(state, gradients), value

        weights = lm.make_weights(config, key)
        if mode == "train-step":
            # The state is donated: its next values take the place of these.
            self.program, self.state = jax.jit(train, donate_argnums=0), lm.adamw_state(weights)
            self.start = lambda: self.start_training(ids, targets)
        elif mode == "forward-backward":
            program = jax.jit(jax.value_and_grad(loss))
            self.start = lambda: program(weights, ids, targets)
        else:
            program = jax.jit(logits)
            self.start = lambda: (program(weights, ids), None)
        self.has_loss = mode != "forward"
        self.loss_index = 1 if mode == "train-step" else 0
        # Compiles it.
        jax.block_until_ready(self.start())

    def start_training(self, ids, targets):
        self.state, loss = self.program(self.state, ids, targets)
        return self.state, loss

    def run(self, steps):
        """Steps one by one, from an idle device to an idle device by the host's clock, and then as many back to back."""
        step_by_step, back_to_back = self.step_by_step(steps), self.back_to_back(steps)
        loss = self.checked_loss()
        # JAX has no events on the device: one by one, only the host's clock times a step.
        times = {"deviceMs": step_by_step, "wallMs": step_by_step, "phasesMs": {}}
        return {**times, "backToBackMs": back_to_back, "loss": loss}

    def step_by_step(self, steps):
        samples = []
        for _ in range(steps):
            start = time.perf_counter()
            self.results = self.jax.block_until_ready(self.start())
            samples.append((time.perf_counter() - start) * 1e3)
            self.results = self.results[self.loss_index]
        return samples

    def back_to_back(self, steps):
        """The times from the end of one step to that of the next, while others wait, before the first as after the last."""
        # All of a step's results are ready at once, and its state is given to the next: one of them says when it ended.
        waiting = deque(self.start()[self.loss_index] for _ in range(1 + STEPS_AHEAD))
        waiting.popleft().block_until_ready()
        samples, before = [], time.perf_counter()
        for _ in range(steps):
            waiting.append(self.start()[self.loss_index])
            waiting.popleft().block_until_ready()
            end = time.perf_counter()
            samples.append((end - before) * 1e3)
            before = end
        self.results = waiting.pop().block_until_ready()
        return samples

    def checked_loss(self):
        if not self.has_loss:
            return None
        loss = float(self.results)
        if not math.isfinite(loss):
            raise FloatingPointError(f"the loss became {loss}")
        return loss

    def memory(self):
        # Peaks are those of the process, compilation included: JAX cannot begin to count anew.
        counted = self.device.memory_stats() or {}
        return {
            "peakAllocatedBytes": counted.get("peak_bytes_in_use"),
            "peakReservedBytes": counted.get("peak_pool_bytes", counted.get("pool_bytes")),
        }

    def describe(self):
        return {
            "jax": self.jax.__version__,
            "python": platform.python_version(),
            "device": self.device.device_kind,
            "attention": self.attention,
        }


class Server:
    """The workload that was prepared last answers."""

    workload = None

    def __call__(self, request):
        command = request["command"]
        if command == "prepare":
            self.workload = None
            self.workload = Workload(request)
            return self.workload.describe()
        if command == "run":
            return self.workload.run(request["steps"])
        if command == "reset-peak-memory":
            return {}
        if command == "memory":
            return self.workload.memory()
        raise ValueError(f"unknown command {command}")


if __name__ == "__main__":
    serve(Server())
