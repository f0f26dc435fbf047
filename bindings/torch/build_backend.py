# SPDX-License-Identifier: Apache-2.0
"""Builds the package for the PyTorch that is installed beside it (the hooks of PEP 517 and PEP 660).

pip calls the hooks in an environment of its own, in which the target's PyTorch cannot be seen. The interpreter is the
target's all the same, so it is asked in a process of its own, without what pip has put in the way.
"""
import atexit
import base64
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
# In a checkout Rondo lies two folders up, in a source distribution beside this file.
ROOT = os.path.join(HERE, "rondo") if os.path.isdir(os.path.join(HERE, "rondo")) else os.path.dirname(os.path.dirname(HERE))
NAME = "rondo_torch"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
WHEEL_TAG = f"{TAG}-{TAG}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
# What Rondo itself is built from.
SOURCES = ("CMakeLists.txt", "LICENSE", "cmake", "include", "src", "kernels", "backends")

PROBE = """
import importlib.util, json, os
spec = importlib.util.find_spec("torch")
root = os.path.dirname(spec.origin) if spec and spec.origin else None
print(json.dumps({"root": root}))
"""


class Refused(SystemExit):
    """A sentence for the user, after which pip says that the build failed."""

    def __init__(self, sentence):
        super().__init__(f"rondo_torch: {sentence}")


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(rondo VERSION ([0-9.]+)", file.read()).group(1)


def target_torch():
    """The folder of the target environment's PyTorch."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONNOUSERSITE")}
    done = subprocess.run([sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=False)
    root = json.loads(done.stdout)["root"] if done.returncode == 0 else None
    if not root:
        raise Refused(f"there is no PyTorch in the environment of {sys.executable}. Install one (2.12 to 2.15) first; "
                      "where it is there and this is said all the same, install with --no-build-isolation.")
    if not os.path.exists(os.path.join(root, "include", "ATen", "core", "GraphImplInterface.h")):
        raise Refused(f"the PyTorch in {root} has no graph contract (ATen/core/GraphImplInterface.h): it needs PyTorch "
                      "2.12 to 2.15, with its headers.")
    return root


def tool(name, package):
    path = shutil.which(name)
    if not path:
        raise Refused(f"needs {name} to build (Debian: apt-get install {package})")
    return path


def build_folder():
    """Kept in a checkout, so that the next build has little to do; elsewhere it goes with this process."""
    if os.path.exists(os.path.join(ROOT, "dev")) and os.access(ROOT, os.W_OK):
        return os.path.join(ROOT, os.environ.get("RONDO_BUILD", "build"), f"torch-{TAG}")
    folder = tempfile.mkdtemp(prefix="rondo_torch-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def compile_extension(together=False):
    """Returns the path of the extension. `together`: the whole in less time, but more of it anew after a change."""
    root, cmake = target_torch(), tool("cmake", "cmake")
    tool("ninja", "ninja-build")
    compiler = shlex.split(os.environ.get("CXX") or "c++")  # CMake takes words after it, too: "ccache g++"
    compiler[0] = tool(compiler[0], "g++")
    looked = subprocess.run([*compiler, "-E", "-x", "c", "-"], input=b"#include <xxhash.h>", capture_output=True, check=False)
    if looked.returncode:
        raise Refused("needs the header xxhash.h to build (Debian: apt-get install libxxhash-dev)")
    include = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise Refused(f"needs Python.h, which is not in {include} (Debian: apt-get install python3-dev)")
    folder = build_folder()
    jobs = os.environ.get("RONDO_JOBS", str(os.cpu_count() or 2))
    options = [f"-DRONDO_TORCH={root}", f"-DRONDO_PYTHON_INCLUDE={include}", f"-DRONDO_SOURCE={ROOT}",
               f"-DRONDO_TORCH_UNITY={'ON' if together else 'OFF'}"]
    if os.environ.get("RONDO_SANITIZE"):
        options.append(f"-DRONDO_SANITIZE={os.environ['RONDO_SANITIZE']}")
    for command in ([cmake, "-S", HERE, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options],
                    [cmake, "--build", folder, "-j", jobs]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            sys.stderr.write(done.stdout)
            raise Refused(f"the build failed ({' '.join(command[:2])} ended with {done.returncode}); its output is above")
    return os.path.join(folder, NAME, "_C.so")


# ------------------------------------------------------------------------------------------------------------ wheel


def package_files():
    top = os.path.join(HERE, NAME)
    for folder, folders, files in sorted(os.walk(top)):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if not name.endswith((".so", ".pyc")):
                path = os.path.join(folder, name)
                yield os.path.relpath(path, HERE), path


def project():
    """The table `project` of pyproject.toml. Its values are such as JSON has, too: Python 3.10 has no reader of TOML."""
    tables = {}
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("["):
                table = tables.setdefault(line.strip()[1:-1], {})
            elif " = " in line and not line.startswith("#"):
                name, value = line.split(" = ", 1)
                table[name] = json.loads(value)
    groups = 'project.entry-points."'
    return {**tables["project"], "scripts": tables["project.scripts"],
            "entry-points": {name[len(groups):-1]: table for name, table in tables.items() if name.startswith(groups)}}


def metadata():
    known = project()
    with open(os.path.join(HERE, known["readme"]), encoding="utf-8") as file:
        readme = file.read()
    return (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\nSummary: {known['description']}\n"
            f"License: {known['license']}\nRequires-Python: {known['requires-python']}\n"
            f"Description-Content-Type: text/markdown\n\n{readme}")


def entry_points():
    known = project()
    groups = dict(known.get("entry-points", {}))
    if known.get("scripts"):
        groups["console_scripts"] = known["scripts"]
    return "\n".join(f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
                     for group, entries in groups.items())


def dist_info():
    return f"{NAME}-{version()}.dist-info"


def info_files():
    return {
        f"{dist_info()}/METADATA": metadata(),
        f"{dist_info()}/entry_points.txt": entry_points(),
        f"{dist_info()}/WHEEL": f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\nTag: {WHEEL_TAG}\n",
    }


def write_wheel(folder, contents):
    """`contents`: name in the wheel -> bytes. Returns the wheel's file name."""
    contents = dict(contents)
    contents.update({name: text.encode() for name, text in info_files().items()})
    file_name, record = f"{NAME}-{version()}-{WHEEL_TAG}.whl", []
    with zipfile.ZipFile(os.path.join(folder, file_name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in contents.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            wheel.writestr(info, data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
        record.append(f"{dist_info()}/RECORD,,\n")
        wheel.writestr(f"{dist_info()}/RECORD", "".join(record))
    return file_name


def read(path):
    with open(path, "rb") as file:
        return file.read()


# ------------------------------------------------------------------------------------------------------------ hooks


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    os.makedirs(os.path.join(metadata_directory, dist_info()), exist_ok=True)
    for name, text in info_files().items():
        with open(os.path.join(metadata_directory, name), "w", encoding="utf-8") as file:
            file.write(text)
    return dist_info()


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if platform.system() != "Linux":
        raise Refused(f"is for Linux, not for {platform.system()}")
    extension = compile_extension(together=True)
    contents = {name: read(path) for name, path in package_files()}
    contents[f"{NAME}/_C{SUFFIX}"] = read(extension)
    return write_wheel(wheel_directory, contents)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The Python files stay where they are; the extension is put beside them."""
    shutil.copy2(compile_extension(), os.path.join(HERE, NAME, f"_C{SUFFIX}"))
    return write_wheel(wheel_directory, {f"__editable__.{NAME}.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    base = f"{NAME}-{version()}"

    def clean(entry):
        return None if os.path.basename(entry.name) == "__pycache__" or entry.name.endswith((".so", ".pyc")) else entry

    with tarfile.open(os.path.join(sdist_directory, f"{base}.tar.gz"), "w:gz") as archive:
        for name in ("pyproject.toml", "build_backend.py", "CMakeLists.txt", "README.md", "csrc", NAME, "tests"):
            archive.add(os.path.join(HERE, name), f"{base}/{name}", filter=clean)
        for name in SOURCES:
            archive.add(os.path.join(ROOT, name), f"{base}/rondo/{name}", filter=clean)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write(metadata())
            file.flush()
            archive.add(file.name, f"{base}/PKG-INFO")
    return f"{base}.tar.gz"
