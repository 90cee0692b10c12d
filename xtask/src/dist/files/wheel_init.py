"""Dodona, a local agent server that answers questions about a project with citations."""

import os
import subprocess
import sys
import sysconfig

__all__ = ["find_dodona", "main"]


def find_dodona():
    """Return the path of the `dodona` program that this package installed."""
    name = "dodona.exe" if os.name == "nt" else "dodona"
    package = os.path.dirname(os.path.abspath(__file__))
    folders = [
        sysconfig.get_path("scripts"),
        os.path.dirname(os.path.abspath(sys.argv[0])),
        # `pip install --user` and `pip install --target`
        sysconfig.get_path("scripts", f"{os.name}_user"),
        os.path.join(os.path.dirname(package), "bin"),
    ]
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"{name} was not found in: {', '.join(folders)}")


def main():
    """Run `dodona` with the arguments of this process."""
    try:
        program = find_dodona()
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    if os.name == "nt":
        # Windows has no exec: the new process would detach from the console.
        sys.exit(subprocess.call([program, *sys.argv[1:]]))
    os.execv(program, [program, *sys.argv[1:]])
