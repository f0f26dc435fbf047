# SPDX-License-Identifier: Apache-2.0
"""The second device of tests/second: built when it is not there yet, and loaded."""
import standins  # before PyTorch: it says that the place is not Rondo's
from standins import leave_out  # noqa: F401


def load():
    """The package `second`. The file is left out where it cannot be built."""
    why = standins.find_tools()
    if why:
        leave_out(f"the second device is not here: {why}")
    standins.build("second", "SECOND", "_second")
    import second
    return second
