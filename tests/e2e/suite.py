# SPDX-License-Identifier: Apache-2.0
"""Runs every test_*.py beside it and closes with one line 'N passed, N failed, N skipped'."""
import pathlib
import sys
import unittest


def main():
    here = pathlib.Path(__file__).resolve().parent
    pattern = sys.argv[1] if len(sys.argv) > 1 else "test_*.py"
    tests = unittest.defaultTestLoader.discover(str(here), pattern=pattern)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(tests)
    failed = len({str(test) for test, _ in result.failures + result.errors}) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    for test, reason in result.skipped:
        print(f"skipped {test}: {reason}")
    print(f"{max(0, result.testsRun - failed - skipped)} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
