"""How the programs here talk to Roofline: JSON, one request a line on stdin, one answer a line on stdout.

A failure answers {"error": {"name", "message", "code"}}; the program goes on, and ends with stdin.
"""

import json
import os
import platform
import sys

import torch

from blas_library import describe_blas


class NotAvailable(Exception):
    """What was asked for does not exist in this PyTorch or on this device; the message says why."""


def describe(job):
    on_gpu = job["device"].startswith("cuda")
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(job["device"]) if on_gpu else "cpu",
        "blas": None if on_gpu else describe_blas(),
    }


def serve(answer):
    """Answers each request with the dictionary that `answer` makes of it."""
    # Answers keep a descriptor of their own: whatever else prints goes to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:
            reply = {"error": describe_error(error)}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


def describe_error(error):
    code = code_of(error)
    return {"name": type(error).__name__, "message": str(error), **({"code": code} if code else {})}


def code_of(error):
    if isinstance(error, NotAvailable):
        return "NOT_AVAILABLE"
    # torch.cuda.OutOfMemoryError is a RuntimeError whose name says it; older ones say it in words only.
    out_of_memory = "out of memory" in str(error) or "can't allocate memory" in str(error)
    return "OUT_OF_MEMORY" if out_of_memory else None
