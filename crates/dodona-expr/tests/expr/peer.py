"""Answers each line {"expr": ..., "names": {...}} with what simpleeval makes of it."""

import json
import sys
import warnings

from simpleeval import EvalWithCompoundTypes

warnings.simplefilter("ignore")
# Integers are compared as text, also those that are too long for the default limit.
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)

FUNCTIONS = {
    f.__name__: f
    for f in (int, float, str, bool, abs, min, max, round, sum, len, any, all, sorted, reversed)
}
CONSTANTS = {"True": True, "False": False, "None": None}


def encode(value):
    """A form in which values of different types are never equal."""
    if value is None:
        return ["None"]
    name = type(value).__name__
    if name in ("bool", "str"):
        return [name, value]
    if name == "int":
        return [name, str(value)]
    if name == "float":
        return [name, repr(value)]
    if name in ("list", "tuple"):
        return [name, [encode(item) for item in value]]
    if name == "set":
        return [name, sorted((encode(item) for item in value), key=json.dumps)]
    if name == "dict":
        return [name, [[encode(k), encode(v)] for k, v in value.items()]]
    return ["other", name]


def answer(question):
    evaluator = EvalWithCompoundTypes(functions=dict(FUNCTIONS), names={**CONSTANTS, **question["names"]})
    try:
        value = evaluator.eval(question["expr"])
        return {"value": encode(value), "repr": repr(value)}
    except RecursionError:
        return {"error": "RecursionError"}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)[:200]}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
