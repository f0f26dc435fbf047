# SPDX-License-Identifier: Apache-2.0
"""The Python that Inductor generates around kernels. Each line names its device."""
from torch._inductor.codegen.common import DeviceOpOverrides
from torch._inductor.codegen.wrapper import PythonWrapperCodegen as _Wrapper
from torch._inductor.codegen.wrapper import SubgraphPythonWrapperCodegen as _Subgraph
from torch._inductor.virtualized import V


def _refuse(what, instead):
    raise NotImplementedError(f"rondo: {what} is not supported for this device: {instead}")


class OpOverrides(DeviceOpOverrides):
    def import_get_raw_stream_as(self, name):
        return f"from rondo_torch._C import current_raw_stream as {name}"

    def set_device(self, device_idx):
        return f"torch.rondo.set_device({device_idx})"

    def synchronize(self):
        return "torch.rondo.synchronize()"

    def device_guard(self, device_idx):
        return f"torch.rondo.device({device_idx})"

    def current_stream(self):
        return "torch.rondo.current_stream()"

    def cpp_kernel_type(self):
        return "void*"


class _Lines:
    def _generate_kernel_call_helper(self, kernel_name, call_args, *, device=None, triton=True, **others):
        device = device or V.graph.get_current_device_or_throw()
        if device.type != "rondo" or triton:
            return super()._generate_kernel_call_helper(kernel_name, call_args, device=device, triton=triton, **others)
        # Kernels are written after the guard of their device has been left: the line says where to run.
        self.writeline(f"rondo_launch({', '.join([kernel_name, str(device.index), *map(str, call_args)])})")

    def make_allocation(self, name, device, dtype, shape, stride, allocation_shape=None, is_pinned=False):
        line = super().make_allocation(name, device, dtype, shape, stride, allocation_shape, is_pinned)
        if device.type != "rondo":
            return line
        stock, ours = "device='rondo'", f"device='rondo:{device.index}'"
        if stock not in line:
            raise NotImplementedError(f"rondo: {line!r} allocates, and names no device that could be made {ours}")
        return line.replace(stock, ours)


class _SubgraphWrapper(_Lines, _Subgraph):
    """Graph partitions are subgraphs, and launch kernels too."""


class PythonWrapperCodegen(_Lines, _Wrapper):
    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        if is_subgraph:
            return _SubgraphWrapper(subgraph_name, parent_wrapper, partition_signatures)
        return PythonWrapperCodegen()

    def write_header(self):
        super().write_header()
        self.header.writeline("from rondo_torch.inductor.launch import rondo_launch, rondo_resolve")

    def write_async_compile_wait(self):
        super().write_async_compile_wait()
        self.prefix.writeline("rondo_resolve(globals())")


class CppWrapperCodegen:
    supports_caching = False

    @staticmethod
    def create(*_arguments, **_options):
        _refuse("cpp_wrapper (and AOTInductor, which needs it)",
                "its kernels are launched by generated Python. Leave torch._inductor.config.cpp_wrapper "
                "(TORCHINDUCTOR_CPP_WRAPPER) off, or move the model to the CPU for AOTInductor")


class FxWrapperCodegen:
    supports_caching = False

    @staticmethod
    def create(*_arguments, **_options):
        _refuse("fx_wrapper", "leave torch._inductor.config.fx_wrapper (TORCHINDUCTOR_FX_WRAPPER) off")
