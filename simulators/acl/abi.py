#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What abi.def says, and what others say of it. Without arguments: the headers of include/acl/ declare exactly its
functions, and the backend's symbols.def has the same signatures. --write puts the declarations into the headers.
--library FILE: the visible symbols of the library are exactly its names."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BACKEND = HERE.parents[1] / "backends/ascend/symbols.def"
HEADERS = ("acl", "acl_base", "acl_rt", "acl_mdl")
BEGIN, END = "/* from abi.def: */\n", "/* end of abi.def's part */\n"
# What a name of the headers is in the ABI. Enumerations are ints there.
HANDLES = """aclrtStream aclrtEvent aclrtContext aclmdlRI aclmdlRITask aclrtTaskGrp aclrtBinHandle aclrtFuncHandle
aclrtArgsHandle aclrtParamHandle aclrtDrvMemHandle aclmdlRICondHandle aclrtCallback aclrtHostFunc
aclrtExceptionInfoCallback""".split()
INTEGERS = {"aclError": "int", "int32_t": "int", "uint32_t": "unsigned"}


def calls():
    """(header, group or None when refused, result, name, arguments) of each line."""
    pattern = re.compile(r"^ACL_(CALL|REFUSED)\((\w+), (?:(\w+), )?([\w *]+?), (\w+), \((.*)\)\)$", re.M)
    text = (HERE / "abi.def").read_text()
    found = []
    for kind, header, group, result, name, arguments in pattern.findall(text):
        found.append((header, group if kind == "CALL" else None, result, name, arguments))
    if len(found) != len(re.findall(r"^ACL_(?:CALL|REFUSED)\(", text, re.M)):
        sys.exit("abi.def: a line has another form")
    return found


def enumerations():
    text = "".join((HERE / f"include/acl/{header}.h").read_text() for header in HEADERS)
    return set(re.findall(r"typedef enum \w+ \{[^}]*\} (\w+);", text))


def canonical(declared, enums, named=True):
    """The type of an argument or result as the ABI sees it, without its name."""
    if "(" in declared:
        return "pointer"
    text = re.sub(r"\bconst\b|\bstruct\b", " ", declared).replace("*", " * ")
    words = text.split()
    if named and len(words) > 1 and words[-1] not in ("*",) and re.fullmatch(r"\w+", words[-1]):
        words = words[:-1]
    out = []
    for word in words:
        if word in HANDLES or word.endswith("_function"):
            out += ["void", "*"]
        elif word in enums:
            out.append("int")
        else:
            out.append(INTEGERS.get(word, word))
    text = " ".join(out)
    # A pointer to an opaque or plain structure is a pointer.
    return re.sub(r"^(acl\w+|char|float|size_t|uint64_t|int64_t|unsigned|int|void)((?: \*)+)$",
                  lambda m: "pointer", text)


def signature(result, arguments, enums, named=True):
    parts = [] if arguments.strip() in ("", "void") else [canonical(part, enums, named) for part in arguments.split(",")]
    return canonical(result, enums, False), parts


def declaration(result, name, arguments):
    space = "" if result.endswith("*") else " "
    text = f"ACL_FUNC_VISIBILITY {result}{space}{name}({arguments});"
    if len(text) <= 120:
        return text + "\n"
    lines, line = [], f"ACL_FUNC_VISIBILITY {result}{space}{name}("
    indent = " " * 4
    for index, part in enumerate(arguments.split(", ")):
        part += ");" if index == len(arguments.split(", ")) - 1 else ","
        if len(line) + len(part) + 1 > 120:
            lines.append(line.rstrip())
            line = indent
        line += part + " "
    return "\n".join(lines + [line.rstrip()]) + "\n"


def headers(write):
    faults = []
    for header in HEADERS:
        path = HERE / f"include/acl/{header}.h"
        text = path.read_text()
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        body = "".join(declaration(result, name, arguments) for h, _, result, name, arguments in calls() if h == header)
        new = before + BEGIN + body + END + after
        differs = re.sub(r"\s", "", new) != re.sub(r"\s", "", text)  # tools/format has its own lines
        if differs and write:
            path.write_text(new)
        elif differs:
            faults.append(f"include/acl/{header}.h: declares something else than abi.def: run simulators/acl/abi.py --write")
    return faults


def backend():
    if not BACKEND.exists():
        return []
    enums, known, faults = enumerations(), {}, []
    for _, group, result, name, arguments in calls():
        known[name] = (group, signature(result, arguments, enums))
    lines = re.findall(r"^ACL_SYMBOL\((\w+), ([\w *]+?), (\w+), \((.*)\)\)$", BACKEND.read_text(), re.M)
    for group, result, name, arguments in lines:
        if name not in known:
            faults.append(f"symbols.def: {name} is not in abi.def")
        elif known[name][0] != group:
            faults.append(f"symbols.def: {name} is of group {known[name][0]} in abi.def, not {group}")
        elif signature(result, arguments, enums, False) != known[name][1]:
            faults.append(f"symbols.def: {name} is {signature(result, arguments, enums, False)}, in abi.def {known[name][1]}")
    if not lines:
        faults.append("symbols.def: no symbol was found")
    return faults


def library(path):
    listing = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    visible = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    wanted = {call[3] for call in calls()}
    faults = [f"{path}: exports {name}, which is not in abi.def" for name in sorted(visible - wanted)]
    return faults + [f"{path}: lacks {name} of abi.def" for name in sorted(wanted - visible)]


def main():
    names = [call[3] for call in calls()]
    faults = [f"abi.def: {name} is there twice" for name in sorted({n for n in names if names.count(n) > 1})]
    if "--library" in sys.argv:
        faults += library(sys.argv[sys.argv.index("--library") + 1])
    else:
        faults += headers("--write" in sys.argv) + backend()
    for fault in faults:
        print(fault)
    print(f"acl: {len(names)} symbols, {len(faults)} problems")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
