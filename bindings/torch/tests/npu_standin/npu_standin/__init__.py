# SPDX-License-Identifier: Apache-2.0
"""A small stand-in for the package of an Ascend device, for tests: PyTorch's device `npu` over AscendCL, with the
names that such a package has. It uses nothing of Rondo."""
import torch

torch.utils.rename_privateuse1_backend("npu")

from . import _C  # noqa: E402  (it registers allocator, guard, hooks and operators)
from . import npu  # noqa: E402

torch._register_device_module("npu", npu)
torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)
