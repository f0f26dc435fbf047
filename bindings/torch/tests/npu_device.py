# SPDX-License-Identifier: Apache-2.0
"""The stand-in for an Ascend package of tests/npu_standin: built over the simulated libascendcl when it is not there
yet, and loaded.

The simulated library is RONDO_ACL_LIBRARY, or else the one that "./dev build" has made.
"""
import ctypes
import os

import standins  # before PyTorch: it says that the place is not Rondo's
from standins import leave_out  # noqa: F401


def simulator():
    """The path of the simulated library, or None."""
    build = os.path.join(standins.ROOT, os.environ.get("RONDO_BUILD") or "build")
    path = os.environ.get("RONDO_ACL_LIBRARY") or os.path.join(build, "lib", "simulators", "libascendcl.so")
    return path if os.path.exists(path) else None


class _Control(ctypes.Structure):
    """aclsim_control of simulators/acl/include/acl_simulator.h."""

    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("count", ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_char_p)),
                ("clear_counts", ctypes.CFUNCTYPE(None)),
                ("fail", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int32)),
                ("set", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int64)),
                ("alive", ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_char_p))]


class Simulator:
    """What the simulator tells of itself."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        pointer = ctypes.POINTER(_Control)()
        error = self.library.aclrtBinaryGetFunction(None, b"acl_simulator_control", ctypes.byref(pointer))
        if error:
            raise RuntimeError(f"{path} is no simulated library: it answers {error}")
        self.control = pointer.contents

    def count(self, name):
        """How often the function was called since `clear`."""
        return self.control.count(name.encode())

    def clear(self):
        self.control.clear_counts()

    def alive(self, name):
        return self.control.alive(name.encode())

    def set(self, name, value):
        """A setting, for what is made from now on."""
        if self.control.set(name.encode(), value):
            raise ValueError(name)

    def fail(self, name, nth, error):
        """The nth call from now gives the error."""
        if self.control.fail(name.encode(), nth, error):
            raise ValueError(name)


def why_not():
    """Why the stand-in cannot be had here, or ""."""
    if simulator() is None:
        return "the simulated libascendcl.so is not built: ./dev build"
    return standins.find_tools()


def load():
    """(the package `npu_standin`, the simulator). The file is left out where they cannot be had."""
    why = why_not()
    if why:
        leave_out(f"the stand-in for an Ascend package is not here: {why}")
    path = os.path.realpath(simulator())
    os.environ["RONDO_ACL_LIBRARY"] = path  # the same one for who opens it by name
    counts = Simulator(path)
    standins.build("npu_standin", "STANDIN", "_C", {
        "ACL_INCLUDE": os.path.join(standins.ROOT, "simulators", "acl", "include"), "ACL_LIBRARY": path})
    import npu_standin
    return npu_standin, counts
