"""Installs packages into folders of their own, for check_pytorch and check_clients."""

import contextlib
import fcntl
import os
import pathlib
import subprocess
import sys


class CheckError(Exception):
    """Something could not run; the message names it."""


def cache_folder(name):
    """A folder for installed packages, if the command line names none."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "strata" / name


def size_on_disk(folder):
    """Bytes of the files below a folder."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


@contextlib.contextmanager
def locked(folder):
    """Waits until no other process installs into the folder, and makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_pip(arguments, environment=None):
    """Runs pip without dependencies of packages."""
    verb, *rest = map(str, arguments)
    command = [sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check",
               "--no-deps", *rest]
    if subprocess.run(command, check=False, stdout=subprocess.DEVNULL,
                      env=environment).returncode != 0:
        raise CheckError(f"pip could not {verb} {' '.join(rest)}")


def pip_install(folder, *packages):
    """Installs packages into a folder."""
    run_pip(["install", "--target", folder, *packages])
