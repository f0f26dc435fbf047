# SPDX-License-Identifier: Apache-2.0
"""Models on the device, called eagerly, compiled, and compiled with reduced overhead: the same numbers as on the CPU.

The sizes are for a minute of a small machine; RONDO_TORCH_LONG=1 takes those that people have.
"""
import copy
import csv
import gc
import gzip
import os
import resource
import unittest

import torch
import torch.nn.functional as F
from torch import nn

import rondo_torch  # noqa: F401

DEVICE = "rondo"
LONG = bool(os.environ.get("RONDO_TORCH_LONG"))
STEPS = 50
MODES = ("eager", "default", "reduce-overhead")


def compiled(function, mode):
    return function if mode == "eager" else torch.compile(function, mode=mode)


class LeNet(nn.Sequential):
    """LeCun's, for digits of 8 x 8."""

    def __init__(self):
        super().__init__(nn.Conv2d(1, 6, 3, padding=1), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 3), nn.Tanh(),
                         nn.Flatten(), nn.Linear(64, 84), nn.Tanh(), nn.Linear(84, 10))


class Block(nn.Module):
    """Two convolutions and what goes around them, of ResNet-18."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(channels) for _ in range(2)])
        self.around = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.around = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False),
                                        nn.BatchNorm2d(channels))

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + self.around(x))


class ResNet18(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512), strides=(1, 2, 2, 2), classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, widths[0], 7, 2, 3, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, before = [], widths[0]
        for width, stride in zip(widths, strides):
            blocks += [Block(before, width, stride), Block(width, width, 1)]
            before = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(before, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.in_projection, self.out_projection = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, cache=None, position=None):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.in_projection(x).chunk(3, 2))
        if cache is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:  # one token, after those whose keys and values are kept
            keys, values = cache
            keys.index_copy_(2, position, k)
            values.index_copy_(2, position, v)
            seen = torch.arange(keys.shape[2], device=x.device) <= position
            y = F.scaled_dot_product_attention(q, keys, values, attn_mask=seen.expand(batch, self.heads, 1, -1))
        return self.out_projection(y.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.attention = Attention(width, heads)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, cache=None, position=None):
        x = x + self.attention(self.norms[0](x), cache, position)
        return x + self.inner(self.norms[1](x))


class GPT(nn.Module):
    def __init__(self, letters, length, width, heads, layers):
        super().__init__()
        self.length, self.width, self.heads = length, width, heads
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)

    def forward(self, tokens, caches=None, position=None):
        if position is None:
            position = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.letters(tokens) + self.places(position)
        for i, layer in enumerate(self.layers):
            x = layer(x, caches and caches[i], position)
        return self.head(self.norm(x))

    def caches(self, batch, device):
        shape = (batch, self.heads, self.length, self.width // self.heads)
        return [[torch.zeros(shape, device=device) for _ in range(2)] for _ in self.layers]


def digits():
    """Scans of handwritten digits: images of 8 x 8 with 17 greys, and what they show; or None."""
    path = os.path.join(os.environ.get("RONDO_CACHE", ""), "digits", "digits.csv.gz")
    if not os.path.exists(path):
        return None
    with gzip.open(path, "rt", encoding="ascii") as file:
        rows = torch.tensor([[float(word) for word in row] for row in csv.reader(file)])
    return rows[:, :64].reshape(-1, 1, 8, 8) / 16, rows[:, 64].long()


class Models(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def train(self, model, batches, loss_of, mode, where, optimizer=torch.optim.Adam):
        """The losses of a copy of the model that learns from the batches, and the copy."""
        model = copy.deepcopy(model).to(where)
        step = optimizer(model.parameters(), lr=0.005)
        function = compiled(lambda *batch: loss_of(model, *batch), mode)
        losses = []
        for batch in batches:
            step.zero_grad()
            loss = function(*(part.to(where) for part in batch))
            loss.backward()
            step.step()
            losses.append(loss.detach().cpu().clone())
        return torch.stack(losses), model

    def agree(self, model, batches, loss_of, modes=MODES, **options):
        want, host = self.train(model, batches, loss_of, "eager", "cpu", **options)
        self.assertLess(want[-5:].mean(), 0.8 * want[:5].mean())  # it learns
        for mode in modes:
            with self.subTest(mode):
                torch._dynamo.reset()
                got, ours = self.train(model, batches, loss_of, mode, DEVICE, **options)
                self.assertLess((got - want).abs().max().item(), 1e-4)
        return host, ours

    def test_mlp_learns(self):
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
        teacher = torch.randn(16, 4)
        inputs = torch.randn(STEPS, 32, 16)
        batches = [(x, (x @ teacher).argmax(1)) for x in inputs]
        self.agree(model, batches, lambda model, x, y: F.cross_entropy(model(x), y))

    def test_lenet_reads_digits(self):
        data = digits()
        if data is None:
            self.skipTest("the digits are not there: tools/fetch digits, and RONDO_CACHE names the folder")
        images, labels = data
        self.assertEqual((images.shape[1:], int(labels.max()), len(images)), ((1, 8, 8), 9, 1797))
        order = torch.randperm(len(images))
        kept, steps = order[:297], STEPS if not LONG else 400
        seen = order[297:].repeat(20)[: steps * 64].reshape(steps, 64)
        batches = [(images[part], labels[part]) for part in seen[:STEPS]]
        loss_of = lambda model, x, y: F.cross_entropy(model(x), y)  # noqa: E731
        self.agree(LeNet(), batches, loss_of, modes=MODES if LONG else ("eager", "reduce-overhead"))
        if LONG:
            batches = [(images[part], labels[part]) for part in seen]
            _, model = self.train(LeNet(), batches, loss_of, "reduce-overhead", DEVICE)
            with torch.no_grad():
                right = (model(images[kept].to(DEVICE)).argmax(1).cpu() == labels[kept]).float().mean().item()
            self.assertGreater(right, 0.95)

    def test_gpt_learns_and_writes(self):
        text = "the cat sat on the mat and the dog sat on the log. " * 8
        letters = sorted(set(text))
        tokens = torch.tensor([letters.index(letter) for letter in text])
        length, width, heads, layers = (64, 128, 4, 4) if LONG else (16, 32, 2, 2)
        model = GPT(len(letters), length, width, heads, layers)
        starts = torch.randint(0, len(tokens) - length - 1, (STEPS, 8))
        rows = torch.stack([torch.stack([tokens[s : s + length + 1] for s in row]) for row in starts])

        def loss_of(model, x, y):
            return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

        batches = [(row[:, :-1], row[:, 1:]) for row in rows]
        host, ours = self.agree(model, batches, loss_of, modes=MODES if LONG else ("eager",))
        start = tokens[:4]
        want = self.write_without_cache(host, start, length)
        for mode in MODES if LONG else ("eager", "reduce-overhead"):
            with self.subTest(mode), torch.no_grad():
                torch._dynamo.reset()
                self.assertEqual(self.write(ours, start, length, mode), want)

    def write_without_cache(self, model, start, length):
        tokens = start[None]
        with torch.no_grad():
            while tokens.shape[1] < length:
                tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(2)], 1)
        return tokens[0].tolist()

    def write(self, model, start, length, mode):
        """The likeliest letters after those given, one at a time: what was computed for the earlier ones is kept."""
        caches = model.caches(1, DEVICE)
        for kept in caches:
            for tensor in kept:
                torch._dynamo.mark_static_address(tensor)
        next_letter = compiled(lambda token, position: model(token, caches, position)[:, -1].argmax(1), mode)
        tokens = start.tolist()
        for at in range(length - 1):
            token = torch.tensor([[tokens[at]]]).to(DEVICE)
            found = next_letter(token, torch.tensor([at]).to(DEVICE)).cpu()
            if at >= len(start) - 1:
                tokens.append(found.item())
        return tokens

    def test_resnet18_sees(self):
        model, side = (ResNet18(), 224) if LONG else (ResNet18((8, 8, 8, 8), (1, 1, 1, 1), 10), 32)
        for module in model.modules():  # statistics as training leaves them
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
        model.eval()
        ours = copy.deepcopy(model).to(DEVICE)
        for mode in MODES if LONG else ("eager", "reduce-overhead"):
            torch._dynamo.reset()
            function = compiled(ours, mode)
            for _ in range(4):
                x = torch.randn(1, 3, side, side)
                with self.subTest(mode), torch.no_grad():
                    torch.testing.assert_close(function(x.to(DEVICE)).cpu(), model(x), rtol=1e-3, atol=1e-3)


class Memory(unittest.TestCase):
    """A thousand steps leave as much memory as a few."""

    STEPS = 1000 if LONG else 200

    def resident(self):
        with open("/proc/self/maps", encoding="ascii") as file:
            if "libasan" in file.read():
                return 0  # it keeps what was freed for a while
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def test_training_holds_its_memory(self):
        for mode in MODES:
            with self.subTest(mode):
                torch._dynamo.reset()
                torch.manual_seed(0)
                model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to(DEVICE)
                step = torch.optim.Adam(model.parameters())
                function = compiled(lambda x, y: F.cross_entropy(model(x), y), mode)  # its kernels are test_mlp_learns', too
                x, y = torch.randn(32, 16).to(DEVICE), torch.randint(4, (32,)).to(DEVICE)
                marks = []
                for count in range(self.STEPS):
                    step.zero_grad()
                    loss = function(x, y)
                    loss.backward()
                    step.step()
                    loss.item()
                    if count in (self.STEPS // 2, self.STEPS - 1):
                        gc.collect()
                        torch.rondo.synchronize()
                        marks.append((torch.rondo.memory_allocated(), self.resident()))
                self.assertEqual(marks[0][0], marks[1][0])
                # The heap of the host moves by pages; a kilobyte kept by each step of a thousand would be seen.
                self.assertLess(marks[1][1] - marks[0][1], (256 << 10) + self.STEPS // 2 * 512)


if __name__ == "__main__":
    unittest.main()
