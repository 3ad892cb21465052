"""Chat templates and what they are rendered with, made by chance from what chat templates use.

One seed gives one sequence of cases. A template is mostly well typed, so that most of it is reached, and now and then not, so
that refusals are compared too. Nothing whose text has an address in it is printed (functions, generators).
"""
import random
import re

WORDS = ["user", "assistant", "system", "tool", "a", "B", "get_weather", "Hello, World", "x y  z", "it's", 'say "hi"', "<|im_end|>",
         "Größe", "日本語", "😀👍🏽", "ŉ ǆ İ ΑΣ", "1", "42", "-7", "3.5", "007", "1e3", " pad ", "\tTab\n", "", "a,b,,c", "line1\nline2\r\n\nline4",
         "</think>\n\nyes", "{\"k\": [1, null]}", "back\\slash", "\x7f\x1f", "\u2028", "%s-%d", "{} {x}", "&lt;", "_under", "ß", "100%", "title case-word (of)"]
ROLES = ["system", "user", "assistant", "tool", "developer"]
TEXTS = ["", " ", "\n", "\n\n", "  \n", "\n  ", "<|im_start|>", "<s>", "[INST] ", "\t", "text", " text\n", "a\n    ", "é\u00a0", "# x\n", "{ x }", "%}", "}}"]
NAMES = ["x", "y", "z", "item", "m"]


PRIMARY = re.compile(r"[A-Za-z_][\w.]*|\d+|'[^'\\]*'|\"[^\"\\]*\"|\[[^\[\]'\"]*\]|\([^()'\"]*\)")


def literal(text, quote="'"):
    out = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
    return quote + out.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace("\x7f", "\\x7f").replace("\x1f", "\\x1f") + quote


class Generator:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.scope = {}
        self.macros = []
        self.in_loop = False
        self.can_break = False
        self.namespaces = []

    # ---- what a template is rendered with

    def value(self, depth=2):
        r = self.r
        kind = r.randrange(9 if depth > 0 else 6)
        if kind == 0:
            return r.choice([None, True, False])
        if kind == 1:
            return r.choice([0, 1, -1, 2, 7, 10, 255, 1000, -33, 2**31, 10**15])
        if kind == 2:
            return r.choice([0.0, 0.5, -2.5, 3.14159, 1e20, 1e-7, 100.0, 2.675, -0.0])
        if kind < 6:
            return r.choice(WORDS)
        if kind == 6:
            return [self.value(depth - 1) for _ in range(r.randrange(4))]
        if kind == 7:
            return [r.choice(WORDS) for _ in range(r.randrange(5))]
        return {r.choice(["name", "type", "a", "items", "0", "ключ", "k y"]): self.value(depth - 1) for _ in range(r.randrange(4))}

    def message(self):
        r = self.r
        message = {"role": r.choice(ROLES), "content": r.choice(WORDS)}
        if r.random() < .2:
            message["content"] = [{"type": "text", "text": r.choice(WORDS)} if r.random() < .7 else {"type": "image"} for _ in range(r.randrange(3))]
        if r.random() < .1:
            message["content"] = None
        if r.random() < .25:
            message["tool_calls"] = [{"id": f"c{i}", "type": "function", "function": {
                "name": r.choice(WORDS), "arguments": self.value(2) if r.random() < .3 else {"city": r.choice(WORDS), "n": i}}}
                for i in range(r.randrange(1, 3))]
        if r.random() < .2:
            message["reasoning_content"] = r.choice(WORDS)
        if r.random() < .1:
            message["name"] = r.choice(WORDS)
        return message

    def tool(self):
        r = self.r
        return {"type": "function", "function": {"name": r.choice(["get_weather", "add", "naïve"]), "description": r.choice(WORDS), "parameters": {
            "type": "object", "properties": {r.choice(WORDS[:8]): {"type": r.choice(["string", "integer", ["string", "null"]]),
                                                                   "enum": self.value(1)} for _ in range(r.randrange(3))},
            "required": r.sample(WORDS[:6], 2)}}}

    def variables(self):
        r = self.r
        out = {"messages": [self.message() for _ in range(r.randrange(5))], "add_generation_prompt": r.random() < .5, "bos_token": "<s>",
               "eos_token": "</s>", "n": r.choice([0, 1, 3, -4, 12]), "f": r.choice([0.5, -1.25, 3.0, 1e16, 0.1]), "s": r.choice(WORDS),
               "words": [r.choice(WORDS) for _ in range(r.randrange(5))], "nums": [r.choice([3, 1, 2, 10, -5, 2, 0]) for _ in range(r.randrange(6))],
               "d": {r.choice(["b", "A", "c", "items", "get", "Z9", "é"]): self.value(2) for _ in range(r.randrange(5))},
               "rows": [{"name": r.choice(["b", "A", "a", "c"]), "size": r.choice([1, 2, 2, 3]), **({"tag": {"x": i}} if r.random() < .7 else {})}
                        for i in range(r.randrange(4))],
               "mix": self.value(3), "nested": [[1, 2], [3, [4, 5]], []], "none_value": None}
        if r.random() < .6:
            out["tools"] = [self.tool() for _ in range(r.randrange(3))] if r.random() < .8 else None
        if r.random() < .3:
            out["enable_thinking"] = r.random() < .5
        return out

    TYPES = {"messages": "messages", "add_generation_prompt": "bool", "bos_token": "str", "eos_token": "str", "n": "int", "f": "float", "s": "str",
             "words": "strs", "nums": "ints", "d": "dict", "rows": "rows", "mix": "any", "nested": "list", "tools": "any", "enable_thinking": "any",
             "none_value": "any", "nope": "any"}

    # ---- expressions

    def named(self, kind):
        """A variable in sight of that type, or None."""
        fit = [name for name, of in {**self.TYPES, **self.scope}.items() if of == kind or (kind == "list" and of in ("strs", "ints", "rows", "messages"))]
        return self.r.choice(fit) if fit else None

    def expr(self, kind, depth=3):
        r = self.r
        if r.random() < .015:
            kind = r.choice(["str", "int", "float", "bool", "any", "list", "dict"])
        if depth <= 0 or r.random() < .2:
            return self.leaf(kind)
        made = getattr(self, "make_" + kind)(depth - 1)
        return f"({made})" if r.random() < .12 else made

    def leaf(self, kind):
        r = self.r
        name = self.named(kind)
        if name and r.random() < .6:
            return name
        if kind == "str":
            return literal(r.choice(WORDS), r.choice("'\""))
        if kind == "int":
            return r.choice(["0", "1", "2", "3", "10", "-1", "7", "0x1f", "1_000"])
        if kind == "float":
            return r.choice(["0.5", "1.0", "2.5", "-1.5", "1e3", "0.1"])
        if kind == "bool":
            return r.choice(["true", "false", "True", "nope is defined"])
        if kind == "strs":
            return "[" + ", ".join(literal(r.choice(WORDS)) for _ in range(r.randrange(4))) + "]"
        if kind == "ints":
            return r.choice(["[3, 1, 2]", "range(4)", "[]", "(1, 2)", "range(5, 0, -2)", "nums"])
        if kind in ("list", "rows"):
            return r.choice(["rows", "messages", "nested", "[1, 'a', none, true, 1.5]", "[]", "[[], {}]", "words"]) if kind == "list" else "rows"
        if kind == "messages":
            return "messages"
        if kind == "dict":
            return r.choice(["d", "{}", "{'a': 1, 'b': [2, 'x']}", "{1: 'i', none: 2, 'k': {'n': true}}", "rows[0]" if r.random() < .3 else "d"])
        return r.choice(["none", "nope", "mix", "true", "n", "s", "d.b", "words[0]", "nope.x", "messages[0]", "tools", "none_value", "rows[-1].name"])

    def make_str(self, d):
        r, e = self.r, self.expr
        return r.choice([
            lambda: f"{e('str', d)} + {e('str', d)}",
            lambda: f"{e('str', d)} ~ {e(r.choice(['int', 'any', 'str', 'list', 'bool', 'float']), d)}",
            lambda: f"{self.post(e('str', d))}|{self.str_filter(d)}",
            lambda: f"{self.post(e('str', d))}{self.str_method(d)}",
            lambda: f"{self.post(e('str', d))}[{self.slice(d)}]",
            lambda: f"{self.post(e('str', d))}[{e('int', 0)}]",
            lambda: f"({e('str', d)} if {e('bool', d)} else {e('str', d)})",
            lambda: f"({e('str', d)} if {e('bool', d)})",
            lambda: f"{self.post(e('any', d))}|string",
            lambda: f"{self.post(e('any', d))}|{self.tojson(d)}",
            lambda: f"{self.post(e(r.choice(['strs', 'ints', 'list', 'dict']), d))}|join{r.choice(['', '(', '('])}".replace("join(", f"join({e('str', 0)})"),
            lambda: f"{self.post(e('any', d))}|default({e('str', d)}{r.choice(['', ', true', ', boolean=true'])})",
            lambda: f"{e('str', d)} or {e('str', d)}",
            lambda: f"{e('str', 0)} * {r.choice(['0', '2', '-1', 'n'])}",
            lambda: f"{literal(r.choice(['%s|%5d|%-4s', '%05.1f %s %r', '%x %X %o', '%+d % d %%', '%(a)s']))} % {r.choice(['(s, n, n)', '(f, s, s)', '(n, 255, 8)', '(n, 3)', '{%s: n}' % literal('a'), 'n', 's'])}",
            lambda: f"{literal(r.choice(['{} {}', '{0}{1}{0}', '{:>6}|{:<6}|', '{x}', '{:05d} {:+}', '{!r:>8}', '{:.2f}', '{0[0]}', '{:,}|{:x}', '{{}}{}']))}.format({r.choice(['s, n', 'n, n', 'f', 'words, s', 's', 'x=s', 'n', '12345678, 255'])})",
            lambda: f"(messages[{e('int', 0)}].content or '')",
            lambda: "loop.index ~ '/' ~ loop.length" if self.in_loop else "s",
            lambda: f"strftime_now({literal(r.choice(['%d %b %Y', '%Y-%m-%d', '%H:%M:%S %p', '%A %B %j', '%-d.%-m.%y', '%%']))})",
            lambda: self.call(d),
        ])()

    def post(self, text):
        """An operand of a postfix or a filter."""
        return text if PRIMARY.fullmatch(text) or self.r.random() < .01 else f"({text})"

    def str_filter(self, d):
        r, e = self.r, self.expr
        return r.choice([
            lambda: r.choice(["upper", "lower", "title", "capitalize", "trim", "string", "length", "wordcount", "list", "first", "last", "reverse", "int",
                              "float", "e", "safe", "escape", "urlencode", "tojson", "indent", "center(9)", "sort|join", "unique|list", "count", "abs"]),
            lambda: f"trim({e('str', 0)})",
            lambda: f"replace({e('str', 0)}, {e('str', 0)}{r.choice(['', ', 1', ', 0'])})",
            lambda: f"indent({r.choice(['2', '3, true', '1, first=true, blank=true', repr('>> '), 'width=2'])})",
            lambda: f"truncate({r.choice(['5', '9, true', '7, false, %s' % literal('..'), '255', '3, leeway=0', '8, true, %s, 0' % literal('')])})",
            lambda: f"default({e('str', 0)})",
            lambda: f"int({r.choice(['9', 'base=16', '0, 8', '-1', 'default=none'])})",
            lambda: f"split({e('str', 0)})" if r.random() < .05 else "trim|upper",
            lambda: f"format({e('any', 0)})",
            lambda: f"map('upper')|join({e('str', 0)})",
            lambda: "batch(2)|map('join')|join('/')",
        ])()

    def str_method(self, d):
        r, e = self.r, self.expr
        return "." + r.choice([
            lambda: r.choice(["upper()", "lower()", "title()", "capitalize()", "strip()", "lstrip()", "rstrip()", "split()", "splitlines()", "isdigit()", "isalpha()",
                              "isupper()", "islower()", "isspace()", "isalnum()", "isnumeric()", "isdecimal()", "swapcase()", "casefold()", "isascii()",
                              "isprintable()", "istitle()", "isidentifier()", "expandtabs(4)", "rsplit()", "splitlines(true)", "split(none, 1)"]),
            lambda: f"{r.choice(['strip', 'lstrip', 'rstrip', 'removeprefix', 'removesuffix', 'startswith', 'endswith', 'find', 'rfind', 'count', 'partition', 'rpartition', 'index'])}({e('str', 0)})",
            lambda: f"{r.choice(['split', 'rsplit'])}({e('str', 0)}{r.choice(['', ', 1', ', -1'])}){r.choice(['', '[0]', '[-1]', '|length', '|last'])}",
            lambda: f"replace({e('str', 0)}, {e('str', 0)}{r.choice(['', ', 1'])})",
            lambda: f"{r.choice(['ljust', 'rjust', 'center'])}({r.choice(['8', '3', '9, %s' % literal('*')])})",
            lambda: f"zfill({r.choice(['5', '0', 'n'])})",
            lambda: f"join({e('strs', 0)})",
            lambda: f"{r.choice(['startswith', 'endswith'])}(({e('str', 0)}, {e('str', 0)}))",
            lambda: f"{r.choice(['find', 'startswith', 'count'])}({e('str', 0)}, {r.choice(['1', '-2', '0, 4', '2, -1', '50'])})",
        ])()

    def tojson(self, d):
        return "tojson" + self.r.choice(["", "", "(indent=2)", "(indent=4)", "(ensure_ascii=true)", "(sort_keys=true)", "(separators=(',', ':'))", "(indent=0)",
                                         "(indent='\\t')", "(true, 1)", "(indent=none)", "(indent=2, sort_keys=true, separators=(', ', '='))"])

    def slice(self, d):
        part = lambda: self.r.choice(["", "", "0", "1", "2", "-1", "-3", "n", "5", "none"])  # noqa: E731
        return f"{part()}:{part()}" + self.r.choice(["", "", ":", ":2", ":-1", ":-2"])

    def make_int(self, d):
        r, e = self.r, self.expr
        return r.choice([
            lambda: f"{e('int', d)} {r.choice(['+', '-', '*', '//', '%', '+'])} {e('int', d)}",
            lambda: f"-{self.post(e('int', d))}",
            lambda: f"{self.post(e(r.choice(['str', 'list', 'strs', 'dict', 'ints']), d))}|{r.choice(['length', 'count'])}",
            lambda: f"{self.post(e(r.choice(['str', 'float', 'any']), d))}|int",
            lambda: f"{self.post(e('ints', d))}|{r.choice(['sum', 'min', 'max', 'first', 'last', 'length', 'sum(start=3)'])}",
            lambda: f"{self.post(e('int', d))}|{r.choice(['abs', 'round', 'int', 'round(-1)', 'default(1)'])}",
            lambda: f"({e('int', d)} if {e('bool', d)} else {e('int', d)})",
            lambda: f"loop.{r.choice(['index', 'index0', 'revindex', 'revindex0', 'length', 'depth', 'depth0'])}" if self.in_loop else "n",
            lambda: f"{e('int', 0)} ** {r.choice(['2', '0', '1', '3'])}",
            lambda: f"{self.post(e('list', d))}|length - 1",
            lambda: f"{self.post(e('strs', d))}.{r.choice(['count', 'index'])}({e('str', 0)})",
        ])()

    def make_float(self, d):
        r, e = self.r, self.expr
        return r.choice([
            lambda: f"{e('float', d)} {r.choice(['+', '-', '*', '/', '//', '%'])} {e(r.choice(['int', 'float']), d)}",
            lambda: f"{e('int', d)} / {e('int', d)}",
            lambda: f"{self.post(e(r.choice(['str', 'int']), d))}|float{r.choice(['', '(1.5)'])}",
            lambda: f"{self.post(e('float', d))}|round{r.choice(['', '(1)', '(2)', '(0, %s)' % literal('floor'), '(method=%s)' % literal('ceil'), '(-1)'])}",
            lambda: f"{self.post(e('float', d))}|abs",
        ])()

    def make_bool(self, d):
        r, e = self.r, self.expr
        some = lambda: e(r.choice(["str", "int", "any", "list", "float", "strs", "bool", "dict"]), d)  # noqa: E731
        return r.choice([
            lambda: f"{e('int', d)} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {e(r.choice(['int', 'float', 'int']), d)}",
            lambda: f"{e('str', d)} {r.choice(['==', '!=', '<', 'in', 'not in'])} {e('str', d)}",
            lambda: f"{some()} {r.choice(['==', '!='])} {some()}",
            lambda: f"{some()} {r.choice(['<', '>=', 'in', 'not in'])} {some()}",
            lambda: f"{e('str', d)} in {e(r.choice(['strs', 'dict', 'list']), d)}",
            lambda: f"not {some()}",
            lambda: f"{e('bool', d)} {r.choice(['and', 'or'])} {e('bool', d)}",
            lambda: f"{some()} {r.choice(['and', 'or'])} {some()}",
            lambda: f"{self.post(some())} is {r.choice(['', '', 'not '])}{self.test(d)}",
            lambda: f"{e('int', 0)} < {e('int', 0)} {r.choice(['<', '<=', '==', '>'])} {e('int', 0)}",
            lambda: f"loop.{r.choice(['first', 'last'])}" if self.in_loop else "add_generation_prompt",
            lambda: f"{self.post(e('str', d))}.{r.choice(['startswith', 'endswith'])}({e('str', 0)})",
            lambda: f"loop.changed({e('any', 0)})" if self.in_loop else "tools is defined and tools",
        ])()

    def test(self, d):
        r, e = self.r, self.expr
        return r.choice([
            lambda: r.choice(["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "true",
                              "false", "callable", "lower", "upper", "odd", "even", "escaped"]),
            lambda: f"divisibleby{r.choice(['(2)', ' 3', '(n)'])}",
            lambda: f"{r.choice(['eq', 'equalto', 'ne', 'lt', 'gt', 'le', 'ge', 'sameas', 'in'])}({e(r.choice(['int', 'str', 'any', 'list']), 0)})",
            lambda: f"in {r.choice(['words', '[1, 2, none]', 'd', literal('abc')])}",
            lambda: r.choice(["filter", "test"]),
        ])()

    def make_strs(self, d):
        r, e = self.r, self.expr
        return r.choice([
            lambda: f"[{', '.join(e('str', d) for _ in range(r.randrange(4)))}]",
            lambda: f"{self.post(e('str', d))}.split({r.choice(['', e('str', 0), literal(',')])})",
            lambda: f"{self.post(e('strs', d))}|{r.choice(['sort', 'unique|list', 'reverse|list', 'list', 'sort(reverse=true)', 'sort(case_sensitive=true)', 'unique(true)|list'])}",
            lambda: f"{self.post(e('strs', d))}|map({r.choice([literal(w) for w in ('upper', 'trim', 'title', 'string', 'length')] + ['%s, %s, %s' % (literal('replace'), literal('a'), literal('_')), '%s, %s' % (literal('default'), literal('x'))])})|list",
            lambda: f"{self.post(e('messages', 0))}|map(attribute={r.choice([literal('role'), literal('content'), literal('tool_calls.0.id')])}{r.choice(['', ', default=%s' % literal('-')])})|list",
            lambda: f"{self.post(e('strs', d))}[{self.slice(d)}]",
            lambda: f"{self.post(e('strs', d))} + {e('strs', d)}",
            lambda: f"{self.post(e('dict', d))}.keys()|list",
            lambda: f"{self.post(e('strs', d))}|{r.choice(['select', 'reject'])}({r.choice(['', literal('upper'), '%s, %s' % (literal('in'), literal('abc')), '%s, %s' % (literal('equalto'), literal('a'))])})|list",
            lambda: f"{self.post(e('str', d))}.splitlines()",
        ])()

    def make_ints(self, d):
        r, e = self.r, self.expr
        return r.choice([
            lambda: f"[{', '.join(e('int', d) for _ in range(r.randrange(4)))}]",
            lambda: f"range({e('int', 0)})",
            lambda: f"range({e('int', 0)}, {e('int', 0)}, {r.choice(['1', '2', '-1', '-3'])})",
            lambda: f"{self.post(e('ints', d))}|{r.choice(['sort', 'list', 'unique|list', 'reverse|list', 'sort(reverse=true)', 'batch(2)|list', 'slice(2)|list', 'select|list'])}",
            lambda: f"{self.post(e('ints', d))}[{self.slice(d)}]",
            lambda: f"{self.post(e('ints', d))}|{r.choice(['select', 'reject'])}({r.choice([literal('odd'), literal('even'), '%s, 1' % literal('gt'), '%s, 2' % literal('divisibleby'), '%s, [1, 2]' % literal('in')])})|list",
        ])()

    def make_messages(self, d):
        r, e = self.r, self.expr
        return r.choice([
            lambda: f"messages[{self.slice(d)}]",
            lambda: f"messages|{r.choice(['selectattr', 'rejectattr'])}({literal('role')}, {literal(r.choice(['equalto', 'eq', '==', 'ne']))}, {literal(r.choice(ROLES))})|list",
            lambda: f"messages|{r.choice(['selectattr', 'rejectattr'])}({literal('tool_calls')}{r.choice(['', ', ' + literal('defined')])})|list",
            lambda: "messages|reverse|list",
            lambda: f"messages|sort(attribute={literal('role')})",
            lambda: f"(messages[1:] if {e('bool', 0)} else messages)",
        ])()

    def make_rows(self, d):
        r = self.r
        return f"rows|{r.choice(['sort', 'sort', 'unique', 'batch', 'min', 'list'])}".replace("|sort", f"|sort(attribute={literal(r.choice(['name', 'size', 'size,name', 'tag.x']))}{r.choice(['', ', reverse=true', ', case_sensitive=true'])})") \
            .replace("|unique", "|unique(attribute='size')|list").replace("|batch", "|batch(2, none)|first").replace("|min", "|groupby('size')|map('last')|list")

    def make_list(self, d):
        r, e = self.r, self.expr
        return r.choice([
            lambda: e(r.choice(["strs", "ints", "rows", "messages"]), d),
            lambda: f"[{', '.join(e(r.choice(['str', 'int', 'any', 'list', 'dict', 'bool', 'float']), d) for _ in range(r.randrange(4)))}]",
            lambda: f"({e('any', d)}, {e('any', d)})",
            lambda: f"{self.post(e('dict', d))}{r.choice(['.items()|list', '|dictsort', '|items|list', '.values()|list', '|list', '|dictsort(reverse=true)'])}",
            lambda: f"rows|groupby({r.choice([literal('size'), literal('name') + ', case_sensitive=true', literal('tag.x') + ', default=0'])})",
            lambda: f"{self.post(e('list', d))}[{self.slice(d)}]",
            lambda: f"{self.post(e('list', d))}|{r.choice(['batch(2)|list', 'slice(2)|list', 'batch(3, %s)|list' % literal('-'), 'slice(3, 0)|list', 'reverse|list', 'select|list', 'reject(%s)|list' % literal('none'), 'map(%s)|list' % literal('string'), 'map(%s)|list' % literal('tojson')])}",
            lambda: f"{self.post(e('list', d))} {r.choice(['+', '*'])} {e(r.choice(['list', 'int']), d)}",
            lambda: f"{e('list', d)} or {e('list', d)}",
        ])()

    def make_dict(self, d):
        r, e = self.r, self.expr
        return r.choice([
            lambda: "{" + ", ".join(f"{literal(r.choice(['a', 'b', 'type', 'ü']))}: {e(r.choice(['str', 'int', 'any', 'list']), d)}" for _ in range(r.randrange(4))) + "}",
            lambda: f"dict({r.choice(['a=1', 'd, a=n', '[(1, 2)]', '**d', 'rows|map(attribute=%s)|map(%s)' % (literal('name'), literal('list')), 'd.items()'])})",
            lambda: f"{self.post(e('dict', d))}.copy()",
            lambda: f"messages[{r.choice(['0', '-1', '1'])}]",
            lambda: "dict(a=s, b=d)",
            lambda: f"({e('dict', d)} if {e('bool', d)} else {{}})",
            lambda: f"rows|{r.choice(['first', 'last', 'min', 'max'])}".replace("|min", "|min(attribute='size')").replace("|max", "|max(attribute='name')"),
        ])()

    def make_any(self, d):
        r, e = self.r, self.expr
        return r.choice([
            lambda: e(r.choice(["str", "int", "float", "bool", "list", "dict", "strs"]), d),
            lambda: f"{self.post(e('dict', d))}.{r.choice(['a', 'b', 'role', 'content', 'items', 'nope', 'get(%s)' % literal('a'), 'get(%s, %s)' % (literal('zz'), e('str', 0))])}",
            lambda: f"{self.post(e('dict', d))}[{e('str', 0)}]",
            lambda: f"{self.post(e('list', d))}[{e('int', 0)}]",
            lambda: f"{self.post(e('list', d))}|{r.choice(['first', 'last', 'length', 'max', 'min', 'sum'])}",
            lambda: f"{self.post(e('any', d))}|default({e('any', d)})",
            lambda: f"{r.choice(self.namespaces)}.{r.choice(['v', 'w', 'q'])}" if self.namespaces else "mix",
            lambda: f"loop.{r.choice(['previtem', 'nextitem'])}" if self.in_loop else "mix",
            lambda: f"loop.cycle({e('any', 0)}, {e('str', 0)})" if self.in_loop else "mix",
            lambda: f"{self.post(e('any', d))}.{r.choice(['x', 'name', 'function.name', '__class__', 'upper'])} is defined",
            lambda: f"{self.post(e('any', d))}|attr({literal(r.choice(['name', 'role', 'x']))})",
            lambda: f"{e('any', d)} {r.choice(['+', '-', '*', '/', '%', '//'])} {e('any', d)}",
            lambda: f"(m.tool_calls[0].function.arguments if {e('bool', 0)} else {e('any', 0)})" if "m" in self.scope else "mix",
            lambda: self.call(d),
        ])()

    def call(self, d):
        if not self.macros:
            return "s"
        name, parameters = self.r.choice(self.macros)
        given = [self.expr("any", d) for _ in range(self.r.randrange(parameters + 1))]
        if self.r.random() < .2:
            given.append(f"p0={self.expr('any', 0)}" if self.r.random() < .5 else f"p1={self.expr('str', 0)}")
        return f"{name}({', '.join(given)})"

    # ---- statements

    def tag(self, inside, kind="%"):
        r = self.r
        begin = r.choice(["", "", "", "-", "+"]) if kind == "%" else r.choice(["", "", "", "-"])
        end = r.choice(["", "", "", "-", "+"]) if kind == "%" else r.choice(["", "", "", "-"])
        close = {"%": "%}", "{": "}}", "#": "#}"}[kind]
        space = r.choice([" ", " ", " ", "", "\n "])
        if not space and (inside[:1] in "-+" or inside[-1:] in "-+}{"):
            space = " "
        return f"{{{kind}{begin}{space}{inside}{space}{end}{close}"

    def output(self):
        kind = self.r.choice(["str", "str", "str", "int", "float", "bool", "any", "list", "dict", "strs", "ints"])
        return self.tag(self.expr(kind), "{")

    def text(self):
        r = self.r
        if r.random() < .05:
            return self.tag(r.choice(["comment", "{{ x }}", "a\nb"]), "#")
        if r.random() < .03:
            return f"{self.tag('raw').replace('+%}', '%}')}{r.choice(TEXTS)}{{{{ x }}}}{r.choice(TEXTS)}{self.tag('endraw')}"
        return r.choice(TEXTS)

    def body(self, depth, size=None):
        saved = dict(self.scope), list(self.macros), list(self.namespaces)
        out = "".join(self.statement(depth) for _ in range(size if size is not None else self.r.randrange(1, 4)))
        self.scope, self.macros, self.namespaces = saved
        return out

    def statement(self, depth):
        r = self.r
        if depth <= 0 or r.random() < .5:
            return self.text() + self.output() + self.text() if r.random() < .7 else self.text()
        return self.text() + getattr(self, r.choice(["do_if", "do_if", "do_for", "do_for", "do_for", "do_set", "do_set", "do_set_block", "do_namespace", "do_macro",
                                                     "do_call", "do_filter", "do_with", "do_generation", "do_break", "do_set_if"]))(depth - 1)

    def do_if(self, depth):
        out = self.tag(f"if {self.expr('bool')}") + self.body(depth)
        while self.r.random() < .3:
            out += self.tag(f"elif {self.expr('bool')}") + self.body(depth)
        if self.r.random() < .5:
            out += self.tag("else") + self.body(depth)
        return out + self.tag("endif")

    def do_for(self, depth):
        r = self.r
        kind, target, item = r.choice([("messages", "m", "dict"), ("messages", "m", "dict"), ("strs", "x", "str"), ("ints", "y", "int"), ("list", "item", "any"),
                                       ("rows", "item", "dict"), ("str", "x", "str"), ("any", "item", "any"), ("items", "x, y", "any")])
        over = f"{self.post(self.expr('dict', 1))}.items()" if kind == "items" else self.expr(kind, 2)
        test = f" if {self.expr('bool', 1)}" if r.random() < .2 else ""
        recursive = r.random() < .04
        saved = dict(self.scope), self.in_loop, self.can_break
        for name in target.split(", "):
            self.scope[name] = item
        self.in_loop, self.can_break = True, True
        head = self.tag(f"for {target} in {over}{test}{' recursive' if recursive else ''}")
        inner = self.body(depth)
        if recursive:
            inner += self.tag("loop(nested) if loop.depth < 3 else '.'", "{")
        self.scope, self.in_loop, self.can_break = saved
        if r.random() < .2:
            inner += self.tag("else") + self.body(depth)
        return head + inner + self.tag("endfor")

    def do_set(self, depth):
        r = self.r
        kind = r.choice(["str", "int", "any", "list", "bool", "dict", "strs", "float"])
        name = r.choice(NAMES + ["s", "n"] if r.random() < .3 else NAMES)
        value = self.expr(kind)
        self.scope[name] = kind
        if r.random() < .1:
            other = r.choice(NAMES)
            self.scope[other] = "any"
            return self.tag(f"set {name}, {other} = {value}, {self.expr('any')}")
        return self.tag(f"set {name} = {value}")

    def do_set_if(self, depth):
        """A name that only some branches set, read after them: whose value is it?"""
        r = self.r
        name = r.choice(["s", "n", "x", "fresh"])
        branch = lambda: self.tag(f"set {name} = {self.expr('str', 1)}") if r.random() < .6 else self.text()  # noqa: E731
        out = self.tag(f"if {self.expr('bool', 1)}") + branch()
        if r.random() < .4:
            out += self.tag(f"elif {self.expr('bool', 1)}") + branch()
        if r.random() < .5:
            out += self.tag("else") + branch()
        self.scope[name] = "any"
        return out + self.tag("endif") + self.tag(name, "{")

    def do_set_block(self, depth):
        name = self.r.choice(NAMES)
        chain = self.r.choice(["", "", " | trim", " | upper | replace('A', 'b')"])
        out = self.tag(f"set {name}{chain}") + self.body(depth) + self.tag("endset")
        self.scope[name] = "str"
        return out

    def do_namespace(self, depth):
        r = self.r
        if not self.namespaces or r.random() < .3:
            name = r.choice(["ns", "state"])
            out = self.tag(f"set {name} = namespace({r.choice(['', 'v=0', 'v=%s, w=[]' % literal(''), 'd', 'v=false'])})")
            self.namespaces = self.namespaces + [name]
            return out
        name = r.choice(self.namespaces)
        attribute = r.choice(["v", "w"])
        grown = f"{name}.{attribute} + {self.expr(r.choice(['int', 'str', 'list']), 1)}"
        value = r.choice([self.expr("any", 2), grown, "loop.index" if self.in_loop else "1"])
        return self.tag(f"set {name}.{attribute} = {value}")

    def do_macro(self, depth):
        r = self.r
        name = r.choice(["render", "show", "helper"])
        count = r.randrange(3)
        parameters = [f"p{i}" for i in range(count)]
        with_default = r.randrange(count + 1)
        signature = [p + (f"={self.expr('any', 1)}" if i >= count - with_default else "") for i, p in enumerate(parameters)]
        saved = dict(self.scope), self.in_loop, self.can_break, self.macros
        self.scope.update({p: "any" for p in parameters})
        self.in_loop = self.can_break = False
        self.macros = [m for m in self.macros if m[0] != name]
        inner = self.body(depth) + r.choice(["", "", "{{ varargs }}{{ kwargs|dictsort }}", "{{ caller() if caller }}", "{{ caller(1) if caller is defined }}"])
        self.scope, self.in_loop, self.can_break, self.macros = saved
        self.macros = [m for m in self.macros if m[0] != name] + [(name, count)]
        return self.tag(f"macro {name}({', '.join(signature)})") + inner + self.tag("endmacro")

    def do_call(self, depth):
        if not self.macros:
            return self.do_macro(depth)
        saved = self.in_loop, self.can_break
        self.in_loop = self.can_break = False
        out = self.tag(f"call{self.r.choice(['', '', '(p0)', '(p0=2)'])} {self.call(1)}") + self.body(depth) + self.tag("endcall")
        self.in_loop, self.can_break = saved
        return out

    def do_filter(self, depth):
        return self.tag(f"filter {self.r.choice(['upper', 'trim', 'replace(%s, %s)' % (literal('a'), literal('b')), 'indent(2)|trim', 'tojson', 'e'])}") + self.body(depth) + self.tag("endfilter")

    def do_with(self, depth):
        saved = dict(self.scope)
        values = f"x = {self.expr('str', 1)}, z = {self.expr('any', 1)}" if self.r.random() < .8 else ""
        self.scope.update({"x": "str", "z": "any"} if values else {})
        out = self.tag(f"with {values}") + self.body(depth) + self.tag("endwith")
        self.scope = saved
        return out

    def do_generation(self, depth):
        saved, self.can_break = self.can_break, self.r.random() < .05 and self.can_break
        out = self.tag("generation") + self.body(depth) + self.tag("endgeneration")
        self.can_break = saved
        return out

    def do_break(self, depth):
        if not self.can_break:
            return self.do_set(depth)
        return self.tag(f"if {self.expr('bool', 1)}") + self.tag(self.r.choice(["break", "continue"])) + self.tag("endif")

    def template(self):
        self.scope, self.macros, self.namespaces, self.in_loop, self.can_break = {}, [], [], False, False
        out = "".join(self.statement(3) for _ in range(self.r.randrange(1, 4)))
        return out + self.r.choice(["", "\n", "\n\n", "  "])

    def case(self):
        return {"template": self.template(), "variables": self.variables()}


def cases(seed, count):
    generator = Generator(seed)
    return [generator.case() for _ in range(count)]
