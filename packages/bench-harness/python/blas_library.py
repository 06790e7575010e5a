"""Which library PyTorch's matrix products on the CPU come from.

How fast they are is its doing: an OpenBLAS that is older than the processor takes it for an ancient one, and runs at a
fraction of its speed until OPENBLAS_CORETYPE names a better one.
"""

import ctypes
import os
import re

import torch


def describe_blas():
    """Such as `OpenBLAS 0.3.21, kernels for SkylakeX`; None where that is unknown."""
    if torch.backends.mkl.is_available():
        return "MKL"
    libraries = mapped_files()
    for path in libraries:
        if "openblas" in path:
            described = describe_openblas(path)
            if described:
                return described
    return next((os.path.basename(path) for path in libraries if re.match(r"lib\w*blas", os.path.basename(path))), None)


def describe_openblas(path):
    try:
        library = ctypes.CDLL(path)
        config, core = library.openblas_get_config, library.openblas_get_corename
    except (AttributeError, OSError):
        return None
    config.restype = core.restype = ctypes.c_char_p
    name, version = config().decode().split()[:2]
    return f"{name} {version}, kernels for {core().decode()}"


def mapped_files():
    """The files that lie in this process's memory, as Linux reports them; none elsewhere."""
    try:
        with open("/proc/self/maps") as maps:
            lines = (line.split(maxsplit=5) for line in maps)
            return sorted({fields[5].strip() for fields in lines if len(fields) == 6})
    except OSError:
        return []
