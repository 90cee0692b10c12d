"""Writes archives that depend only on their contents: sorted entries, fixed times, owners and modes.

Usage:
  pack.py tar   OUT FOLDER PREFIX   a tar.gz of FOLDER, with every path below PREFIX
  pack.py wheel OUT FOLDER          a wheel of FOLDER, with its RECORD
  pack.py sums  FOLDER NAME...      lines of SHA256SUMS
  pack.py glibc FILE                the newest glibc version that an ELF file needs, or nothing

SOURCE_DATE_EPOCH is the time of all entries. PACK_LEVEL is the compression level, 9 by default.
Python, because it is installed wherever a release is built and its archives do not depend on the
platform's tar and zip programs.
"""

import base64
import gzip
import hashlib
import os
import re
import sys
import tarfile
import time
import zipfile
from pathlib import Path

EPOCH = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)  # zip starts in 1980
LEVEL = int(os.environ.get("PACK_LEVEL", "9"))


def files(folder):
    """All files below a folder as (path in the archive, path on disk), sorted."""
    found = (path for path in Path(folder).rglob("*") if path.is_file())
    return sorted((path.relative_to(folder).as_posix(), path) for path in found)


def mode(path):
    return 0o755 if os.access(path, os.X_OK) else 0o644


def pack_tar(out, folder, prefix):
    with open(out, "wb") as raw, gzip.GzipFile("", "wb", LEVEL, raw, EPOCH) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, path in files(folder):
                entry = tarfile.TarInfo(f"{prefix}/{name}")
                entry.size = path.stat().st_size
                entry.mtime = EPOCH
                entry.mode = mode(path)
                with open(path, "rb") as content:
                    archive.addfile(entry, content)


def pack_wheel(out, folder):
    entries = files(folder)
    info = next(name.split("/")[0] for name, _ in entries if ".dist-info/" in name)
    record = []
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:

        def add(name, content, permissions):
            entry = zipfile.ZipInfo(name, time.gmtime(EPOCH)[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, so that the mode counts
            entry.external_attr = (0o100000 | permissions) << 16
            archive.writestr(entry, content, compresslevel=LEVEL)

        # The metadata comes last, as the format recommends.
        for name, path in sorted(entries, key=lambda entry: (".dist-info/" in entry[0], entry[0])):
            content = path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            record.append(f"{name},sha256={digest.decode()},{len(content)}\n")
            add(name, content, mode(path))
        record.append(f"{info}/RECORD,,\n")
        add(f"{info}/RECORD", "".join(record).encode(), 0o644)


def sums(folder, *names):
    for name in sorted(names):
        print(f"{hashlib.sha256(Path(folder, name).read_bytes()).hexdigest()}  {name}")


def glibc(file):
    versions = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)", Path(file).read_bytes())
    if versions:
        print("%d.%d" % max((int(major), int(minor)) for major, minor in versions))


COMMANDS = {"tar": pack_tar, "wheel": pack_wheel, "sums": sums, "glibc": glibc}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
