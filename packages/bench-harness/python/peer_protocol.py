"""How the programs here talk to Roofline: JSON, one request a line on stdin, one answer a line on stdout.

A failure answers {"error": {"name", "message", "code"}}; the program goes on, and ends with stdin.
"""

import json
import os
import sys


class NotAvailable(Exception):
    """What was asked for does not exist in this PyTorch or JAX or on this device; the message says why."""


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
    # PyTorch and XLA have no error of their own for it in all versions, but say it in words.
    said = str(error).lower()
    out_of_memory = any(words in said for words in ("out of memory", "can't allocate memory", "resource_exhausted"))
    return "OUT_OF_MEMORY" if out_of_memory else None
