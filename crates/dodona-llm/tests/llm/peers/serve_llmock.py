"""Serves llmock at a port of its own, prints the address, and ends with its input."""

import os
import socket
import sys
import threading

import uvicorn
from llmock.main import create_app

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)


def end_with_input():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
uvicorn.Server(uvicorn.Config(create_app(), log_level="error")).run(sockets=[listener])
