# SPDX-License-Identifier: Apache-2.0
"""Mechanical edits of a Python text by rules that each say how often they must apply.

A rule finds its places by a short fragment inside a named function or class and changes only those. All places are
found in the text as it came, so rules do not see each other's work and their order matters only where they insert at
one place. What a rule finds must be as many places as it expects: if not, the text is not the one that the rule was
made for, and nothing is changed.
"""
import ast
import bisect
import functools
import io
import re
import textwrap
import tokenize


# How the files of PyTorch's releases look, oldest first; each is named after the release that brought it.
LAYOUTS = ("2.12", "2.13", "2.14", "2.15")

_PROSE = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))


def since(layout, count=1):
    """Places by layout: so many from a layout on."""
    return dict.fromkeys(LAYOUTS[LAYOUTS.index(layout):], count)


def until(layout, count=1):
    """Places by layout: so many up to a layout."""
    return dict.fromkeys(LAYOUTS[:LAYOUTS.index(layout) + 1], count)


class Moved(RuntimeError):
    """PyTorch's text is not what a rule expects."""

    def __init__(self, file, rule, expected, found):
        super().__init__(
            f"{file}: the rule \"{rule}\" expects {expected} place{'' if expected == 1 else 's'} and found {found}: "
            "PyTorch has changed here. Nothing was replaced; look at the rule, or choose other trees by config.trees")
        self.file, self.rule, self.expected, self.found = file, rule, expected, found


class Text:
    """A text with its syntax tree; offsets count characters."""

    def __init__(self, file, text):
        self.file, self.text = file, text
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.tree = ast.parse(text)
        self.named = {}  # qualified name -> nodes, outermost definition first
        self._name(self.tree, "")
        self._prose = {}

    def _name(self, node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{prefix}{child.name}"
                self.named.setdefault(name, []).append(child)
                self._name(child, name + ".")
            else:
                self._name(child, prefix)

    def offset(self, line, column):
        """Of a place that the syntax tree names: lines from one, columns in bytes."""
        row = self.lines[line - 1]
        return self.starts[line - 1] + (column if row.isascii() else len(row.encode()[:column].decode()))

    def end(self, node):
        return self.offset(node.end_lineno, node.end_col_offset)

    def line_start(self, line):
        return self.starts[line - 1]

    def nodes(self, scope):
        return [self.tree] if not scope else self.named.get(scope, [])

    def _rows(self, node):
        first = min([node.lineno] + [decorator.lineno for decorator in getattr(node, "decorator_list", [])])
        return first, node.end_lineno

    def prose(self, scope):
        """Spans of comments and strings in a scope: what begins there is not code."""
        if scope not in self._prose:
            spans = []
            for node in self.nodes(scope):
                first, last = (1, len(self.lines)) if node is self.tree else self._rows(node)
                spans += self._prose_of("".join(self.lines[first - 1:last]), first)
            self._prose[scope] = spans
        return self._prose[scope]

    def _prose_of(self, part, first):
        spans = []
        try:
            for token in tokenize.generate_tokens(io.StringIO(part).readline):
                if token.type in _PROSE:
                    start = self.starts[token.start[0] + first - 2] + token.start[1]
                    spans.append((start, self.starts[token.end[0] + first - 2] + token.end[1]))
        except (tokenize.TokenError, IndentationError):
            pass  # the end of an indented part; its tokens have been seen
        return spans

    def find(self, scope, fragment):
        """Matches of a fragment (a string, or a compiled expression) that begin in code of the scope."""
        if isinstance(fragment, str):
            before = r"(?<![\w.])" if re.match(r"\w", fragment) else ""
            fragment = re.compile(before + re.escape(fragment) + (r"(?!\w)" if re.search(r"\w$", fragment) else ""))
        found = []
        for node in self.nodes(scope):
            first, last = (1, len(self.lines)) if node is self.tree else self._rows(node)
            for match in fragment.finditer(self.text, self.starts[first - 1], self.starts[last]):
                if not any(start <= match.start() < end for start, end in self.prose(scope)):
                    found.append(match)
        return found

    def statement(self, scope, offset):
        """The innermost statement around an offset."""
        best = None
        for node in self.nodes(scope):
            for child in ast.walk(node):
                if isinstance(child, ast.stmt) and self.offset(child.lineno,
                                                               child.col_offset) <= offset < self.end(child):
                    if best is None or child.col_offset > best.col_offset or child.lineno > best.lineno:
                        best = child
        return best

    def one_more(self, opened, last, put):
        """An edit that appends to a list in parentheses, on a line of its own where the list has its last one so."""
        line = bisect.bisect_right(self.starts, last) - 1
        head = self.lines[line][:len(self.lines[line]) - len(self.lines[line].lstrip())]
        alone = opened < self.starts[line]
        return [(last, last, f",\n{head}{put}" if alone else f", {put}")]

    def indent_of(self, node):
        return " " * node.col_offset


def _block(text, indent):
    """A block of ours, at the depth of its place."""
    text = textwrap.dedent(text).strip("\n")
    return textwrap.indent(text + "\n", indent) if text else ""


class Rule:
    """`counts`: places to find, a number, or numbers by layout (a layout that is not named has no such place)."""

    def __init__(self, name, part, scope, count=1):
        self.name, self.part, self.scope, self.count = name, part, scope, count

    def expected(self, layout):
        return self.count.get(layout, 0) if isinstance(self.count, dict) else self.count

    def edits(self, text, layout):
        """Triples (start, end, replacement)."""
        places = self.places(text)
        if len(places) != self.expected(layout):
            raise Moved(text.file, self.name, self.expected(layout), len(places))
        return [edit for place in places for edit in self.change(text, place)]


class Replace(Rule):
    """A fragment by another. `put` may name the groups of an expression."""

    def __init__(self, name, part, scope, fragment, put, count=1):
        super().__init__(name, part, scope, count)
        self.fragment, self.put = fragment, put

    def places(self, text):
        return text.find(self.scope, self.fragment)

    def change(self, text, match):
        return [(match.start(), match.end(), self.put if isinstance(self.fragment, str) else match.expand(self.put))]


class Insert(Rule):
    """Lines of ours. `where`: "top" of a function (behind its description), "end" of a class or function, "above" a
    function or class, "below" it, and "before" or "after" the statement with a fragment."""

    def __init__(self, name, part, scope, where, put, fragment=None, count=1, depth=0):
        super().__init__(name, part, scope, count)
        self.where, self.put, self.fragment = where, put, fragment
        self.depth = depth  # levels deeper than the place: into a class that an earlier rule has begun there

    def places(self, text):
        if self.fragment is not None:
            return [text.statement(self.scope, match.start()) for match in text.find(self.scope, self.fragment)]
        return text.nodes(self.scope)

    def change(self, text, node):
        body = getattr(node, "body", None)
        if self.where == "top":
            described = isinstance(body[0], ast.Expr) and isinstance(getattr(body[0], "value", None), ast.Constant)
            line = body[0].end_lineno + 1 if described else body[0].lineno
            at, indent = text.line_start(line), text.indent_of(body[0])
        elif self.where == "end":
            at, indent = text.line_start(node.end_lineno + 1), text.indent_of(body[0])
        elif self.where in ("above", "before"):
            at, indent = text.line_start(text._rows(node)[0]), text.indent_of(node)
        else:
            at, indent = text.line_start(node.end_lineno + 1), text.indent_of(node)
        put = _block(self.put, indent + "    " * self.depth)
        if self.where == "above":
            put += "\n\n"
        elif self.where == "below" or (self.where == "end" and isinstance(node, ast.ClassDef)):
            put = ("\n\n" if self.where == "below" and not node.col_offset else "\n") + put
        return [(at, at, put)]


class Statement(Rule):
    """The whole statement with a fragment by lines of ours. `last`: the statements up to the one with that fragment."""

    def __init__(self, name, part, scope, fragment, put, last=None, count=1):
        super().__init__(name, part, scope, count)
        self.fragment, self.put, self.last = fragment, put, last

    def places(self, text):
        matches = text.find(self.scope, self.fragment)
        if self.last is None:
            return [(match, text.statement(self.scope, match.start()), None) for match in matches]
        ends = text.find(self.scope, self.last)
        if len(ends) != len(matches):
            raise Moved(text.file, f"{self.name} (its end)", len(matches), len(ends))
        return [(match, text.statement(self.scope, match.start()), text.statement(self.scope, end.start()))
                for match, end in zip(matches, ends)]

    def change(self, text, place):
        match, first, last = place
        put = self.put if isinstance(self.fragment, str) else match.expand(self.put)
        start, end = text.line_start(first.lineno), text.line_start((last or first).end_lineno + 1)
        return [(start, end, _block(put, text.indent_of(first)))]


class Fork(Statement):
    """Statements as they are under a condition, and lines of ours under its else."""

    def __init__(self, name, part, scope, fragment, condition, otherwise, last=None, count=1):
        super().__init__(name, part, scope, fragment, otherwise, last, count)
        self.condition = condition

    def change(self, text, place):
        _, first, last = place
        indent, last = text.indent_of(first), last or first
        edits = [(text.line_start(first.lineno),) * 2 + (f"{indent}if {self.condition}:\n",)]
        for line in range(first.lineno, last.end_lineno + 1):
            if text.lines[line - 1].strip():
                edits.append((text.line_start(line),) * 2 + ("    ",))
        after = text.line_start(last.end_lineno + 1)
        return edits + [(after, after, f"{indent}else:\n" + _block(self.put, indent + "    "))]


class Argument(Rule):
    """An argument more for calls of a function; `first`: only of those whose first argument is so named."""

    def __init__(self, name, part, scope, callee, put, count=1, first=None):
        super().__init__(name, part, scope, count)
        self.callee, self.put, self.first = callee, put, first

    def places(self, text):
        return [call for node in text.nodes(self.scope) for call in ast.walk(node)
                if isinstance(call, ast.Call) and ast.unparse(call.func) == self.callee
                and (self.first is None or (call.args and ast.unparse(call.args[0]) == self.first))]

    def change(self, text, call):
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not given:
            return [(text.end(call) - 1,) * 2 + (self.put,)]
        return text.one_more(text.end(call.func), max(map(text.end, given)), self.put)


class Parameter(Rule):
    """A parameter more, behind the last one that has a name of its own."""

    def __init__(self, name, part, scope, put, count=1):
        super().__init__(name, part, scope, count)
        self.put = put

    def places(self, text):
        return [node for node in text.nodes(self.scope) if isinstance(node, ast.FunctionDef)]

    def change(self, text, node):
        spec = node.args
        parts = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *spec.defaults, *(d for d in spec.kw_defaults if d)]
        opened = text.text.index("(", text.offset(node.lineno, node.col_offset)) + 1
        return text.one_more(opened, max(map(text.end, parts)), self.put) if parts else [(opened, opened, self.put)]


class Mentions(Rule):
    """All that names CUDA in a scope, which is only counted: members of torch.cuda, bindings of torch._C, what asks
    whether a tensor is CUDA's, and names of the device."""

    def places(self, text):
        return [node for scope in text.nodes(self.scope) for node in ast.walk(scope) if self._names_cuda(node)]

    @staticmethod
    def _names_cuda(node):
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and re.match(r"cuda(:|$)", node.value) is not None
        if not isinstance(node, ast.Attribute):
            return False
        return node.attr in ("cuda", "is_cuda") or node.attr.startswith("_cuda_")

    def change(self, text, node):
        return []


def apply(text, edits):
    """The text with the edits, which must not overlap."""
    result, at = [], 0
    for start, end, put in sorted(edits, key=lambda edit: (edit[0], edit[1])):
        if start < at:
            raise ValueError(f"two rules want the same text: {text[start:end]!r}")
        result += [text[at:start], put]
        at = end
    return "".join(result) + text[at:]


@functools.lru_cache(maxsize=16)
def read(file, text):
    """The text, parsed once."""
    return Text(file, text)


def transform(file, text, rules, layout, parts=None):
    """The text with all rules applied (or only those of the named parts; every rule is checked all the same)."""
    known, edits = read(file, text), []
    for rule in rules:
        found = rule.edits(known, layout)
        if parts is None or rule.part in parts:
            edits += found
    return apply(text, edits)
