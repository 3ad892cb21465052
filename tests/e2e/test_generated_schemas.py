"""Seeded random JSON schemas over all keywords the docs name, answered hot and checked by jsonschema."""

import concurrent.futures
import json
import pathlib
import random

import pytest

jsonschema = pytest.importorskip("jsonschema")

SCHEMAS = 200
MAX_TOKENS = 160
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs/structured.md"

FORMATS = ["date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"]
PATTERNS = ["^[a-z]{2,5}$", "^\\d+(\\.\\d{1,2})?$", "^(a*)*b$", "^(|x)+$", "^.{1,12}$", "^\\x41[\\w-]*\\/$",
            "^\"?[^\"\\\\]{1,8}\"?$", "^(foo|ba[rz])+$", "^$"]
NAMES = ["a", "b", "name", "na", "é", "with space", "q\"uote", "back\\slash", "$x", "a/b"]
VALUES = [None, True, False, 0, -1, 3.5, 1e21, "", "x", "two words", "\"\\\n\u2028😀", [], [1, [2]], {}, {"k": None}]


def maybe(rng, chance):
    return rng.random() < chance


class Generator:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.defs = {}

    def schema(self):
        root = self.any(3)
        if isinstance(root, bool):
            root = {}
        if self.defs:
            root["$defs"] = self.defs
        return root

    def any(self, depth):
        kinds = [self.null, self.boolean, self.integer, self.number, self.string, self.enum, self.constant]
        if depth > 0:
            kinds += 2 * [self.object, self.array] + [self.any_of, self.one_of, self.all_of, self.reference, self.types]
        made = self.rng.choice(kinds)(depth - 1)
        if maybe(self.rng, 0.2):
            made |= self.rng.choice([{"title": "t"}, {"description": "d"}, {"default": 1}, {"examples": [1]},
                                     {"x-own": {}}, {"$comment": "c"}, {"deprecated": True}])
        return made

    def null(self, _):
        return {"type": "null"}

    def boolean(self, _):
        return {"type": "boolean"}

    def bounds(self, whole):
        rng, made = self.rng, {}
        low = rng.choice([-1000, -7, -1, 0, 1, 5, 99]) if whole else rng.choice([-2.5, -0.001, 0, 0.25, 3, 1e3])
        width = rng.choice([1, 2, 10, 12345]) if whole else rng.choice([0.5, 1, 7.25, 1e4])
        if maybe(rng, 0.6):
            made[rng.choice(["minimum", "exclusiveMinimum"])] = low
        if maybe(rng, 0.6):
            made[rng.choice(["maximum", "exclusiveMaximum"])] = low + width + 1
        return made

    def integer(self, _):
        made = {"type": "integer"} | self.bounds(True)
        if maybe(self.rng, 0.3):
            made["multipleOf"] = 1 if len(made) > 1 else self.rng.choice([1, 2, 7, 10])
        return made

    def number(self, _):
        return {"type": "number"} | self.bounds(False)

    def string(self, _):
        rng, made = self.rng, {"type": "string"}
        kind = rng.random()
        if kind < 0.25:
            made["pattern"] = rng.choice(PATTERNS)
        elif kind < 0.45:
            made["format"] = rng.choice(FORMATS)
        elif kind < 0.85:
            low = rng.choice([0, 1, 3, 8])
            if maybe(rng, 0.6):
                made["minLength"] = low
            if maybe(rng, 0.7):
                made["maxLength"] = low + rng.choice([0, 1, 4, 200])
        return made

    def enum(self, _):
        return {"enum": self.rng.sample(VALUES, self.rng.randint(1, 5))}

    def constant(self, _):
        return {"const": self.rng.choice(VALUES)}

    def types(self, _):
        return {"type": self.rng.sample(["null", "boolean", "integer", "number", "string", "array", "object"],
                                        self.rng.randint(1, 3))}

    def object(self, depth):
        rng, made = self.rng, {"type": "object"}
        kind = rng.random()
        if kind < 0.1:
            made["patternProperties"] = {"^k[0-9]{1,2}$": self.any(depth)}
            made |= rng.choice([{"additionalProperties": False}, {"unevaluatedProperties": False},
                                {"allOf": [{"additionalProperties": rng.choice([True, {"type": "integer"}])}]}])
        elif kind < 0.2:
            made["propertyNames"] = rng.choice([{"pattern": "^[a-c]{1,3}$"}, {"maxLength": 4}, {"enum": ["x", "y"]}])
            made["additionalProperties"] = self.any(depth)
        else:
            names = rng.sample(NAMES, rng.randint(0, 4))
            made["properties"] = {name: self.any(depth) for name in names}
            made["required"] = [name for name in names if maybe(rng, 0.5)]
            if maybe(rng, 0.5):
                made["additionalProperties"] = rng.choice([False, True, self.any(min(depth, 1))])
            elif maybe(rng, 0.3):
                made["unevaluatedProperties"] = False
            if names and maybe(rng, 0.3):
                made["minProperties"] = 1
            if maybe(rng, 0.3):
                made["maxProperties"] = max(1, len(made["required"]))
        return made

    def array(self, depth):
        rng, made = self.rng, {"type": "array"}
        low = rng.choice([0, 0, 1, 2])
        if maybe(rng, 0.7):
            made["items"] = self.any(depth)
        if maybe(rng, 0.3):
            made["prefixItems"] = [self.any(depth) for _ in range(rng.randint(1, 2))]
            low = min(low, len(made["prefixItems"]))
            if maybe(rng, 0.5):
                made["unevaluatedItems"] = False
        if maybe(rng, 0.5):
            made["minItems"] = low
        if maybe(rng, 0.6):
            made["maxItems"] = low + rng.choice([0, 1, 3, 150])
        return made

    def any_of(self, depth):
        return {"anyOf": [self.any(depth) for _ in range(self.rng.randint(1, 3))]}

    def one_of(self, depth):
        if maybe(self.rng, 0.5):
            options = [self.null(0), self.boolean(0), self.integer(0), self.string(0), self.array(depth)]
            return {"oneOf": self.rng.sample(options, 3)}
        return {"oneOf": [{"type": "object", "properties": {"kind": {"const": kind}, "v": self.any(depth)},
                           "required": ["kind"]} for kind in ("x", "y")]}

    def all_of(self, depth):
        if maybe(self.rng, 0.3):  # one branch rules out what the other's pattern names
            return {"type": "object", "allOf": self.rng.sample([
                {"patternProperties": {"^[a-z]$": self.any(min(depth, 1))}}, {"additionalProperties": False}], 2)}
        shut = {"unevaluatedProperties": False} if maybe(self.rng, 0.5) else {}
        return shut | {"allOf": [{"type": "object", "properties": {"p": self.any(depth)}, "required": ["p"]},
                          {"properties": {"q": self.any(depth)}}]}

    def reference(self, depth):
        name = f"d{len(self.defs)}"
        self.defs[name] = {}
        if maybe(self.rng, 0.2):  # a union whose options lead back to it
            again = {"$ref": f"#/$defs/{name}"}
            self.defs[name] = {"oneOf": [{"type": "null"}] + [
                {"type": "object", "properties": {"child": again, "type": {"const": kind}}, "required": ["child", "type"]}
                for kind in "ab"]}
        elif maybe(self.rng, 0.3):
            self.defs[name] = {"type": "object", "properties": {
                "v": self.any(min(depth, 1)), "next": {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]}},
                "required": ["v"]}
        else:
            self.defs[name] = self.any(depth)
        return {"$ref": f"#/$defs/{name}"}


# Beside what is generated above, a keyword that the docs say is refused.
REFUSED = {"not": {"type": "null"}, "if": {"type": "string"}, "contains": {"const": 1}, "uniqueItems": True,
           "dependentRequired": {"a": ["b"]}, "unknownKeyword": 1}


def generated(seed):
    schema = Generator(seed).schema()
    if seed % 10 == 9:
        keyword = list(REFUSED)[seed // 10 % len(REFUSED)]
        return schema | {keyword: REFUSED[keyword]}, keyword
    return schema, None


def ask(server, seed, schema):
    return server.post("/v1/completions", {
        "prompt": "JSON:", "max_tokens": MAX_TOKENS, "seed": seed, "temperature": 2.0,
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}})


def check(server, seed):
    """What became of one schema: "valid", "cut" or "refused"."""
    schema, refused = generated(seed)
    jsonschema.Draft202012Validator.check_schema({k: v for k, v in schema.items() if k != "unknownKeyword"})
    answer = ask(server, seed, schema)
    what = f"seed {seed}: {json.dumps(schema)}"
    if refused:
        assert answer.status_code == 400, what
        assert refused in answer.json()["error"]["message"], (what, answer.text)
        return "refused"
    assert answer.status_code == 200, (what, answer.text)
    choice = answer.json()["choices"][0]
    try:
        value = json.loads(choice["text"], parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    except json.JSONDecodeError:
        assert choice["finish_reason"] == "length", (what, choice)
        return "cut"
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    errors = [error.message for error in validator.iter_errors(value)]
    assert not errors, (what, choice["text"], errors)
    return "valid"


@pytest.mark.slow
def test_every_answer_is_valid_or_said_to_be_cut(mini):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda seed: check(mini, seed), range(SCHEMAS)))
    assert outcomes.count("refused") == SCHEMAS // 10
    assert outcomes.count("cut") < SCHEMAS // 20, outcomes


def test_the_docs_name_what_is_refused_and_what_is_not():
    text = DOCS.read_text()
    supported = text[text.index("**Schemas.**"):text.index("Everything else (")]
    refused = text[text.index("Everything else ("):text.index("is a 400 that names")]
    for seed in range(SCHEMAS):
        keywords = set(Generator(seed).schema())
        for keyword in keywords - {"title", "description", "default", "examples", "x-own", "$comment", "deprecated"}:
            assert f"`{keyword}`" in supported or keyword == "$defs", keyword
    for keyword in REFUSED:
        assert keyword.removesuffix("Required") in refused or keyword == "unknownKeyword", keyword
