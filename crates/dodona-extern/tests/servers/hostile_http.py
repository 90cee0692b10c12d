"""An MCP server over streamable HTTP that does what it should not. What exactly, its first argument says.

It prints its address, and serves until its input is closed. The handshake is in order; the call is not.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE = sys.argv[1]
TOOL = {"name": "go", "description": "Goes.", "inputSchema": {"type": "object"}}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "hostile", "version": "1.0.0"}}
    return {"tools": [TOOL]} if method == "tools/list" else {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            if request["method"] == "tools/call":
                return self.call(request)
        except OSError:
            return
        if request["method"] == "server/discover":
            return self.reply(400, b"")
        if "id" not in request:
            return self.reply(202, b"")
        result = answer(request["method"], request.get("params"))
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode())

    def call(self, request):
        self.close_connection = True
        if MODE == "redirect":
            self.send_response(307)
            self.send_header("location", "http://127.0.0.1:1/elsewhere")
            self.send_header("content-length", "0")
            return self.end_headers()
        self.send_response(200)
        kind = "application/json" if MODE == "giant" else "text/event-stream"
        self.send_header("content-type", kind)
        self.end_headers()
        if MODE in ("giant", "giant_event"):
            self.wfile.write(b'{"jsonrpc":"' if MODE == "giant" else b"data: ")
            while True:
                self.wfile.write(b"x" * 65536)
        if MODE == "progress":
            token = request["params"].get("_meta", {}).get("progressToken")
            for number in range(10_000_000):
                told = {"jsonrpc": "2.0", "method": "notifications/progress",
                        "params": {"progressToken": token, "progress": number}}
                self.wfile.write(f"data: {json.dumps(told)}\n\n".encode())
        for letter in b'data: {"jsonrpc":"2.0","id":':
            self.wfile.write(bytes([letter]))
            time.sleep(0.2)
        time.sleep(600)

    def do_GET(self):
        self.reply(405, b"")

    def do_DELETE(self):
        self.reply(405, b"")

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
sys.stdin.read()
