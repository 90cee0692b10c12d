"""What the programs of these tests share: a loop, and requests to the server."""
import json, os, subprocess, sys, time

def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def notify(method, /, **params):
    send({"method": method, "params": params})

def ask(method, /, **params):
    """Sends a request and waits for its answer. With one request at a time nothing else comes between."""
    send({"id": "mine", "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "mine":
            if "error" in message:
                raise RuntimeError(message["error"]["message"])
            return message["result"]

class Failed(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code

def serve(**handlers):
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer = {"id": message["id"]}
        try:
            handler = handlers.get(message["method"])
            answer["result"] = handler(message["params"]) if handler else None
        except Failed as failed:
            answer["error"] = {"code": 1, "message": str(failed), "data": {"code": failed.code}}
        except Exception as error:
            answer["error"] = {"code": 1, "message": str(error)}
        send(answer)
