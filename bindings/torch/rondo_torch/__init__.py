# SPDX-License-Identifier: Apache-2.0
"""Rondo as a device of PyTorch: `import torch` finds it through the entry point `torch.backends`."""
import torch

torch.utils.rename_privateuse1_backend("rondo")

from . import _C  # noqa: E402  (the extension registers allocator, guard, hooks and operators when it loads)
from . import device as _device  # noqa: E402

__version__ = _C.version()


def _autoload():
    """Called by `import torch`; the work is done by importing this package."""


_device.install()
