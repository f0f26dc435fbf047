# SPDX-License-Identifier: Apache-2.0
"""What a compilation is told, under the names of TorchAir's configuration. A name that is none is refused, and so is a
value that would have an effect there and has none here: nothing is accepted and ignored without a word."""


class _Section:
    """Attributes of the table alone, each with the values that it may have."""

    _table = {}

    def __init__(self):
        for name, (default, _) in self._table.items():
            object.__setattr__(self, name, default)

    def __setattr__(self, name, value):
        if name not in self._table:
            known = ", ".join(sorted(self._table)) or "none"
            raise AttributeError(f"CompilerConfig: {type(self).__name__} has no option '{name}'; there are: {known}")
        default, allowed = self._table[name]
        if callable(allowed):
            fine = allowed(value)
        else:
            fine = any(type(value) is type(one) and value == one for one in allowed)
        if not fine:
            wanted = allowed.__doc__ if callable(allowed) else ", ".join(repr(one) for one in allowed)
            raise ValueError(f"CompilerConfig: {type(self).__name__}.{name} cannot be {value!r}; it may be {wanted}")
        object.__setattr__(self, name, value)

    def __repr__(self):
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._table)
        return f"{type(self).__name__}({inside})"


def _count(value):
    """an integer above 0"""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class _Debug(_Section):
    # Every node runs as PyTorch runs it: to see whether a difference comes from here.
    _table = {"run_eagerly": (False, (False, True))}


class _Experimental(_Section):
    _table = {
        # Parameters and buffers are constants of the plan, packed once; a change that their version counters tell is
        # followed. docs/torch-backend.md says what a version counter does not tell.
        "frozen_parameter": (False, (False, True)),
        "keep_inference_input_mutations": (True, (True,)),
    }


class _Ge(_Section):
    _table = {
        "oo_constant_folding": (True, (False, True)),
        "fusion": (True, (False, True)),
        "memory_reuse": (True, (False, True)),
    }


class CompilerConfig(_Section):
    """`mode` is TorchAir's: the graph is compiled. `fallback`: what becomes of a node that Rondo has no kernel for:
    "auto" refuses it under fullgraph=True and has PyTorch run it elsewhere; "eager" and "error" do one of them always.
    `specialisations`: plans kept for a graph of dynamic shapes, the least recently used goes first."""

    _table = {
        "mode": ("max-autotune", ("max-autotune",)),
        "fallback": ("auto", ("auto", "eager", "error")),
        "specialisations": (8, _count),
    }

    def __init__(self):
        super().__init__()
        for name, section in (("debug", _Debug), ("experimental_config", _Experimental), ("ge_config", _Ge)):
            object.__setattr__(self, name, section())

    def flags(self):
        """Of rondo_compile: what is switched off."""
        ge = self.ge_config
        return (0 if ge.fusion else 1) | (0 if ge.oo_constant_folding else 2) | (0 if ge.memory_reuse else 4)
