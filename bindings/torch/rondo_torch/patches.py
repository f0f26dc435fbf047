# SPDX-License-Identifier: Apache-2.0
"""Replacements of PyTorch's Python attributes, each checked before it is made and each undone by its name.

PyTorch has no registration for some things that a device needs. Such an attribute is replaced only while it is what this
package knows: it exists, and takes the parameters that it is expected to take. Where it does not, nothing is replaced and
`refused` says why, so that what depends on it can be left out with a reason rather than fail in the middle of a
compilation.
"""
import importlib
import inspect
import threading

_lock = threading.RLock()
_ABSENT = object()  # stands for the original of what was added
_installed = {}  # name -> (owner, attribute, original, replacement)
refused = {}  # name -> why it is not installed


def _resolve(where):
    """`package.module:Owner.attribute` -> the object that has the attribute, and the attribute's name."""
    module, _, path = where.partition(":")
    owner = importlib.import_module(module)
    *owners, attribute = path.split(".")
    for part in owners:
        owner = getattr(owner, part)
    return owner, attribute


def parameters_of(function):
    """Names of the parameters, as a tuple; () for what is no function."""
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def install(name, where, make, *, parameters=None, expected=None):
    """Replaces the attribute by `make(original)`. True when it is in place (now, or already).

    `parameters`: names of which all must be among those the original takes. `expected`: a function of the original that
    says what is wrong with it, or nothing. Class attributes (static and class methods, properties) are handed to `make`
    as they stand in the class.
    """
    with _lock:
        if name in _installed:
            return True
        try:
            owner, attribute = _resolve(where)
            original = inspect.getattr_static(owner, attribute)
        except (ImportError, AttributeError) as error:
            refused[name] = f"{where} is not there: {error}"
            return False
        plain = original.__func__ if isinstance(original, (staticmethod, classmethod)) else original
        plain = plain.fget if isinstance(plain, property) else plain
        missing = [word for word in parameters or () if word not in parameters_of(plain)]
        wrong = f"it takes no {', '.join(missing)}" if missing else (expected(original) if expected else None)
        if wrong:
            refused[name] = f"{where} is not what it was: {wrong}"
            return False
        replacement = make(original)
        setattr(owner, attribute, replacement)
        _installed[name] = (owner, attribute, original, replacement)
        refused.pop(name, None)
        return True


def add(name, where, value):
    """Adds an attribute that PyTorch lacks. True when it is in place (now, or already); an attribute that is there is left."""
    with _lock:
        if name in _installed:
            return True
        try:
            owner, attribute = _resolve(where)
        except (ImportError, AttributeError) as error:
            refused[name] = f"{where} is not there: {error}"
            return False
        if attribute in vars(owner):
            refused[name] = f"{where} is there already"
            return False
        setattr(owner, attribute, value)
        _installed[name] = (owner, attribute, _ABSENT, value)
        refused.pop(name, None)
        return True


def installed():
    """Names of the replacements that are in place."""
    with _lock:
        return tuple(_installed)


def remove(name):
    """Puts the original back. An attribute that somebody else has replaced since is left alone: False."""
    with _lock:
        owner, attribute, original, replacement = _installed[name]
        if inspect.getattr_static(owner, attribute) is not replacement:
            return False
        if original is _ABSENT:
            delattr(owner, attribute)
        else:
            setattr(owner, attribute, original)
        del _installed[name]
        return True
