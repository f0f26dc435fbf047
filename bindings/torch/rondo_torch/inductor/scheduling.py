# SPDX-License-Identifier: Apache-2.0
"""Kernels: Inductor's C++ ones, each with one more function, which a stream can call.

`extern "C" int kernel_packed(const int64_t* words) noexcept` has one form for all kernels, however many arguments they
take and of whatever types, and no exception leaves it. `kernel_packed_kinds` says what the words are.
"""
import functools
import os
import re

import torch
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.utils import Placeholder

from . import refuse_if_off

# A kernel notes an integer division by zero through a pointer that the whole process has once: two kernels that run at
# the same time take it from each other, and one that divides by zero then ends the process. So the symbol is hidden,
# which gives each file a pointer of its own, and a kernel that divides integers runs alone.
_HIDE = '''#ifdef __ELF__
asm(".hidden inductor_cpu_integer_div_error_flag");
#endif
'''


@functools.cache
def notes_divisions_by_zero():
    """Whether PyTorch's kernels have such a pointer. Those of 2.12 divide unchecked: by zero, the process ends."""
    prefix = os.path.join(os.path.dirname(torch.__file__), "include", "torch", "csrc", "inductor", "cpp_prefix.h")
    with open(prefix, encoding="utf-8") as file:
        return "inductor_cpu_integer_div_error_flag" in file.read()


_DIVIDES = re.compile(r"\b(?!inductor_cpu_)\w*(?:div|mod|remainder)\w*\(")


def _argument(index, kind, cpp_type):
    if cpp_type.endswith("*"):
        return f"reinterpret_cast<{cpp_type}>(words[{index}])"
    if kind == "f":
        return f"static_cast<{cpp_type}>(rondo_number(words[{index}]))"
    return f"static_cast<{cpp_type}>(words[{index}])"


def _kind(cpp_type):
    if cpp_type.endswith("*"):
        return "r" if cpp_type.startswith("const ") else "b"
    return "f" if re.search(r"\b(float|double)\b", cpp_type) else "i"


def packed(source, types):
    """The kernel's source with the function added."""
    name = str(Placeholder.KERNEL_NAME)
    kinds = "".join(map(_kind, types))
    notes = notes_divisions_by_zero()
    alone = notes and _DIVIDES.search(source)
    lock = "static std::mutex alone; std::lock_guard<std::mutex> lock(alone);" if alone else ""
    arguments = ", ".join(_argument(*place) for place in zip(range(len(types)), kinds, types))
    return f"""\
{source}
{_HIDE if notes else ''}#include <cstring>
#include <mutex>
[[maybe_unused]] static double rondo_number(int64_t word) {{ double d; std::memcpy(&d, &word, sizeof d); return d; }}
extern "C" const char {name}_packed_kinds[] = "{kinds}";
extern "C" int {name}_packed(const int64_t* words) noexcept {{
    try {{
        {lock}
        {name}({arguments});
        return 0;
    }} catch (const std::exception& error) {{
        return std::strstr(error.what(), "ZeroDivisionError") ? 2 : 1;
    }} catch (...) {{
        return 1;
    }}
}}
"""


class Scheduling(CppScheduling):
    def __init__(self, scheduler):
        refuse_if_off()
        super().__init__(scheduler)

    def define_kernel(self, src_code, nodes, kernel_args=None):
        args = self.kernel_group.args if kernel_args is None else kernel_args
        _, _, types = args.cpp_argdefs()
        return super().define_kernel(packed(src_code, types), nodes, kernel_args)
