# SPDX-License-Identifier: Apache-2.0
"""Processes of Python that begin with PyTorch, Dynamo and Inductor imported: their imports are most of what a short
test takes.

A server imports them once, without any device's package, and forks. A process then runs its program as one that was
started would: `import torch` loads the packages of devices, as it does at its end. What differs is that Dynamo and
Inductor are there before the plugin is. Where no server runs (RONDO_TORCH_FORKS names none), a process is started.

    python forks.py SOCKET    serves until its standard input ends
"""
import contextlib
import gc
import importlib
import importlib.machinery
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types

SERVER = "RONDO_TORCH_FORKS"  # the socket's path


# --------------------------------------------------------------------------------------------------------- who asks


def python(arguments, environment=None, timeout=None, cwd=None):
    """`subprocess.run([sys.executable, *arguments])` with what it prints as text: "-c" and a program, or a file. For
    what reads a variable of PyTorch's from the environment, or looks at what is imported, one is to be started."""
    environment = dict(os.environ if environment is None else environment)
    server = os.environ.get(SERVER)
    if not server:
        return subprocess.run([sys.executable, *arguments], env=environment, stdin=subprocess.DEVNULL, timeout=timeout,
                              capture_output=True, text=True, errors="replace", check=False, cwd=cwd)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        status, _ = forked(server, arguments, environment, (out, err), timeout, cwd)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return subprocess.CompletedProcess(arguments, status, *texts)


def forked(server, arguments, environment, outputs, timeout=None, cwd=None):
    """Has the server fork a process that runs this, and waits for it; returns its status as subprocess does, and the
    seconds that processors worked for it."""
    with open(os.devnull, "rb") as nothing, socket.socket(socket.AF_UNIX) as line:
        line.connect(server)
        request = {"arguments": list(arguments), "environment": environment, "cwd": cwd or os.getcwd()}
        request, files = json.dumps(request).encode(), [file.fileno() for file in (nothing, *outputs)]
        socket.send_fds(line, [len(request).to_bytes(8, "little")], files)
        line.sendall(request)
        with line.makefile() as answers:
            number = int(answers.readline())
            line.settimeout(timeout)
            try:
                status, seconds = answers.readline().split()
                return int(status), float(seconds)
            except TimeoutError:
                os.kill(number, signal.SIGKILL)
                raise subprocess.TimeoutExpired(arguments, timeout) from None


# --------------------------------------------------------------------------------------------------------- the server


def modules_of_a_compilation():
    """Names of what a first compilation imports, by a process that makes one: it leaves no other trace here."""
    reading, writing = os.pipe()
    number = os.fork()
    if not number:
        try:
            import torch
            before = set(sys.modules)
            x = torch.ones(3, requires_grad=True)
            torch.compile(lambda x: (torch.relu(x) * 2).sum())(x).backward()
            with os.fdopen(writing, "w") as file:
                file.write("\n".join(name for name in list(sys.modules) if name not in before))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        names = file.read().split("\n")
    os.waitpid(number, 0)
    return names


def prepare():
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    import torch
    import torch._dynamo
    import torch._inductor.compile_fx
    from torch._inductor import cpu_vec_isa

    for name in ("_is_device_backend_autoload_enabled", "_import_device_backends"):
        getattr(torch, name)
    cpu_vec_isa.pick_vec_isa()  # asks the compiler, once
    for name in modules_of_a_compilation():
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # no collection of a test's looks at what was imported here


class Torch:
    """Finds `torch`, which is imported, and does what its import does at its end."""

    def __init__(self):
        self.module = sys.modules.pop("torch")
        self.spec = self.module.__spec__
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        return importlib.machinery.ModuleSpec(name, self, origin=self.spec.origin, is_package=True)

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        if module._is_device_backend_autoload_enabled():
            module._import_device_backends()
        module.__spec__ = self.spec


def become(arguments, paths):
    """Runs what `python ARGUMENTS` runs."""
    if arguments[0] == "-c":
        name, code, first = "<string>", arguments[1], ""
        sys.argv = ["-c", *arguments[2:]]
    else:
        name, first = arguments[0], os.path.dirname(os.path.abspath(arguments[0]))
        with open(name, encoding="utf-8") as file:
            code = file.read()
        sys.argv = list(arguments)
    sys.path[:] = [first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *paths]
    Torch()
    main = types.ModuleType("__main__")
    if first:
        main.__file__ = name
    sys.modules["__main__"] = main
    exec(compile(code, name, "exec"), main.__dict__)


def wait_for(line):
    """In a process of its own, for who has connected: forks what is to be run, and says how it has ended. Returns, in
    that process, what to run."""
    size, files, _, _ = socket.recv_fds(line, 8, 3)
    size, text = int.from_bytes(size, "little"), b""
    while len(text) < size:
        text += line.recv(size - len(text))
    request = json.loads(text)
    number = os.fork()
    if number:
        line.sendall(f"{number}\n".encode())
        ended = os.pidfd_open(number)
        if ended not in select.select([line, ended], [], [])[0]:  # who asked is gone
            os.kill(number, signal.SIGKILL)
        _, status, used = os.wait4(number, 0)
        with contextlib.suppress(OSError):  # who waited has ended it
            line.sendall(f"{os.waitstatus_to_exitcode(status)} {used.ru_utime + used.ru_stime}\n".encode())
        os._exit(0)
    line.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    return request["arguments"]


def reap(how):
    """Forgets those that have ended: what they took is then counted as this process's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, how)[0]:
            pass


def serve(path):
    """Forks for each connection, until standard input ends. Returns, in a process that was forked, what to run."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([door, sys.stdin], [], [])
            if door not in ready:
                break
            line, _ = door.accept()
            if not os.fork():
                door.close()
                return wait_for(line)
            line.close()
            reap(os.WNOHANG)
    reap(0)
    return None


def main():
    given = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    paths = [entry for entry in sys.path[1:] if os.path.abspath(entry) not in given]
    prepare()
    arguments = serve(sys.argv[1])
    if arguments is not None:
        become(arguments, paths)


if __name__ == "__main__":
    main()
