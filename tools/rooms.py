# SPDX-License-Identifier: Apache-2.0
"""The rooms: their level and what each may include, as data. A room may include itself, and rooms of a lower level that
its row names. `public` are headers below include/rondo/; None means all."""
import os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# folder: (level, rooms it may include)
ROOMS = {
    "src/base": (0, ""),
    "src/plan": (1, "base"),
    "src/kernel": (1, "base"),
    "src/ir": (1, "base"),
    "src/import/pb": (1, "base"),
    "src/device": (2, "base plan kernel"),
    "src/ops": (2, "base ir kernel"),
    "src/artifact": (2, "base plan"),
    "src/memory": (3, "base device"),
    "src/import/common": (2, "base import/pb"),
    "src/import/onnx": (3, "base ir ops import/pb import/common"),
    "src/import/tf": (3, "base ir ops import/pb import/common"),
    "src/es": (3, "base ir ops"),
    "src/compile": (3, "base plan kernel ir ops"),
    "src/instance": (4, "base kernel ops device memory"),
    "src/graph": (4, "base kernel device memory"),
    "src/exec": (5, "base plan kernel device memory graph artifact"),
    "src/tree": (5, "base device memory graph"),
    "src/tree/native": (6, "base device memory graph"),
    "src/session": (6, "base plan artifact kernel device memory graph exec ir ops compile"),
    "kernels/ref": (7, ""),
    "backends/cpu": (7, ""),
    "backends/sim": (7, ""),
    "backends/ascend": (7, ""),
    "simulators/acl": (7, ""),
    "simulators/acl_executor": (8, ""),
    "cli": (8, ""),
    "conformance": (8, ""),
    "tests": (8, ""),
    "fuzz": (8, ""),
    "bench": (8, ""),
    "examples": (8, ""),
    "include/rondo": (-1, ""),
}
# What a plugin sees is the plugin's contract and the vocabulary that it is written in.
PUBLIC = {"kernels/ref": {"plugin.h", "types.h"}, "backends/cpu": {"plugin.h", "types.h"},
          "backends/sim": {"plugin.h", "types.h"}, "backends/ascend": {"plugin.h", "types.h"}}
# What a room may include of others that stand beside it: the tool is a shell around the suites.
BESIDE = {"cli": {"conformance"}, "simulators/acl": {"simulators/acl_executor"},
          "simulators/acl_executor": {"simulators/acl"}}
# Public headers that the build writes: for programs, as the library they are made with does not need them.
GENERATED = {"es_operators.h"}
# Libraries beyond the C library and POSIX.
LIBRARIES = {"cjson/cJSON.h": ("cli", "bench", "tests"), "cmocka.h": ("tests",), "xxhash.h": ("src", "cli"),
             "valgrind/memcheck.h": ("tests",)}
# Of the simulated vendor library, which knows nothing of Rondo: programs written for the vendor's.
LIBRARIES.update({name: ("simulators", "examples", "tests") for name in (
    "acl/acl.h", "acl/acl_base.h", "acl/acl_rt.h", "acl/acl_mdl.h", "acl_simulator.h")})
SYSTEM = set("""assert.h complex.h ctype.h errno.h float.h inttypes.h limits.h math.h setjmp.h signal.h stdalign.h
stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h strings.h time.h
dirent.h dlfcn.h elf.h fcntl.h ftw.h poll.h pthread.h sched.h semaphore.h unistd.h getopt.h
sys/mman.h sys/prctl.h sys/resource.h sys/single_threaded.h sys/stat.h sys/syscall.h sys/time.h sys/types.h sys/wait.h sys/utsname.h
linux/audit.h linux/filter.h linux/seccomp.h link.h locale.h immintrin.h arm_neon.h cpuid.h""".split())


def sources(*endings):
    """Files of the tree that are ours: what git would not ignore, without asking git (there may be none, and it may not
    trust the owner of the tree)."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in ("out", "models", "__pycache__", "build")
                            and not name.startswith("build-") and (not name.startswith(".") or name == ".ci"))
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith(endings)]
    return sorted(found)


def room_of(path):
    """The room a file stands in, or None: the longest folder that is a room."""
    best = None
    for room in ROOMS:
        if path.startswith(room + "/") and (best is None or len(room) > len(best)):
            best = room
    return best


def is_test(path):
    return path.endswith(("_test.c", "_fuzz.c", "_testing.h", "_testing.c"))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def code_only(text):
    """The text with comments and the insides of strings blanked, line by line as before."""
    out, i, size = [], 0, len(text)
    while i < size:
        two = text[i:i + 2]
        if two == "/*":
            end = text.find("*/", i + 2)
            end = size if end < 0 else end + 2
        elif two == "//":
            end = text.find("\n", i)
            end = size if end < 0 else end
        elif text[i] in "\"'":
            end = i + 1
            while end < size and text[end] != text[i] and text[end] != "\n":
                end += 2 if text[end] == "\\" else 1
            end = min(end + 1, size)
        else:
            out.append(text[i])
            i += 1
            continue
        out.append("".join("\n" if c == "\n" else " " for c in text[i:end]))
        i = end
    return "".join(out)
