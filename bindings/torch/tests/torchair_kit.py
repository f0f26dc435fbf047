# SPDX-License-Identifier: Apache-2.0
"""Models with random weights, and a library of operators, for what tests and measures rondo_torch.torchair."""
import functools
import os
import subprocess
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

from rondo_torch import torchair

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


def compiled(function, **options):
    """(the compiled function, its backend)"""
    config = torchair.CompilerConfig()
    experimental = options.pop("frozen", False)
    config.fallback = options.pop("fallback", "auto")
    config.specialisations = options.pop("specialisations", 8)
    config.experimental_config.frozen_parameter = experimental
    backend = torchair.get_npu_backend(compiler_config=config)
    return torch.compile(function, backend=backend, **{"dynamic": False, "fullgraph": True, **options}), backend


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.dense = nn.Sequential(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))

    def forward(self, x):
        x = F.avg_pool2d(torch.tanh(self.first(x)), 2)
        x = F.max_pool2d(torch.relu(self.second(x)), 2)
        return self.dense(torch.flatten(x, 1))


class Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first, self.norm = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.second, self.norm2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        self.beside = None
        if stride != 1 or inside != outside:
            self.beside = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.norm2(self.second(torch.relu(self.norm(self.first(x)))))
        return torch.relu(y + (x if self.beside is None else self.beside(x)))


class ResNet18(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, inside = [], 64
        for outside, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [Block(inside, outside, stride), Block(outside, outside, 1)]
            inside = outside
        self.blocks, self.dense = nn.Sequential(*blocks), nn.Linear(512, classes)

    def forward(self, x):
        return self.dense(torch.flatten(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1), 1))


class Encoder(nn.Module):
    def __init__(self, words=100, width=64, heads=4, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.randn(64, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.dense = nn.Linear(width, words)

    def forward(self, tokens):
        return self.dense(self.layers(self.words(tokens) + self.places[:tokens.shape[1]]))


def randomised(model):
    """In evaluation, with statistics of batch norms that are not those of a fresh one."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, 0, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.1)
    return model.eval()


def models():
    """name -> (model, input)."""
    torch.manual_seed(7)
    return {
        "mlp": (randomised(MLP()), torch.randn(4, 16)),
        "lenet": (randomised(LeNet()), torch.randn(2, 1, 28, 28)),
        "resnet18": (randomised(ResNet18()), torch.randn(1, 3, 32, 32)),
        "encoder": (randomised(Encoder()), torch.randint(0, 100, (2, 16))),
    }


# An operator that tells where its memory lies: where = {address of x, address of where}.
ADDRESSES = r"""
#include <rondo/operator.h>

static rondo_status infer_shape(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                rondo_operator_result *results) {
    (void)api, (void)user, (void)request;
    results[0].rank = 1;
    results[0].dims[0] = 2;
    return RONDO_OK;
}

static rondo_status infer_dtype(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                rondo_operator_result *results) {
    (void)api, (void)user, (void)request;
    results[0].dtype = RONDO_DTYPE_I64;
    return RONDO_OK;
}

static rondo_status execute(const rondo_operator_api *api, void *user, rondo_operator_context *context) {
    static const int64_t dims[] = {2};
    void *where = NULL;
    (void)user;
    rondo_status status = api->output(context, 0, 1, dims, RONDO_FORMAT_ND, RONDO_DTYPE_I64, &where);
    if (status) return status;
    ((int64_t *)where)[0] = (int64_t)(intptr_t)api->input(context, 0, RONDO_DTYPE_F32);
    ((int64_t *)where)[1] = (int64_t)(intptr_t)where;
    return RONDO_OK;
}

static const rondo_operator_operand inputs[] = {{"x", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 0, {0}}};
static const rondo_operator_operand outputs[] = {{"where", RONDO_OPERATOR_DTYPE(I64), RONDO_OPERATOR_REQUIRED, 0, {0}}};
static const rondo_operator_implementation implementation = {.struct_size = sizeof implementation,
                                                             .infer_shape = infer_shape,
                                                             .infer_dtype = infer_dtype,
                                                             .execute = execute};
static const rondo_operator addresses = {.struct_size = sizeof addresses,
                                         .input_count = 1,
                                         .output_count = 1,
                                         .name = "Addresses",
                                         .domain = "test",
                                         .inputs = inputs,
                                         .outputs = outputs,
                                         .implementation = &implementation};
static const rondo_operator *const operators[] = {&addresses};
RONDO_OPERATOR_LIBRARY(operators)
"""


@functools.lru_cache(maxsize=None)
def library(source):
    """A shared library of operators, of a C file below the checkout or of a text."""
    folder = tempfile.mkdtemp(prefix="rondo-operators-")
    path = os.path.join(folder, "operators.so")
    if "\n" in source:
        with open(os.path.join(folder, "operators.c"), "w", encoding="utf-8") as file:
            file.write(source)
        source = os.path.join(folder, "operators.c")
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-fvisibility=hidden", "-I",
                    os.path.join(ROOT, "include"), "-o", path, os.path.join(ROOT, source)], check=True)
    return path
