#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes schemas.inc: what ONNX says about the operators that Rondo has prototypes of. Needs onnx.

A line is an operator: name; inputs; outputs; attributes. An operand is name:type:option:mask, where the mask has a bit
for each tensor type, numbered as in TensorProto.DataType. An attribute is name:kind:required.

    python3 make_schemas.py NAME... > schemas.inc
"""
import sys

import onnx
from onnx import defs

TYPES = {f"tensor({name.lower()})": number for name, number in onnx.TensorProto.DataType.items()}
KINDS = {"INT": 1, "FLOAT": 2, "STRING": 3, "INTS": 4, "FLOATS": 5, "STRINGS": 6, "TENSOR": 7, "GRAPH": 8}


def operand(schema, formal):
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    allowed = constraints.get(formal.type_str, [formal.type_str])
    mask = sum(1 << TYPES[t] for t in set(allowed) if t in TYPES)
    return f"{formal.name}:{formal.type_str}:{formal.option.name}:{mask:x}"


def line(name):
    schema = defs.get_schema(name)
    attributes = [f"{a.name}:{KINDS[a.type.name]}:{int(a.required)}" for _, a in sorted(schema.attributes.items())
                  if a.type.name in KINDS]
    parts = [" ".join(operand(schema, f) for f in schema.inputs), " ".join(operand(schema, f) for f in schema.outputs),
             " ".join(attributes)]
    return ";".join([name] + parts)


print("/* SPDX-License-Identifier: Apache-2.0")
print(" *")
print(f" * Made by make_schemas.py from onnx {onnx.__version__}; do not edit. */")
for name in sorted(sys.argv[1:]):
    text = line(name)
    print("\n    ".join(f'"{text[i:i + 110]}"' for i in range(0, len(text), 110)) + ",")
