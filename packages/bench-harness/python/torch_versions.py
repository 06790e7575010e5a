"""Which PyTorch answers, on which device, and with which library of matrix products on the CPU."""

import platform

import torch

from blas_library import describe_blas


def describe(job):
    on_gpu = job["device"].startswith("cuda")
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(job["device"]) if on_gpu else "cpu",
        "blas": None if on_gpu else describe_blas(),
    }
