# SPDX-License-Identifier: Apache-2.0
"""The converters of ATen's operators, a file a family. Each file is mostly tables."""
from . import elementwise, index, nn, reduce, shape  # noqa: F401
