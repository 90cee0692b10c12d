import json
import sys


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def ask(method, /, **params):
    """Send a request to the server and return its result."""
    send({"id": "ask", "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "ask":
            if "error" in message:
                raise RuntimeError(message["error"]["message"])
            return message["result"]


def count(params):
    words = params["text"].split()
    for word in words:
        ask("db.execute", sql="INSERT INTO word (word) VALUES (?)", params=[word])
    rows = ask("db.query", sql="SELECT count(*) AS total FROM word")
    return {"words": len(words), "total": rows[0]["total"]}


def guard(payload, settings):
    if settings["forbidden"] and payload["tool_name"] == settings["forbidden"]:
        return {"edit": {"deny": payload["tool_name"] + " is forbidden here"}}
    return None


def answer(method, params):
    if method == "call" and params["method"] == "count":
        return count(params["params"])
    if method == "hook":
        return guard(params["payload"], params["settings"])
    return None  # `initialize` needs no result


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue  # `cancel` and `shutdown` need no answer
    try:
        reply = {"result": answer(message["method"], message["params"])}
    except Exception as error:
        reply = {"error": {"code": 1, "message": str(error)}}
    send({"id": message["id"], **reply})
