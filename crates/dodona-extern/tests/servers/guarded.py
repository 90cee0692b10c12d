"""An MCP server over streamable HTTP that wants to know who asks, in nothing but Python itself.

It prints its address, and serves until its input is closed. Whoever does not send the token that the
environment names is refused, with a challenge or without one.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WANTED = "Bearer " + os.environ["TOKEN"]
CHALLENGE = os.environ.get("CHALLENGE")
SAY = {"name": "say", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
       "annotations": {"readOnlyHint": True}}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1.0.0"}}
    if method == "tools/list":
        return {"tools": [SAY]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
    return {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("authorization") != WANTED:
            return self.reply(401, b"")
        request = json.loads(body)
        if request["method"] == "server/discover":
            return self.reply(400, b"")
        if "id" not in request:
            return self.reply(202, b"")
        result = answer(request["method"], request.get("params"))
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode())

    def do_GET(self):
        self.reply(405, b"")

    def reply(self, status, body):
        self.send_response(status)
        if status == 401 and CHALLENGE:
            self.send_header("www-authenticate", CHALLENGE)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
sys.stdin.read()
