# SPDX-License-Identifier: Apache-2.0
"""The generated functions of rondo/es_operators.h: one for each operator, as C11 and as C++17, put on the node what they were
given, in the order that rondo/es.h tells, worked out here from "rondo ops --json"."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import BUILD, ROOT, RONDO, rondo

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-Wno-error=unused-function"]
DTYPES = {"float32": "F32", "float64": "F64", "float16": "F16", "bool": "BOOL", "int64": "I64", "int32": "I32", "uint8": "U8",
          "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "uint64": "U64", "bfloat16": "BF16"}
HEAD = """
#include <stdio.h>
#include <stdlib.h>
#include <rondo/es_operators.h>
#include <rondo/rondo.h>
static rondo_instance *instance;
static void must(rondo_status status) {
    char text[1024];
    if (!status) return;
    (void)rondo_status_format(status, text, sizeof text);
    fprintf(stderr, "%s\\n", text);
    exit(1);
}
static int32_t put(void *user, const char *data, size_t size) { return fwrite(data, 1, size, (FILE *)user) != size; }
static rondo_es_tensor *in(rondo_es_builder *b, int64_t index, rondo_dtype dtype) {
    char name[32];
    const int64_t shape[2] = {2, 3};
    snprintf(name, sizeof name, "in%d", (int)index);
    return rondo_es_input_with_details(b, index, name, dtype, RONDO_FORMAT_ND, shape, 2);
}
static rondo_tensor *tensor(float value) {
    const int64_t dims[1] = {1};
    rondo_tensor *made;
    must(rondo_tensor_create(instance, RONDO_DTYPE_F32, 1, dims, &made));
    *(float *)rondo_tensor_get_view(made)->data = value;
    return made;
}
static rondo_ir_graph *branch(const char *name) {
    rondo_es_builder *b;
    rondo_ir_graph *graph;
    must(rondo_es_builder_create(instance, name, &b));
    (void)rondo_es_set_output(rondo_es_scalar_float(b, 1), 0);
    must(rondo_es_build_and_reset(b, &graph));
    rondo_es_builder_release(b);
    return graph;
}
static void finish(rondo_es_builder *b, const char *name) {
    rondo_ir_graph *graph;
    rondo_status status = rondo_es_build_and_reset(b, &graph);
    if (status) fprintf(stderr, "%s: ", name);
    must(status);
    printf("== %s\\n", name);
    must(rondo_ir_graph_dump(graph, RONDO_DUMP_JSON, put, stdout));
    rondo_ir_graph_release(graph);
}
"""


def number(text, of):
    try:
        return of(text)
    except (TypeError, ValueError):
        return None


def default_of(attribute):
    """The value that is left out, or None where the prototype has none that a program could compare with."""
    text, kind = attribute.get("default"), attribute["kind"]
    if attribute["required"] or text is None:
        return None
    if kind == "int":
        return number(text, int)
    if kind == "float":
        return number(text, float)
    if kind == "string":
        return text
    if kind == "ints" and text.startswith("["):
        return number(text, lambda t: [int(word) for word in t.strip("[]").split(",")])
    return None


ABSENT, SEQUENCE = "absent", "sequence"


class Call:
    """A call of one operator's function as C, and what its node must look like."""

    def __init__(self, operator, full):
        self.lines, self.arguments, self.inputs, self.attributes = [], [], [], {}
        self.operator, self.full = operator, full
        self.name = operator["name"] + (" full" if full else " least")
        inputs = [o for o in operator["inputs"] if not o["name"].startswith("rondo.")]
        for operand in inputs:
            self.tensor(operand, inputs)
        while self.inputs and self.inputs[-1] == ABSENT:
            self.inputs.pop()
        if all(o["presence"] == "optional" for o in inputs):
            self.arguments.append("b")
        outputs = operator["outputs"]
        self.dynamic = outputs[-1]["presence"] == "dynamic"
        self.output_count = len(outputs) + (2 if self.dynamic else 0)
        if self.dynamic:
            self.arguments.append("3")
        attributes = operator["attributes"]
        for part in ([a for a in attributes if a["kind"] == "graph"],
                     [a for a in attributes if a["kind"] != "graph" and a["required"]],
                     [a for a in attributes if a["kind"] != "graph" and not a["required"]]):
            for attribute in part:
                self.attribute(attribute)

    def tensor(self, operand, inputs):
        if not operand["types"]:
            self.sequence()
            return
        group = [o for o in inputs if operand.get("same_type") and o.get("same_type") == operand["same_type"]] or [operand]
        types = [t for t in operand["types"] if t in DTYPES and all(t in o["types"] for o in group)]
        dtype = "float32" if "float32" in types else types[0]
        if operand["presence"] == "optional" and not self.full:
            self.arguments.append("NULL")
            self.inputs.append(ABSENT)
            return
        made = []
        for _ in range(2 if operand["presence"] == "dynamic" else 1):
            n = len(self.inputs) - self.inputs.count(ABSENT)
            made.append(f"in(b, {n}, RONDO_DTYPE_{DTYPES[dtype]})")
            self.inputs.append(f"in{n}")
        if operand["presence"] == "dynamic":
            self.lines.append("rondo_es_tensor *more[2];")
            self.lines += [f"more[{i}] = {text};" for i, text in enumerate(made)]
            self.arguments += ["more", "2"]
        else:
            self.lines.append(f"rondo_es_tensor *t{len(self.inputs)} = {made[0]};")
            self.arguments.append(f"t{len(self.inputs)}")

    def sequence(self):
        """What no input of a graph is: it is made of one."""
        n = len(self.inputs)
        self.lines += [f"rondo_es_tensor *s{n}[1];", f"s{n}[0] = in(b, {n}, RONDO_DTYPE_F32);",
                       f"rondo_es_tensor *t{n} = rondo_es_SequenceConstruct(s{n}, 1);"]
        self.inputs.append(SEQUENCE)
        self.arguments.append(f"t{n}")

    def attribute(self, attribute):
        kind, name, default = attribute["kind"], attribute["name"], default_of(attribute)
        n = len(self.lines)
        given = self.full or attribute["required"]
        if not given and default is None:
            self.arguments += ["NULL", "0"] if kind in ("ints", "floats", "strings") else ["NULL"]
            return
        values = {"int": 1000 + n, "float": n + 0.3125, "string": f"word {n}", "ints": [n, -7], "floats": [0.5, float(n)],
                  "strings": ["a", f"b {n}"], "tensor": {"dtype": "float32", "shape": [1], "data": [n + 0.5]}}
        value = values.get(kind) if given else default
        if given and kind != "graph":
            self.attributes[name] = value
        by_pointer = default is None and not attribute["required"]
        if kind == "int":
            self.lines.append(f"const int64_t v{n} = {value};")
            self.arguments.append(f"&v{n}" if by_pointer else f"v{n}")
        elif kind == "float":
            self.lines.append(f"const float v{n} = (float){float(value)!r};")
            self.arguments.append(f"&v{n}" if by_pointer else f"v{n}")
        elif kind == "string":
            self.arguments.append(json.dumps(value))
        elif kind == "tensor":
            self.arguments.append(f"tensor({n}.5f)")
        elif kind == "graph":
            self.attributes[name] = None
            self.arguments.append(f'branch("{name}")')
        else:
            type_ = {"ints": "int64_t", "floats": "float", "strings": "rondo_string"}[kind]
            texts = [f"{{{json.dumps(v)}, {len(v)}}}" if kind == "strings" else f"{v}f" if kind == "floats" else str(v)
                     for v in value]
            self.lines.append(f"const {type_} v{n}[] = {{{', '.join(texts)}}};")
            self.arguments += [f"v{n}", str(len(value))]

    def code(self):
        name = self.operator["name"]
        function = "rondo_es_" + name.split("::")[-1]
        outputs = self.operator["outputs"]
        call = f"{function}({', '.join(self.arguments)})"
        lines = list(self.lines)
        if len(outputs) == 1 and not self.dynamic:
            lines.append(f"(void)rondo_es_set_output({call}, 0);")
        else:
            lines.append(f"struct {function}_outputs r = {call};")
            for i, output in enumerate(outputs):
                if i + 1 == len(outputs) and self.dynamic:
                    lines.append(f"for (int64_t i = 0; i < r.{output['name']}_num; ++i) "
                                 f"(void)rondo_es_set_output(r.{output['name']}[i], {i} + i);")
                else:
                    lines.append(f"(void)rondo_es_set_output(r.{output['name']}, {i});")
        lines.append(f'finish(b, "{self.name}");')
        return "{\n    " + "\n    ".join(lines) + "\n    }\n"


def program(calls):
    body = "".join(f"    {call.code()}" for call in calls)
    return (HEAD + "int main(void) {\n    rondo_es_builder *b;\n    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;\n"
            "    must(rondo_instance_create(&options, &instance));\n    must(rondo_es_builder_create(instance, \"es\", &b));\n"
            + body + "    rondo_es_builder_release(b);\n    rondo_instance_release(instance);\n    return 0;\n}\n")


class Generated(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "rondo").mkdir()

    def compile(self, text, headers):
        source = self.folder / "es.c"
        source.write_text(text)
        includes = ["-I", str(headers), "-I", str(ROOT / "include")]
        cc = os.environ.get("CC", "cc")
        out = self.folder / "es"
        done = subprocess.run([cc, "-std=c11", "-O0", *WARNINGS, *includes, source, BUILD / "lib/librondo.a", "-lm", "-ldl",
                               "-lpthread", "-o", out], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[:4000])
        if shutil.which("c++"):
            done = subprocess.run(["c++", "-std=c++17", "-fsyntax-only", *WARNINGS, *includes, "-x", "c++", source],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr[:4000])
        return out

    def check(self, out, calls):
        done = subprocess.run([out], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        graphs = dict(part.split("\n", 1) for part in done.stdout.split("== ")[1:])
        self.assertEqual(sorted(graphs), sorted(call.name for call in calls))
        for call in calls:
            *before, node = json.loads(graphs[call.name])["nodes"]
            with self.subTest(call.name):
                self.assertEqual(node["operator"], call.operator["name"])
                self.assertEqual([one["operator"] for one in before], ["SequenceConstruct"] * call.inputs.count(SEQUENCE))
                made = iter(one["outputs"][0]["name"] for one in before)
                want = [None if name == ABSENT else next(made) if name == SEQUENCE else name for name in call.inputs]
                self.assertEqual(node["inputs"], want)
                self.assertEqual(len(node["outputs"]), call.output_count)
                want = {name: value for name, value in call.attributes.items() if value is not None}
                graphs_wanted = {name for name, value in call.attributes.items() if value is None}
                got = dict(node["attributes"])
                for name in graphs_wanted:
                    self.assertEqual(got.pop(name)["name"], name)
                self.assertEqual(got, want)

    def test_every_operator(self):
        operators = json.loads(rondo("ops", "--json", env={**os.environ, "RONDO_OPERATOR_PATH": ""}).stdout)
        self.assertGreater(len(operators), 100)
        calls = [Call(operator, full) for operator in operators for full in (True, False)]
        self.check(self.compile(program(calls), BUILD / "include"), calls)

    def test_a_library_of_ones_own(self):
        library = BUILD / "bin/examples/operators_add_custom.so"
        if not library.is_file():
            self.skipTest("the example's library was not built")
        header = self.folder / "rondo/es_operators.h"
        done = rondo("es-generate", library, "-o", header)
        self.assertEqual(done.returncode, 0, done.stderr)
        environment = {**os.environ, "RONDO_OPERATOR_PATH": str(library)}
        operators = [o for o in json.loads(rondo("ops", "--json", env=environment).stdout) if o["registered"]]
        self.assertEqual([o["name"] for o in operators], ["my.domain::AddCustom"])
        calls = [Call(operators[0], True)]
        text = program(calls)
        os.environ["RONDO_OPERATOR_PATH"] = str(library)
        self.addCleanup(os.environ.pop, "RONDO_OPERATOR_PATH")
        self.check(self.compile(text, self.folder), calls)

    def test_refusals(self):
        self.assertEqual(rondo("es-generate").returncode, 2)
        self.assertEqual(rondo("es-generate", "-o", self.folder / "no/such.h").returncode, 1)
        self.assertEqual(rondo("es-generate", RONDO, "-o", self.folder / "x.h").returncode, 3)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["rondo"])
