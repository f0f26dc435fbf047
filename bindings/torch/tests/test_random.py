# SPDX-License-Identifier: Apache-2.0
"""Random numbers: distributions against their moments, generators, and draws that a replay makes anew."""

import math
import unittest

import torch

import rondo_torch  # noqa: F401

DEVICE = "rondo"
COUNT = 20000

# Name -> (draw into a tensor, mean, variance, least, greatest).
DISTRIBUTIONS = {
    "uniform_": (lambda t, g: t.uniform_(-1, 3, generator=g), 1, 16 / 12, -1, 3),
    "normal_": (lambda t, g: t.normal_(2, 3, generator=g), 2, 9, -math.inf, math.inf),
    "exponential_": (lambda t, g: t.exponential_(2, generator=g), 0.5, 0.25, 0, math.inf),
    "geometric_": (lambda t, g: t.geometric_(0.25, generator=g), 4, 12, 1, math.inf),
    "log_normal_": (
        lambda t, g: t.log_normal_(0, 0.5, generator=g),
        math.exp(0.125),
        (math.exp(0.25) - 1) * math.exp(0.25),
        0,
        math.inf,
    ),
    "bernoulli_": (lambda t, g: t.bernoulli_(0.3, generator=g), 0.3, 0.21, 0, 1),
    "random_to": (lambda t, g: t.random_(10, generator=g), 4.5, 99 / 12, 0, 9),
    "random_from": (lambda t, g: t.random_(-4, 6, generator=g), 0.5, 99 / 12, -4, 5),
}


def generator(seed=5, device=DEVICE):
    return torch.Generator(device).manual_seed(seed)


def draw(function, dtype=torch.float32, g=None, count=COUNT):
    return function(torch.empty(count, dtype=dtype, device=DEVICE), g or generator()).cpu().double()


class Distributions(unittest.TestCase):
    def check(self, numbers, mean, variance, least, greatest):
        n, deviation = len(numbers), math.sqrt(variance)
        self.assertLess(abs(numbers.mean().item() - mean), 6 * deviation / math.sqrt(n))
        self.assertLess(abs(numbers.var().item() / variance - 1), 0.25)
        self.assertGreaterEqual(numbers.min().item(), least)
        self.assertLessEqual(numbers.max().item(), greatest)

    def test_moments_and_ranges(self):
        for name, (function, *want) in DISTRIBUTIONS.items():
            for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
                if dtype != torch.bfloat16 or "random" not in name:
                    with self.subTest(name, dtype=dtype):
                        self.check(draw(function, dtype), *want)

    def test_cauchy_by_its_quartiles(self):
        numbers = draw(lambda t, g: t.cauchy_(1, 2, generator=g)).sort().values
        for part, want in ((0.25, -1), (0.5, 1), (0.75, 3)):
            self.assertAlmostEqual(numbers[int(part * COUNT)].item(), want, delta=0.2)

    def chi_square(self, counts, expected):
        """Within five deviations of what it is for that many cells."""
        cells = len(counts)
        value = (((counts - expected) ** 2) / expected).sum().item()
        self.assertLess(value, cells - 1 + 5 * math.sqrt(2 * (cells - 1)))
        self.assertGreater(value, 0)

    def test_cells_are_even(self):
        g = generator(11)
        uniform = draw(lambda t, g: t.uniform_(generator=g), g=g)
        self.chi_square(torch.histc(uniform, 50, 0, 1), torch.full((50,), COUNT / 50, dtype=torch.double))
        integers = torch.randint(-3, 4, (COUNT,), device=DEVICE, generator=g).cpu()
        self.chi_square(torch.bincount(integers + 3).double(), torch.full((7,), COUNT / 7, dtype=torch.double))
        normal = draw(lambda t, g: t.normal_(generator=g), g=g)
        thirds = torch.tensor(
            [(normal < -0.43073).sum(), ((normal >= -0.43073) & (normal < 0.43073)).sum(), (normal >= 0.43073).sum()]
        ).double()
        self.chi_square(thirds, torch.full((3,), COUNT / 3, dtype=torch.double))

    def test_chances_by_element(self):
        chances = torch.linspace(0, 1, 5, device=DEVICE)
        drawn = torch.bernoulli(chances.expand(4000, 5), generator=generator()).cpu().mean(0)
        torch.testing.assert_close(drawn, chances.cpu(), atol=0.05, rtol=0)
        self.assertEqual((drawn[0].item(), drawn[4].item()), (0, 1))
        kept = torch.empty(4000, 5, dtype=torch.bool, device=DEVICE).bernoulli_(chances, generator=generator())
        torch.testing.assert_close(kept.float().mean(0).cpu(), drawn)
        with self.assertRaisesRegex(RuntimeError, "p_in"):
            torch.bernoulli(torch.tensor([1.5], device=DEVICE))
            torch.rondo.synchronize()

    def test_permutations(self):
        g = generator()
        seen = set()
        for n in (0, 1, 2, 100):
            drawn = torch.randperm(n, device=DEVICE, generator=g)
            self.assertEqual(sorted(drawn.tolist()), list(range(n)))
        for _ in range(200):
            seen.add(tuple(torch.randperm(3, device=DEVICE, generator=g).tolist()))
        self.assertEqual(len(seen), 6)
        with self.assertRaisesRegex(RuntimeError, "too large"):
            torch.randperm(3000, dtype=torch.float16, device=DEVICE)

    def test_picks(self):
        weights = torch.tensor([0.0, 1.0, 3.0, 0.0, 4.0], device=DEVICE)
        drawn = torch.multinomial(weights, 8000, replacement=True, generator=generator())
        counts = torch.bincount(drawn.cpu(), minlength=5).double()
        self.assertEqual((counts[0].item(), counts[3].item()), (0, 0))
        self.chi_square(counts[[1, 2, 4]], torch.tensor([1000.0, 3000.0, 4000.0], dtype=torch.double))
        rows = torch.multinomial(weights.expand(500, 5), 3, generator=generator()).cpu()
        self.assertEqual(rows.shape, (500, 3))
        self.assertTrue((rows.sort(1).values == torch.tensor([1, 2, 4])).all())
        first = torch.bincount(rows[:, 0], minlength=5)
        self.assertTrue(first[4] > first[1])
        for bad, message in ((torch.tensor([-1.0, 2]), "inf|nan|< 0"), (torch.zeros(2), "sum of prob")):
            with self.assertRaisesRegex(RuntimeError, message):
                torch.multinomial(bad.to(DEVICE), 1)
                torch.rondo.synchronize()
        with self.assertRaisesRegex(RuntimeError, "cannot sample"):
            torch.multinomial(weights, 6)

    def test_normal_of_tensors(self):
        mean, std = torch.arange(4.0, device=DEVICE), torch.tensor([1.0, 2, 3, 4], device=DEVICE)
        for drawn, means, stds in (
            (torch.normal(mean.expand(5000, 4), 2.0, generator=generator()), mean, torch.full((4,), 2.0)),
            (torch.normal(1.0, std.expand(5000, 4), generator=generator()), torch.ones(4), std),
            (torch.normal(mean.expand(5000, 4), std, generator=generator()), mean, std),
            (
                torch.normal(3.0, 2.0, (5000, 4), device=DEVICE, generator=generator()),
                torch.full((4,), 3.0),
                torch.full((4,), 2.0),
            ),
        ):
            torch.testing.assert_close(drawn.mean(0).cpu(), means.cpu(), atol=0.3, rtol=0)
            torch.testing.assert_close(drawn.std(0).cpu(), stds.cpu(), atol=0.3, rtol=0)
        with self.assertRaisesRegex(RuntimeError, "std >= 0"):
            torch.normal(mean, -std)

    def test_dropout(self):
        torch.manual_seed(3)
        x = torch.ones(10000, device=DEVICE, requires_grad=True)
        dropped = torch.nn.functional.dropout(x, 0.25)
        values, kept = dropped.detach().cpu(), (dropped != 0).cpu()
        self.assertAlmostEqual(kept.float().mean().item(), 0.75, delta=0.03)
        torch.testing.assert_close(values[kept], torch.full((int(kept.sum()),), 1 / 0.75))
        dropped.sum().backward()
        self.assertTrue(x.grad.equal(dropped.detach()))  # the same elements, the same scale
        self.assertTrue(torch.nn.functional.dropout(x, 0.25, training=False).equal(x))
        self.assertEqual(torch.nn.functional.dropout(x, 1.0).abs().sum().item(), 0)

    def test_the_long_tail_draws_from_the_generator(self):
        rates = torch.full((2000,), 4.0, device=DEVICE)
        first, again, third = (torch.poisson(rates, generator=g) for g in (generator(1), generator(1), generator(2)))
        self.assertTrue(first.equal(again))
        self.assertFalse(first.equal(third))
        self.assertAlmostEqual(first.mean().item(), 4, delta=0.3)
        self.assertAlmostEqual(torch._standard_gamma(rates, generator=generator()).mean().item(), 4, delta=0.3)

    def test_what_is_no_distribution(self):
        x = torch.empty(3, device=DEVICE)
        for call, message in (
            (lambda: x.uniform_(2, 1), "uniform_"),
            (lambda: x.normal_(0, -1), "std >= 0"),
            (lambda: x.bernoulli_(2), "p to be in"),
            (lambda: x.exponential_(0), "lambda"),
            (lambda: x.geometric_(1), "p to be in"),
            (lambda: x.random_(3, 3), "less than"),
            (lambda: x.cauchy_(0, 0), "sigma"),
            (lambda: x.log_normal_(0, 0), "std > 0"),
            (lambda: torch.empty(3, dtype=torch.uint8, device=DEVICE).random_(0, 300), "out of bounds"),
            (lambda: torch.empty(3, dtype=torch.long, device=DEVICE).normal_(), "not implemented"),
            (lambda: x.expand(3, 3)[:, :1].expand(3, 4).uniform_(), "memory"),
        ):
            with self.assertRaisesRegex(RuntimeError, message):
                call()
        self.assertEqual(torch.rand(0, device=DEVICE).shape, (0,))

    def test_types_and_layouts(self):
        base = torch.zeros(4, 6, device=DEVICE)
        base.t()[::2].uniform_(1, 2, generator=generator())
        self.assertTrue((base[:, ::2] >= 1).all().item() and (base[:, 1::2] == 0).all().item())
        drawn = torch.randn(4000, dtype=torch.complex64, device=DEVICE, generator=generator()).cpu()
        self.assertAlmostEqual(drawn.abs().square().mean().item(), 1, delta=0.1)
        self.assertEqual(set(torch.randint(2, (100,), dtype=torch.bool, device=DEVICE).tolist()), {True, False})
        wide = torch.empty(100, dtype=torch.long, device=DEVICE).random_(-(2**63), None, generator=generator()).cpu()
        self.assertTrue((wide < 0).any() and (wide > 0).any())


class Generators(unittest.TestCase):
    def test_seeds_and_states(self):
        g = generator(7)
        state = g.get_state()
        first = torch.rand(9, device=DEVICE, generator=g)
        second = torch.rand(9, device=DEVICE, generator=g)
        self.assertFalse(first.equal(second))
        g.set_state(state)
        self.assertTrue(torch.rand(9, device=DEVICE, generator=g).equal(first))
        self.assertTrue(torch.rand(9, device=DEVICE, generator=generator(7)).equal(first))
        self.assertEqual((g.initial_seed(), g.device.type), (7, "rondo"))
        self.assertTrue(g.clone_state().get_state().equal(g.get_state()))
        with self.assertRaisesRegex(RuntimeError, "16 bytes|wrong size|RNG state"):
            g.set_state(torch.zeros(3, dtype=torch.uint8))

    def test_a_seed_in_a_capture(self):
        """It would act once, and not at each replay: refused, but for the one that is there."""
        torch.manual_seed(5)
        graph = torch.rondo.RondoGraph()
        with self.assertRaisesRegex(RuntimeError, "seed cannot be changed while the current stream captures"):
            with torch.rondo.graph(graph):
                torch.rondo.manual_seed(6)
        graph = torch.rondo.RondoGraph()
        with self.assertRaisesRegex(RuntimeError, "seed cannot be changed while the current stream captures"):
            with torch.rondo.graph(graph):
                torch.rand(4, device=DEVICE)
                torch.manual_seed(6)
        graph = torch.rondo.RondoGraph()
        with torch.rondo.graph(graph):
            torch.rondo.manual_seed(5)
            drawn = torch.rand(4, device=DEVICE)
        torch.manual_seed(7)
        graph.replay()
        torch.rondo.synchronize()
        first = drawn.clone()
        torch.manual_seed(7)
        self.assertTrue(torch.rand(4, device=DEVICE).equal(first))

    def test_default_generators(self):
        torch.manual_seed(1)
        first = torch.rand(5, device=DEVICE)
        state = torch.rondo.get_rng_state()
        with torch.random.fork_rng(device_type="rondo"):
            torch.rand(5, device=DEVICE)
        second = torch.rand(5, device=DEVICE)
        torch.rondo.set_rng_state(state)
        self.assertTrue(torch.rand(5, device=DEVICE).equal(second))
        torch.rondo.manual_seed(1)
        self.assertTrue(torch.rand(5, device=DEVICE).equal(first))
        self.assertEqual(torch.rondo.initial_seed(), 1)
        self.assertNotEqual(torch.rondo.seed(), 1)
        self.assertEqual(torch.rondo.seed_all(), torch.rondo.initial_seed())
        states = torch.rondo.get_rng_state_all()
        self.assertEqual(len(states), torch.rondo.device_count())
        torch.rondo.set_rng_state_all(states)

    def test_other_devices(self):
        with self.assertRaisesRegex(RuntimeError, "Expected a 'rondo' device type"):
            torch.rand(2, device=DEVICE, generator=torch.Generator())
        g = torch.Generator(device=DEVICE)
        for draw in (lambda: torch.rand(3, generator=g), lambda: torch.empty(3).normal_(generator=g),
                     lambda: torch.randperm(5, generator=g), lambda: torch.multinomial(torch.ones(3), 1, generator=g)):
            with self.assertRaisesRegex(RuntimeError, "Expected a 'cpu' device type for generator but found 'rondo'"):
                draw()
        if torch.rondo.device_count() < 2:
            self.skipTest("one device")
        g = torch.Generator(device="rondo:1").manual_seed(3)
        self.assertEqual(g.device, torch.device("rondo:1"))
        drawn = torch.rand(4, device="rondo:1", generator=g)
        self.assertTrue(drawn.cpu().equal(torch.rand(4, device="rondo:0", generator=generator(3, "rondo:0")).cpu()))
        with self.assertRaisesRegex(RuntimeError, "generator is on rondo:1, the tensor on rondo:0"):
            torch.rand(2, device="rondo:0", generator=g)

    def test_a_graph_may_exchange_states(self):
        g = generator(4)
        other = g.graphsafe_get_state()
        torch.rand(8, device=DEVICE, generator=g)
        self.assertTrue(other.get_state().equal(g.get_state()))  # one state for both
        fresh = generator(9)
        g.graphsafe_set_state(fresh.graphsafe_get_state())
        self.assertEqual(g.initial_seed(), 9)


# What a program draws, as one tensor: by its own kernels, and by the long tail's seed.
DRAWS = {
    "uniform_": lambda g: torch.rand(7, device=DEVICE, generator=g),
    "uniform_ of doubles": lambda g: torch.rand(7, device=DEVICE, dtype=torch.float64, generator=g),
    "normal_": lambda g: torch.randn(7, device=DEVICE, generator=g),
    "normal_ of halves": lambda g: torch.randn(7, device=DEVICE, dtype=torch.float16, generator=g),
    "normal of tensors": lambda g: torch.normal(
        torch.zeros(5, device=DEVICE), torch.ones(5, device=DEVICE), generator=g
    ),
    "randint": lambda g: torch.randint(0, 1000000, (7,), device=DEVICE, generator=g),
    "random_": lambda g: torch.empty(7, dtype=torch.long, device=DEVICE).random_(generator=g),
    "bernoulli_": lambda g: torch.empty(64, device=DEVICE).bernoulli_(0.5, generator=g),
    "bernoulli": lambda g: torch.bernoulli(torch.full((64,), 0.5, device=DEVICE), generator=g),
    "exponential_": lambda g: torch.empty(7, device=DEVICE).exponential_(generator=g),
    "geometric_": lambda g: torch.empty(40, device=DEVICE).geometric_(0.1, generator=g),
    "log_normal_": lambda g: torch.empty(7, device=DEVICE).log_normal_(generator=g),
    "cauchy_": lambda g: torch.empty(7, device=DEVICE).cauchy_(generator=g),
    "randperm": lambda g: torch.randperm(50, device=DEVICE, generator=g),
    "multinomial": lambda g: torch.multinomial(torch.ones(50, device=DEVICE), 30, generator=g),
    "multinomial again": lambda g: torch.multinomial(torch.ones(50, device=DEVICE), 60, replacement=True, generator=g),
    "poisson": lambda g: torch.poisson(torch.full((40,), 9.0, device=DEVICE), generator=g),
    "gamma": lambda g: torch._standard_gamma(torch.full((7,), 9.0, device=DEVICE), generator=g),
}


class Captured(unittest.TestCase):
    def capture(self, function):
        stream, graph = torch.Stream(device=DEVICE), torch.accelerator.Graph()
        torch.accelerator.synchronize()
        with stream, graph:
            out = function()
        return graph, out

    def replayed(self, graph, out):
        graph.replay()
        torch.accelerator.synchronize()
        return out.cpu()

    def test_each_replay_draws_what_a_call_would_have(self):
        for name, function in DRAWS.items():
            with self.subTest(name):
                g, twin = generator(21), generator(21)
                graph, out = self.capture(lambda: function(g))  # noqa: B023
                self.assertTrue(g.get_state().equal(generator(21).get_state()), "a capture draws nothing")
                seen = [self.replayed(graph, out) for _ in range(3)]
                want = [function(twin).cpu() for _ in range(3)]
                self.assertFalse(seen[0].equal(seen[1]))
                for number, (got, wanted) in enumerate(zip(seen, want)):
                    self.assertTrue(got.equal(wanted), f"replay {number}")
                self.assertTrue(g.get_state().equal(twin.get_state()))

    def test_dropout(self):
        x = torch.ones(500, device=DEVICE)
        torch.manual_seed(2)
        graph, out = self.capture(lambda: torch.nn.functional.dropout(x, 0.5))
        first = self.replayed(graph, out)
        second = self.replayed(graph, out)
        self.assertFalse(first.equal(second))
        torch.manual_seed(2)
        self.assertTrue(torch.nn.functional.dropout(x, 0.5).cpu().equal(first))

    def test_a_new_seed_acts_at_the_next_replay(self):
        g = generator(1)
        graph, out = self.capture(lambda: torch.rand(6, device=DEVICE, generator=g))
        first = self.replayed(graph, out)
        g.manual_seed(1)
        self.assertTrue(self.replayed(graph, out).equal(first))
        g.manual_seed(2)
        self.assertFalse(self.replayed(graph, out).equal(first))
        state = g.get_state()
        third = self.replayed(graph, out)
        g.set_state(state)
        self.assertTrue(self.replayed(graph, out).equal(third))

    def test_states_are_closed_while_a_capture_uses_them(self):
        for name, call in (
            ("manual_seed", lambda g: g.manual_seed(3)),
            ("get_state", lambda g: g.get_state()),
            ("set_state", lambda g: g.set_state(generator(3).get_state())),
        ):
            with self.subTest(name):
                g = generator(1)
                with self.assertRaisesRegex(RuntimeError, "capture"):
                    self.capture(lambda: (torch.rand(2, device=DEVICE, generator=g), call(g)))  # noqa: B023
                g.manual_seed(5)
                self.assertTrue(
                    torch.rand(2, device=DEVICE, generator=g).equal(
                        torch.rand(2, device=DEVICE, generator=generator(5))
                    )
                )


if __name__ == "__main__":
    unittest.main()
