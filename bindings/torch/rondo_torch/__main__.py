# SPDX-License-Identifier: Apache-2.0
"""The command `rondo_torch` (or `python -m rondo_torch`)."""
import argparse
import os
import sys


def _upstream(options):
    from .upstream import Moved, diff

    if options.torch and not os.path.isfile(os.path.join(options.torch, "torch", "_inductor", "cudagraph_trees.py")):
        print(f"rondo_torch: {options.torch} has no torch/_inductor/cudagraph_trees.py: "
              "name the folder that has torch/", file=sys.stderr)
        return 2
    if options.diff:
        try:
            print(diff.diff(options.variant, options.torch))
        except Moved as moved:
            print(f"rondo_torch: {moved}", file=sys.stderr)
            return 1
        return 0
    wrong = 0
    for file, part, rule, expected, found in diff.rules(options.variant, options.torch):
        fits = expected == found
        wrong += not fits
        print(f"{'ok  ' if fits else 'BAD '} {part:6} {file}: {rule}: expected {expected}, found {found}")
    if wrong:
        print(f"rondo_torch: {wrong} of the rules do not fit this PyTorch", file=sys.stderr)
    return 1 if wrong else 0


def _parser():
    parser = argparse.ArgumentParser(prog="rondo_torch", description="Rondo's plugin for PyTorch.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    upstream = commands.add_parser(
        "upstream", help="Inductor's own graph trees, made device-neutral by a table of rules",
        description="Lists the rules and whether each fits the installed PyTorch. With --diff: prints what they make "
                    "of its files as patches, PR-2 to PR-5b, for `patch -p1` in the folder that has torch/.",
        epilog="Exit status: 0 done, 1 PyTorch is not what a rule expects, 2 wrong usage.")
    upstream.add_argument("--diff", action="store_true", help="print the patches")
    upstream.add_argument("--variant", choices=("kept", "contract", "duck"), default="kept",
                          help="how CUDA is reached: its path kept (default), through the contract, or duck-typed")
    upstream.add_argument("--torch", metavar="DIR", help="a folder that has torch/, instead of the installed PyTorch's")
    upstream.set_defaults(run=_upstream)
    return parser


def main(arguments=None):
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except BrokenPipeError:
        # Whoever reads has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
