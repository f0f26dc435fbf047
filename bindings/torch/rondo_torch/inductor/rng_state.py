# SPDX-License-Identifier: Apache-2.0
"""Random operators that a backward computes again and that Inductor calls by name (fallback_random, multinomial).

PyTorch saves the generator's state in the forward and draws from it again in the backward, by two operators that know a
fixed list of device types. Neither can be captured: what they do stays between the graphs.
"""
import functools

import torch

from .. import patches

SAVE = "random.run_and_save_rng_state"
USE = "random.run_with_rng_state"
FAKE = "random.run_and_save_rng_state.fake"
NAMES = (SAVE, USE, FAKE)


def _device(arguments, keywords):
    """The device of ours that the operator runs on, or None."""
    given = keywords.get("device")
    if given is None:
        # Some releases hand a device by position, to an operator that takes no tensor.
        given = next((value.device if isinstance(value, torch.Tensor) else value for value in arguments
                      if isinstance(value, (torch.Tensor, torch.device))), None)
    given = torch.device(given) if given is not None else None
    return given if given is not None and given.type == "rondo" else None


def _save(device, operator, *arguments, **keywords):
    # Inductor was told of a state of the size that the CPU's has.
    state, carried = torch.rondo.get_rng_state(device), torch.zeros_like(torch.get_rng_state())
    carried[:state.numel()] = state
    return carried, operator(*arguments, **keywords)


def _fake_save(_device, operator, *arguments, **keywords):
    return torch.get_rng_state(), operator(*arguments, **keywords)


def _use(device, carried, operator, *arguments, **keywords):
    before = torch.rondo.get_rng_state(device)
    torch.rondo.set_rng_state(carried[:before.numel()], device)
    try:
        return operator(*arguments, **keywords)
    finally:
        torch.rondo.set_rng_state(before, device)


def _or_ours(original, ours, skip):
    """`skip`: how many arguments stand before those of the operator that draws."""
    @functools.wraps(original)
    def kernel(*arguments, **keywords):
        device = _device(arguments[skip:], keywords)
        return original(*arguments, **keywords) if device is None else ours(device, *arguments, **keywords)

    return kernel


def _table(key, ours, skip):
    def make(known):
        return {**known, key: _or_ours(known[key], ours, skip)}

    def expected(known):
        return None if isinstance(known, dict) and key in known else f"it holds no {key}"

    return {"make": make, "expected": expected}


def install():
    """Where one cannot be replaced, all is as PyTorch has it: such programs fail by the operator's name."""
    prims = "torch._prims.rng_prims:"
    from torch._prims import rng_prims

    key, save = torch._C.DispatchKey.BackendSelect, getattr(rng_prims, "run_and_save_rng_state", None)
    patches.install(FAKE, "torch._higher_order_ops.utils:registered_hop_fake_fns", **_table(save, _fake_save, 1))
    patches.install(SAVE, prims + "run_and_save_rng_state.py_kernels", **_table(key, _save, 1))
    patches.install(USE, prims + "run_with_rng_state.py_kernels", **_table(key, _use, 2))
    for name in ("run_and_save_rng_state", "run_with_rng_state"):
        cache = getattr(getattr(rng_prims, name, None), "_dispatch_cache", None)
        if cache:
            cache.clear()
