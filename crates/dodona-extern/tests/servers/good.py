"""A well-behaved MCP server over standard input and output, in nothing but Python itself.

Its tools do what tests need to see: progress, cancellation, structured results, other tools than
before, a crash, processes of its own.
"""

import json
import os
import subprocess
import sys
import threading
import time

WRITE = threading.Lock()
CANCELLED = set()
MORE = []
ANSWERS = {}
ASKED_FOR = []
ANSWERED = threading.Condition()


def send(message):
    with WRITE:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def tool(name, properties=None, reads=False, **more):
    schema = {"type": "object", "properties": properties or {}}
    annotations = {"readOnlyHint": True} if reads else {}
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema,
            "annotations": annotations, **more}


STRING, NUMBER = {"type": "string"}, {"type": "number"}
SUM = {"type": "object", "properties": {"sum": NUMBER}, "required": ["sum"]}


def tools():
    return [
        tool("say", {"text": STRING}, reads=True),
        {**tool("addUp", {"a": NUMBER, "b": NUMBER}, reads=True, outputSchema=SUM),
         "inputSchema": {"type": "object", "properties": {"a": NUMBER, "b": NUMBER},
                         "required": ["a", "b"], "additionalProperties": False}},
        tool("work", {"file": STRING, "steps": NUMBER, "deaf": {"type": "boolean"}}),
        tool("hang", {}),
        tool("fail", {}),
        tool("wrong_sum", {}, outputSchema=SUM),
        tool("big", {"bytes": NUMBER}),
        tool("environment", {}, reads=True),
        tool("pid", {}, reads=True),
        tool("spawn", {}),
        tool("crash", {}),
        tool("learn", {"name": STRING}),
        tool("resources", {}),
        tool("ask", {}, reads=True),
        tool("protocol", {}, reads=True),
        *[tool(name) for name in MORE],
    ]


def beat(file, number):
    with open(file, "a") as out:
        out.write(f"{number}\n")


def work(request, arguments):
    """Counts into a file and tells so, until it is done or cancelled."""
    steps = int(arguments.get("steps", 3))
    token = request["params"].get("_meta", {}).get("progressToken")
    for number in range(1, steps + 1):
        if request["id"] in CANCELLED and not arguments.get("deaf"):
            return None
        if arguments.get("file"):
            beat(arguments["file"], number)
        send({"method": "notifications/progress", "params": {
            "progressToken": token, "progress": number, "total": steps,
            "message": f"step {number}"}})
        time.sleep(0.05)
    return text(f"{steps} steps")


def spawn():
    """A process that leaves its parent, its group and its session."""
    code = ("import os, sys, time\n"
            "if os.fork(): os._exit(0)\n"
            "os.setsid()\n"
            "if os.fork(): os._exit(0)\n"
            "print(os.getpid(), flush=True)\n"
            "time.sleep(600)\n")
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                             stdin=subprocess.DEVNULL)
    return text(child.stdout.readline().decode().strip())


def learn(name):
    MORE.append(name)
    send({"method": "notifications/tools/list_changed"})
    return text("learnt")


QUESTIONS = {
    "sampling/createMessage": {"messages": [], "maxTokens": 10},
    "elicitation/create": {"message": "Who are you?",
                           "requestedSchema": {"type": "object", "properties": {}}},
    "roots/list": {},
}


def ask():
    """What the client says to everything that a server may ask of one."""
    for method, params in QUESTIONS.items():
        send({"id": method, "method": method, "params": params})
    with ANSWERED:
        ANSWERED.wait_for(lambda: len(ANSWERS) == len(QUESTIONS), timeout=60)
        return text(json.dumps(ANSWERS))


def run(request):
    name, arguments = request["params"]["name"], request["params"].get("arguments") or {}
    if name == "say":
        return text(arguments.get("text", ""))
    if name == "addUp":
        return text("see there", structuredContent={"sum": arguments["a"] + arguments["b"]})
    if name == "work":
        return work(request, arguments)
    if name == "hang":
        # Nothing else is done meanwhile, as in a server without threads.
        with WRITE:
            time.sleep(600)
    if name == "fail":
        return text("it \u001b[31mfailed", isError=True)
    if name == "wrong_sum":
        return text("oops", structuredContent={"sum": "many"})
    if name == "big":
        return text("x" * int(arguments["bytes"]))
    if name == "environment":
        return text(json.dumps(dict(os.environ)))
    if name == "pid":
        return text(str(os.getpid()))
    if name == "spawn":
        return spawn()
    if name == "crash":
        os.kill(os.getpid(), 9)
    if name == "protocol":
        return text(" ".join(ASKED_FOR))
    if name == "ask":
        return ask()
    if name == "learn":
        return learn(arguments["name"])
    return text(f"{name} ran")


RESOURCE = {"uri": "note://one", "name": "one", "mimeType": "text/plain"}
PROMPT = {"name": "greet", "description": "Greets.",
          "arguments": [{"name": "who", "required": True}]}


def answer(request):
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        ASKED_FOR.append(params["protocolVersion"])
        return {"protocolVersion": os.environ.get("PROTOCOL", params["protocolVersion"]),
                "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "good", "version": "1.0.0"}}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": tools()}
    if method == "resources/list":
        return {"resources": [RESOURCE]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": "the note"}]}
    if method == "prompts/list":
        return {"prompts": [PROMPT]}
    if method == "prompts/get":
        who = params.get("arguments", {}).get("who")
        return {"messages": [{"role": "user",
                              "content": {"type": "text", "text": f"Greet {{{{ {who} }}}}."}}]}
    if method == "tools/call":
        return run(request)
    raise KeyError(method)


def handle(request):
    try:
        result = answer(request)
    except KeyError as missing:
        error = {"code": -32601, "message": f"there is no {missing}"}
        return send({"id": request["id"], "error": error})
    if result is not None:
        send({"id": request["id"], "result": result})


print("the good server is here", file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if os.environ.get("STRICT") and message.get("method") == "server/discover":
        sys.exit("the first word must be initialize")
    if "method" not in message:
        with ANSWERED:
            ANSWERS[message["id"]] = message.get("result", {"code": message.get("error", {}).get("code")})
            ANSWERED.notify()
    if message.get("method") == "notifications/cancelled":
        CANCELLED.add(message["params"]["requestId"])
    elif "id" in message and "method" in message:
        if message["method"] == "tools/call" and message["params"]["name"] != "hang":
            threading.Thread(target=handle, args=(message,), daemon=True).start()
        else:
            handle(message)
