#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes x_plus_2y.onnx, two nodes my.domain::AddCustom, beside itself. Plain protobuf: it needs no package."""
import pathlib


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def node(a, b, out, name):
    return field(1, a) + field(1, b) + field(2, out) + field(3, name) + field(4, "AddCustom") + field(7, "my.domain")


def port(name):
    shape = field(1, field(1, 2)) + field(1, field(1, 3))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))  # float32[2,3]


def opset(domain, version):
    return field(1, domain) + field(2, version)


graph = field(1, node("x", "y", "s", "add0")) + field(1, node("s", "y", "z", "add1")) + field(2, "x_plus_2y")
graph += field(11, port("x")) + field(11, port("y")) + field(12, port("z"))
model = field(1, 8) + field(7, graph) + field(8, opset("", 17)) + field(8, opset("my.domain", 1))
pathlib.Path(__file__).with_name("x_plus_2y.onnx").write_bytes(model)
