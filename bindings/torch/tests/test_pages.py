# SPDX-License-Identifier: Apache-2.0
"""The Python of the pages in docs/ runs as it is printed, each block in a process of its own; that of docs/vendor.md
needs another package's device (test_attach.py)."""
import os
import re
import unittest

import forks

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PAGES = ("README.md", "docs/pytorch.md", "docs/variants.md")


def blocks(page):
    path = os.path.join(ROOT, page)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)


class Pages(unittest.TestCase):
    def test_blocks_run(self):
        ran = 0
        for page in PAGES:
            for index, text in enumerate(blocks(page)):
                with self.subTest(page=page, block=index):
                    done = forks.python(["-c", "import rondo_torch\n" + text])
                    self.assertEqual(done.returncode, 0, done.stderr)
                    ran += 1
        self.assertGreaterEqual(ran, 4)


if __name__ == "__main__":
    unittest.main()
