# SPDX-License-Identifier: Apache-2.0
"""docs/trees-tests.md says of each of PyTorch's own tests of graph trees which one of ours holds it on the device."""
import os
import re
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "..", "docs", "trees-tests.md")
FILES = {"compile": "test_trees_compile.py", "train": "test_trees_train.py", "outputs": "test_trees_outputs.py", "gates": "test_gates.py"}


def numbers(cell):
    for part in cell.split(","):
        first, _, last = part.strip().partition("–")
        yield from range(int(first), int(last or first) + 1)


class Page(unittest.TestCase):
    def setUp(self):
        with open(PAGE, encoding="utf-8") as file:
            text = file.read().split("## Through torch.compile")[1]
        self.rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
                     if re.match(r"\| \d", line)]
        self.tests = {}
        for name, file in FILES.items():
            with open(os.path.join(HERE, file), encoding="utf-8") as source:
                self.tests[name] = set(re.findall(r"def (test_\w+)\(", source.read()))

    def test_each_of_the_174_has_one_row(self):
        self.assertEqual([number for row in self.rows for number in numbers(row[0])], list(range(1, 175)))

    def test_each_row_names_tests_that_are_there_or_a_reason(self):
        for number, verdict in self.rows:
            with self.subTest(number):
                if verdict.startswith("does not apply: "):
                    self.assertGreater(len(verdict), 30)
                else:
                    self.assertRegex(verdict, r"^(`test_\w+`(, )?)+ \(\w+\)$")
                for names, file in re.findall(r"((?:`test_\w+`(?:, )?)+) \((\w+)\)", verdict):
                    for name in re.findall(r"`(test_\w+)`", names):
                        self.assertTrue(name in self.tests[file], f"{FILES[file]} has no {name}")


if __name__ == "__main__":
    unittest.main()
