"""Structured output over HTTP: every member that asks for it, schemas against jsonschema, bad ones, cut answers."""

import json
import re
import time

import pytest
import requests

jsonschema = pytest.importorskip("jsonschema")

PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
                                           "age": {"type": "integer", "minimum": 0, "maximum": 120},
                                           "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3}},
          "required": ["name", "age"], "additionalProperties": False}
GBNF = 'root ::= item ("," item)*\nitem ::= [a-c] | "(" root ")"\n'
MESSAGES = [{"role": "user", "content": "Give me a person as JSON."}]


def ask(server, seed=1, max_tokens=60, path="/v1/chat/completions", temperature=1.5, **members):
    body = {"model": "m", "messages": MESSAGES, "max_tokens": max_tokens, "seed": seed,
            "temperature": temperature, **members}
    return requests.post(server.base + path, json=body, timeout=60)


def text_of(answer):
    assert answer.status_code == 200, answer.text[:500]
    return answer.json()["choices"][0]["message"]["content"]


def streamed(server, **members):
    text = ""
    with requests.post(server.base + "/v1/chat/completions", stream=True, timeout=60,
                       json={"model": "m", "messages": MESSAGES, "stream": True, **members}) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    text += choice["delta"].get("content") or ""
    return text


def schema_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "s", "strict": True, "schema": schema}}


IS_PERSON = [
    {"response_format": schema_format(PERSON)}, {"structured_outputs": {"json": PERSON}}, {"guided_json": PERSON},
    {"guided_json": json.dumps(PERSON)}, {"json_schema": PERSON},
    {"response_format": {"type": "json_object", "schema": PERSON}}]
IS_OBJECT = [{"response_format": {"type": "json_object"}}, {"structured_outputs": {"json_object": True}},
             {"guided_json_object": True}]
IS_PATTERN = [{"structured_outputs": {"regex": "[a-f]{3}-\\d{2,4}"}}, {"guided_regex": "[a-f]{3}-\\d{2,4}"},
              {"regex": "[a-f]{3}-\\d{2,4}"}]
IS_CHOICE = [{"structured_outputs": {"choice": ["yes", "no \"x\""]}}, {"guided_choice": ["yes", "no \"x\""]}]
IS_GRAMMAR = [{"structured_outputs": {"grammar": GBNF}}, {"guided_grammar": GBNF}, {"grammar": GBNF}, {"ebnf": GBNF}]


# Path, what is asked, the limit's name, tokens used, text and how it ended.
SHAPES = {
    "chat": ("/v1/chat/completions", {"messages": MESSAGES}, "max_tokens", lambda a: a["usage"]["completion_tokens"],
             lambda a: (a["choices"][0]["message"]["content"], a["choices"][0]["finish_reason"]), ("stop", "length")),
    "completions": ("/v1/completions", {"prompt": "x"}, "max_tokens", lambda a: a["usage"]["completion_tokens"],
                    lambda a: (a["choices"][0]["text"], a["choices"][0]["finish_reason"]), ("stop", "length")),
    "responses": ("/v1/responses", {"input": MESSAGES}, "max_output_tokens", lambda a: a["usage"]["output_tokens"],
                  lambda a: (a["output"][0]["content"][0]["text"], a["status"]), ("completed", "incomplete")),
    "messages": ("/v1/messages", {"messages": MESSAGES}, "max_tokens", lambda a: a["usage"]["output_tokens"],
                 lambda a: (a["content"][0]["text"], a["stop_reason"]), ("end_turn", "max_tokens")),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_complete_exactly_at_the_limit(mini, shape):
    """An answer that can't go on has ended by itself; one that could go on was cut."""
    path, asked, limit, used, told, (ended, cut) = SHAPES[shape]
    body = asked | {"model": "m", "seed": 5, "guided_json": PERSON}
    free = requests.post(mini.base + path, json=body | {limit: 100}, timeout=60).json()
    text, end = told(free)
    json.loads(text)
    assert end == ended
    exact = requests.post(mini.base + path, json=body | {limit: used(free)}, timeout=60).json()
    assert told(exact) == (text, ended) and used(exact) == used(free)
    digits = requests.post(mini.base + path, json=asked | {"seed": 5, "guided_regex": "[0-9]+", limit: 1}, timeout=60).json()
    assert told(digits)[1] == cut and told(digits)[0].isdigit()


@pytest.mark.parametrize("members", IS_PERSON, ids=lambda m: next(iter(m)))
def test_schema(mini, members):
    for seed in range(3):
        jsonschema.validate(json.loads(text_of(ask(mini, seed, **members))), PERSON)


@pytest.mark.parametrize("members", IS_OBJECT, ids=lambda m: next(iter(m)))
def test_object(mini, members):
    for seed in range(3):
        assert isinstance(json.loads(text_of(ask(mini, seed, **members))), dict)


@pytest.mark.parametrize("members", IS_PATTERN, ids=lambda m: next(iter(m)))
def test_regex(mini, members):
    assert re.fullmatch("[a-f]{3}-\\d{2,4}", text_of(ask(mini, **members)))


@pytest.mark.parametrize("members", IS_CHOICE, ids=lambda m: next(iter(m)))
def test_choice(mini, members):
    assert text_of(ask(mini, **members)) in ("yes", 'no "x"')


@pytest.mark.parametrize("members", IS_GRAMMAR, ids=lambda m: next(iter(m)))
def test_grammar(mini, members):
    text = text_of(ask(mini, max_tokens=30, **members))
    assert set(text) <= set("abc,()") and text.count("(") == text.count(")")


# As llama.cpp's json_schema_to_grammar writes them, and what else its parser takes.
LLAMA_CPP = [
    (r'''n ::= ("-"? [0-9]{1,3}) space
n-kv ::= "\"n\"" space ":" space n
on-kv ::= "\"on\"" space ":" space ("true" | "null") space
root ::= "{" space  (n-kv ( "," space on-kv )? | on-kv )? "}" space
space ::= | " " | "\n"{1,2} [ \t]{0,20}
''', r'\{\s*("n"\s*:\s*-?[0-9]{1,3}\s*(,\s*"on"\s*:\s*(true|null)\s*)?|"on"\s*:\s*(true|null)\s*)?\}\s*'),
    ('root ::= "a" ( "b" | ) none . [\\[-\\]]? 1st\nnone ::=\n1st ::= "1" |\n', r'ab?(.|\n)[\[-\]]?1?')]


@pytest.mark.parametrize("grammar, pattern", LLAMA_CPP)
def test_grammars_of_llama_cpp(mini, grammar, pattern):
    for seed in range(5):
        assert re.fullmatch(pattern, text_of(ask(mini, seed, grammar=grammar)))
        assert re.fullmatch(pattern, text_of(ask(mini, seed, structured_outputs={"grammar": grammar})))


def test_completions_take_them_too(mini):
    answer = mini.post("/v1/completions", {"prompt": "Person:", "max_tokens": 60, "guided_json": PERSON})
    jsonschema.validate(json.loads(answer.json()["choices"][0]["text"]), PERSON)


def test_streams_say_the_same(mini):
    members = {"response_format": schema_format(PERSON), "seed": 5, "max_tokens": 50, "temperature": 1.2}
    whole = text_of(ask(mini, **members))
    assert streamed(mini, **members) == whole


def test_the_same_alone_and_in_a_batch(mini):
    body = {"response_format": schema_format(PERSON), "max_tokens": 40, "seed": 3, "temperature": 1.0, "n": 4}
    answer = ask(mini, **body)
    assert answer.status_code == 200, answer.text[:300]
    texts = [choice["message"]["content"] for choice in answer.json()["choices"]]
    for text in texts:
        jsonschema.validate(json.loads(text), PERSON)
    assert texts[0] == text_of(ask(mini, **{**body, "n": 1}))


NESTED = {"type": "object", "properties": {"rows": {"type": "array", "items": {
    "type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "array", "items": {"type": "number"}}},
    "required": ["k", "v"]}}}, "required": ["rows"]}


def test_cut_answers_parse_and_say_so(mini):
    steered = 0
    for max_tokens in range(24, 64, 4):
        answer = ask(mini, seed=max_tokens, max_tokens=max_tokens, temperature=2.0, response_format=schema_format(NESTED))
        jsonschema.validate(json.loads(text_of(answer)), NESTED)
        steered += answer.json().get("vivace", {}).get("steered", False)
    assert steered > 0


def test_what_cannot_fit_is_cut(mini):
    answer = ask(mini, max_tokens=2, response_format=schema_format(PERSON))
    assert answer.status_code == 200 and answer.json()["choices"][0]["finish_reason"] == "length"


CONSTANTS = ['a"b', "c\\d", "e\nf", "\t", "/x/y", "é😀", "]}", "%s{0}", "true", "\u2028", "", 0, -1.5, None, False,
             [1, []], {"k": ""}]


@pytest.mark.parametrize("value", CONSTANTS, ids=json.dumps)
def test_constants(mini, value):
    schema = {"type": "object", "properties": {"v": {"const": value}}, "required": ["v"], "additionalProperties": False}
    answer = ask(mini, max_tokens=64, temperature=0, response_format=schema_format(schema))
    got = json.loads(text_of(answer))["v"]
    assert got == value and type(got) is type(value)
    assert answer.json()["choices"][0]["finish_reason"] == "stop"


BAD = [schema_format(s) for s in (
    {"type": "strin"}, {"enum": []}, {"type": "integer", "minimum": 5, "maximum": 4}, {"type": "string", "pattern": "foo**"},
    {"type": "string", "pattern": "("}, {"$ref": "#/$defs/nope"}, {"$ref": "http://127.0.0.1:9/s.json"}, "notobject",
    {"type": "array", "minItems": 3, "maxItems": 2}, {"not": {}}, {"type": "array", "minItems": 10**9})] + [
    {"type": "json_schema"}, {"type": "xml"}]


@pytest.mark.parametrize("bad", BAD, ids=lambda b: json.dumps(b)[-60:])
@pytest.mark.parametrize("stream", [False, True])
def test_bad_schemas_are_refused_at_once(mini, bad, stream):
    answer = ask(mini, stream=stream, response_format=bad)
    assert answer.status_code == 400 and answer.elapsed.total_seconds() < 10
    error = answer.json()["error"]
    assert error["message"] and error["param"].startswith("response_format")
    assert ask(mini, max_tokens=2).status_code == 200


def test_two_at_once_are_refused(mini):
    answer = ask(mini, guided_json=PERSON, guided_regex="a")
    assert answer.status_code == 400 and answer.json()["error"]["param"] in ("guided_json", "guided_regex")


def test_hostile_grammars_do_not_stop_the_server(mini):
    rules = "".join(f'{a} ::= ({b} "0" | {b} "1" | {b} "2" | "x"){{7,90}}\n' for a, b in zip("abcdefg", "bcdefgh"))
    for grammar in ("root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000, "root ::= a\n" + rules + "h ::= [a-z]{1,90}\n",
                    'root ::= root "a" | "a"', 'root ::= (""*)*', "root ::= nope"):
        answer = ask(mini, max_tokens=4, grammar=grammar)
        assert answer.status_code in (200, 400), answer.text[:200]
    assert text_of(ask(mini, guided_choice=["still here"])) == "still here"


@pytest.mark.parametrize("pattern", [r"([a-z]+,? ?){1,50}", r"(\w+ ?){1,20}", r"(a|aa|[b-z ]+)+"])
def test_patterns_whose_repeats_overlap_themselves_cost_what_others_do(smol, pattern):
    def seconds(regex):
        begin = time.monotonic()
        answer = ask(smol, path="/v1/completions", prompt="A: ", messages=None, max_tokens=30, guided_regex=regex)
        assert answer.status_code == 200, answer.text[:200]
        return time.monotonic() - begin, answer.json()["choices"][0]["text"]

    seconds(pattern), seconds("([a-z]+, ){1,20}")  # compiled
    took, text = seconds(pattern)
    assert re.fullmatch(r"[\w, ]*", text)
    assert took < 20 * seconds("([a-z]+, ){1,20}")[0]  # it was 100 times as long


@pytest.mark.parametrize("digit", ["[0-9]", 'Regex("[0-9]")'])  # the latter, as schemas are written for xgrammar
def test_grammars_that_cannot_be_followed_in_time_are_refused(smol, digit):
    for _ in range(3):  # a machine that is busy with something else says so, and to try again
        answer = ask(smol, max_tokens=30, grammar='root ::= x? ([a-z]+ ","? " "?){1,50}\nx ::= ' + digit)
        if answer.status_code != 503:
            break
    assert answer.status_code == 400 and "ms to compile" in answer.json()["error"]["message"]
    answer = ask(smol, max_tokens=30, guided_regex="((a{1,100}){1,100}){1,100}")
    assert answer.status_code == 400 and "too many ways" in answer.json()["error"]["message"]


# Outputs that may end after any token, which ended the try-out; each token took twice as long as the one before.
@pytest.mark.parametrize("repeated", ['"d"?', "[a-z]?", '("b" | "d")?'])
def test_grammars_whose_outputs_may_end_early_are_tried_for_as_long(smol, repeated):
    for _ in range(3):  # a machine that is busy with something else says so, and to try again
        answer = ask(smol, path="/v1/completions", prompt="x", messages=None, max_tokens=8,
                     grammar=f"root ::= (((({repeated}){{1,1000}}){{1,1000}}){{1,1000}}){{1,1000}}")
        if answer.status_code != 503:
            break
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "grammar_too_costly"


@pytest.mark.parametrize("stream", [False, True])
def test_a_rare_branch_that_takes_too_long_ends_its_answer(smol, stream):
    letter = smol.post("/tokenize", {"prompt": "d", "add_special_tokens": False}).json()["tokens"][0]
    costly = '((((("d"?){1,1000}){1,1000}){1,1000}){1,1000})'
    answer = ask(smol, path="/v1/completions", prompt="x", messages=None, max_tokens=40, stream=stream,
                 logit_bias={str(letter): 100}, grammar=f'root ::= [^d] [^d] "x"* | {costly} "!"')
    assert answer.status_code == (200 if stream else 400)
    assert "grammar_too_costly" in answer.text and '"finish_reason":"' not in answer.text
    assert text_of(ask(smol, guided_choice=["still here"])) == "still here"


def recursive_union(tag):
    """A union whose options have the union as a member, as pydantic writes a discriminated one."""
    again = {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"type": "null"}]}
    return again | {"$defs": {name: {"type": "object", "properties": {"child": again, tag: {"const": name}},
                                     "required": ["child", tag]} for name in "AB"}}


@pytest.mark.parametrize("tag", ["type", "a_tag"])
def test_recursive_unions_are_served(mini, tag):
    schema = recursive_union(tag)
    jsonschema.validate(json.loads(text_of(ask(mini, max_tokens=100, response_format=schema_format(schema)))), schema)


def test_long_chains_of_references_do_not_stop_the_server(mini):
    defs = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(7000)} | {"d7000": {}}
    answer = ask(mini, response_format=schema_format({"$ref": "#/$defs/d0", "$defs": defs}))
    assert answer.status_code == 400 and "lead to each other" in answer.json()["error"]["message"]
    assert text_of(ask(mini, guided_choice=["still here"])) == "still here"


# Schemas of many kinds, made from a seed; what is answered is valid, what cannot be enforced is a 400.
def made_schema(random, depth=0):
    kinds = ["string", "integer", "number", "boolean", "enum", "null"] + (["object", "array", "anyOf", "type"] if depth < 3 else [])
    kind = random.choice(kinds)
    if kind == "string":
        low = random.randint(0, 4)
        return random.choice([{"type": "string"}, {"type": "string", "minLength": low, "maxLength": low + random.randint(0, 9)},
                              {"type": "string", "pattern": random.choice(["^[a-z]{2,5}$", "^\\d+$", "^(ab|c\"d)?$"])},
                              {"type": "string", "format": random.choice(["date", "uuid", "ipv4", "time"])}])
    if kind in ("integer", "number"):
        low = random.randint(-300, 300)
        schema = {"type": kind}
        if random.random() < .7:
            schema[random.choice(["minimum", "exclusiveMinimum"])] = low if kind == "integer" else low / 8
        if random.random() < .7:
            schema[random.choice(["maximum", "exclusiveMaximum"])] = low + random.randint(2, 500)
        if kind == "integer" and random.random() < .2 and len(schema) != 2:
            schema["multipleOf"] = random.randint(1, 2)
        return schema
    if kind == "enum":
        return {"enum": random.sample(["a", "b\n", 1, 2.5, None, True, [1], {"a": 1}, "é"], random.randint(1, 4))}
    if kind == "object":
        names = random.sample(["a", "b", "c", "name", "na me", "x\"y", "é"], random.randint(0, 4))
        schema = {"type": "object", "properties": {n: made_schema(random, depth + 1) for n in names},
                  "required": random.sample(names, random.randint(0, len(names)))}
        if random.random() < .5:
            schema["additionalProperties"] = random.choice([False, made_schema(random, depth + 1)])
        return schema
    if kind == "array":
        low = random.randint(0, 2)
        return {"type": "array", "items": made_schema(random, depth + 1), "minItems": low,
                "maxItems": low + random.randint(0, 3)}
    if kind == "anyOf":
        return {"anyOf": [made_schema(random, depth + 1) for _ in range(random.randint(1, 3))]}
    if kind == "type":
        return {"type": random.sample(["string", "integer", "null", "boolean"], 2)}
    return {"type": kind}


def test_made_schemas(mini):
    import random as randoms
    random = randoms.Random(6)
    served = 0
    for i in range(60):
        schema = made_schema(random)
        answer = ask(mini, seed=i, max_tokens=400, response_format=schema_format(schema))
        if answer.status_code == 400:
            assert answer.json()["error"]["param"] == "response_format", (schema, answer.text)
            continue
        text = text_of(answer)
        served += 1
        try:
            jsonschema.validate(json.loads(text), schema)
        except Exception as fault:
            raise AssertionError(f"{schema} -> {text}") from fault
    assert served > 50


GIVING_WAY = {"min_tokens": 50, "bad_words": ["x"], "ignore_eos": True, "logit_bias": {"5": -100}, "allowed_token_ids": [4]}


def test_what_gives_way_to_a_grammar_is_reported(mini):
    answer = ask(mini, **IS_PATTERN[0], **GIVING_WAY)
    assert re.fullmatch("[a-f]{3}-\\d{2,4}", text_of(answer))
    assert sorted(answer.json()["vivace"]["ignored"]) == sorted(GIVING_WAY)
    assert "vivace" not in ask(mini, **IS_PATTERN[0], logit_bias={"5": -50}).json()
    assert "vivace" not in ask(mini, **GIVING_WAY).json()


@pytest.mark.parametrize("member", GIVING_WAY)
def test_what_gives_way_is_refused_where_the_request_is_strict(mini, member):
    answer = ask(mini, structured_outputs={"regex": "a+"}, strict=True, **{member: GIVING_WAY[member]})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == member
    assert "gives way" in answer.json()["error"]["message"]


# The one place of a rule: what xgrammar takes for certain behind it must be.
def test_no_token_goes_further_than_what_may_follow(mini):
    schema = {"type": "object", "additionalProperties": {"type": "array", "items": {"const": "x"}}}
    bias = {str(token): 60 for token in mini.post("/tokenize", {"prompt": "\" t: the\"", "add_special_tokens": False})
            .json()["tokens"]}
    for seed in range(20):
        answer = ask(mini, seed, temperature=2.0, response_format=schema_format(schema), logit_bias=bias)
        jsonschema.validate(json.loads(text_of(answer)), schema)
