"""A rule engine as one would write it in Python: simpleeval, Jinja2 and lupa.

Everything that can be done once is done once: conditions are parsed, templates and scripts compiled
when rules are loaded. One line of JSON in, one line out.
"""

import json
import sys
import time
from types import SimpleNamespace

from jinja2.sandbox import SandboxedEnvironment
from lupa import LuaRuntime
from simpleeval import EvalWithCompoundTypes

templates = SandboxedEnvironment()
lua = LuaRuntime(unpack_returned_tuples=True)


def attributes(value):
    """Dictionaries with their fields as attributes, as conditions write them."""
    return json.loads(json.dumps(value), object_hook=lambda fields: SimpleNamespace(**fields))


class Rule:
    def __init__(self, source):
        self.trigger = source["trigger"]
        self.expression = source.get("expression")
        self.tree = EvalWithCompoundTypes().parse(self.expression) if self.expression else None
        self.script = lua.eval(f"function(context) {source['script']} end") if "script" in source else None
        self.message = templates.from_string(source["message"])

    def holds(self, evaluator, context):
        if self.tree is not None:
            return evaluator.eval(self.expression, self.tree)
        return self.script(context)


class Engine:
    def __init__(self, rules):
        self.rules = {}
        for source in sorted(rules, key=lambda rule: (-rule["priority"], rule["id"])):
            rule = Rule(source)
            self.rules.setdefault(rule.trigger, []).append(rule)

    def event(self, trigger, context):
        functions = {"any": any, "len": len, "str": str}
        names = {"context": context, "True": True, "False": False, "None": None}
        evaluator = EvalWithCompoundTypes(functions=functions, names=names)
        messages = []
        for rule in self.rules.get(trigger, ()):
            try:
                if rule.holds(evaluator, context):
                    messages.append(rule.message.render(context=context))
            except Exception as error:
                sys.stderr.write(f"{error}\n")
        return messages


engine = None
for line in sys.stdin:
    asked = json.loads(line)
    if "rules" in asked:
        engine = Engine(asked["rules"])
        print(json.dumps({"loaded": len(asked["rules"])}), flush=True)
        continue
    trigger, context = asked["trigger"], attributes(asked["context"])
    first = engine.event(trigger, context)
    begun = time.process_time_ns()
    for _ in range(asked["times"]):
        engine.event(trigger, context)
    took = (time.process_time_ns() - begun) / asked["times"]
    print(json.dumps({"fired": len(first), "first": first[:1], "ns": took}), flush=True)
