"""What a refused request is told: what is wrong, where, in the client's own names; and never a 500, whatever the body."""

import json

import pytest
import requests

MESSAGES = [{"role": "user", "content": "Hi"}]
LEAST = {
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 1},
    "/v1/completions": {"prompt": "x", "max_tokens": 1},
    "/v1/responses": {"input": "Hi", "max_output_tokens": 1},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 1},
    "/v1/messages/count_tokens": {"messages": MESSAGES},
    "/v1/embeddings": {"input": "x"},
    "/v1/rerank": {"query": "x", "documents": ["a", "b"]},
    "/v1/score": {"text_1": "x", "text_2": ["a", "b"]},
    "/tokenize": {"prompt": "x"},
    "/detokenize": {"tokens": [1]},
    "/apply-template": {"messages": MESSAGES},
}


def refusal(server, path, body):
    """(status, param, message); Anthropic's shape has no param."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = requests.post(server.base + path, data=data, headers={"content-type": "application/json"}, timeout=30)
    error = answer.json().get("error", {})
    return answer.status_code, error.get("param"), error.get("message", "")


BROKEN = [
    (b"", "is empty"),
    (b'{"a":"\xff"}', "not UTF-8: byte 6 (0xff)"),
    (b"\xef\xbb\xbf{}", "byte order mark"),
    (b'{"a":1', "ends at byte 6"),
    (b"{'a':1}", "syntax error at byte 1"),
    (b'{"a":1,"a":2}', '"a" twice'),
    (b"{}{}", "extra data after the value at byte 2"),
    (b"[" * 200, "nested deeper than 64"),
    (b'{"a":1e999}', "too large to represent at byte"),
    (b"[]", "must be a JSON object, not a list"),
]


@pytest.mark.parametrize("path", LEAST)
def test_a_body_that_is_no_request(mini, path):
    for body, words in BROKEN:
        status, _, message = refusal(mini, path, body)
        assert status == 400 and words in message, (body[:20], message)


# The second one's schema cannot be enforced.
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {"u": schema}}}}
         for name, schema in (("a", {"type": "null"}), ("b", {"not": {}}), ("c", {"type": "null"}))]


def strict(tool):
    return tool | {"function": tool["function"] | {"strict": True}}


SENTENCES = [
    ("/v1/chat/completions", {"messages": None}, "messages", "`messages` is required"),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text",
     "must be a string"),
    ("/v1/chat/completions", {"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name",
     "letters, digits"),
    ("/v1/responses", {"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name", "letters, digits"),
    ("/v1/responses", {"tool_choice": "x"}, "tool_choice", '{"type": "function", "name": …}'),
    ("/v1/responses", {"text": {"format": {"type": "json_schema", "name": "s"}}}, "text.format", 'needs a "schema"'),
    ("/v1/messages", {"tools": [{"name": "a b"}]}, None, "`tools[0].name` must be"),
    ("/v1/messages/count_tokens", {"tools": [{"name": "f", "input_schema": []}]}, None, "`tools[0].input_schema` must be"),
    ("/v1/completions", {"prompt": ["a", 1]}, "prompt[1]", "must be a string like the first, not an integer"),
    ("/v1/completions", {"stop": ["a", 1]}, "stop[1]", "must be a string, not an integer"),
    ("/v1/embeddings", {"input": [1, -1]}, "input[1]", "is -1; token ids of this model are 0 to"),
    ("/v1/rerank", {"documents": 5}, "documents", 'a string, or a list of strings or of objects with a "text", not an integer'),
    ("/v1/rerank", {"documents": [{"title": "x"}]}, "documents[0]", 'needs a "text"'),
    ("/v1/score", {"text_2": ["a", None]}, "text_2[1]", "not null"),
    ("/detokenize", {"tokens": ["1"]}, "tokens[0]", "must be a token id, not a string"),
    ("/v1/chat/completions", {"strict": True, "response_format": {"type": "text", "zz": 1}}, "response_format.zz",
     "would have no effect"),
    ("/v1/chat/completions", {"strict": True, "messages": [{"role": "user", "content": [
        {"type": "text", "text": "Hi", "zz": 1}]}]}, "messages[0].content[0].zz", "would have no effect"),
    ("/v1/responses", {"strict": True, "text": {"format": {"type": "text", "zz": 1}}}, "text.format.zz",
     "would have no effect"),
    ("/v1/chat/completions", {"response_format": {"type": "json_schema", "json_schema": {"name": 5, "schema": {}}}},
     "response_format.json_schema.name", "must be a string, not an integer"),
    ("/tokenize", {"strict": True, "continue_final_message": True}, "continue_final_message", "would have no effect"),
    ("/v1/completions", {"stop": 10**30}, "stop", "not a number that is too large"),
    ("/v1/completions", {"n_predict": 0}, "n_predict", "`n_predict` must be at least 1"),
    ("/apply-template", {"max_new_tokens": 0}, "max_new_tokens", "`max_new_tokens` must be at least 1"),
    ("/v1/completions", {"bad_words": ["\u2603" * 80]}, "bad_words", "tokens; at most 64 are allowed"),
    ("/v1/completions", {"structured_outputs": {}}, "structured_outputs", "`structured_outputs` needs one of json"),
    # Grammars: clients show the sentence alone.
    ("/v1/completions", {"grammar": "root ::= nothing"}, "grammar", "`grammar` cannot be compiled: "),
    ("/v1/completions", {"grammar": "root ::= | ()"}, "grammar", "`grammar` allows only the empty output"),
    ("/v1/completions", {"grammar": "#" * 300_000}, "grammar", "`grammar` has 300000 bytes; at most"),
    ("/v1/completions", {"json_schema": {"not": {}}}, "json_schema", "`json_schema`: schema at /not: the keyword"),
    ("/v1/chat/completions", {"tools": TOOLS, "tool_choice": "required"}, "tools[1].function.parameters",
     "`tools[1].function.parameters`: schema at /properties/u/not: the keyword"),
    ("/v1/chat/completions", {"tools": [strict(tool) for tool in TOOLS]}, "tools[1].function.parameters", "/properties/u/not"),
    ("/v1/chat/completions", {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {
        "mode": "required", "tools": [{"type": "function", "function": {"name": "b"}}]}}}, "tools[1].function.parameters",
     "/properties/u/not"),
    ("/v1/responses", {"tools": [{"type": "function", **tool["function"]} for tool in TOOLS], "tool_choice": "required"},
     "tools[1].parameters", "`tools[1].parameters`: schema at /properties/u/not"),
    ("/v1/messages", {"tools": [{"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]}
                                for tool in TOOLS], "tool_choice": {"type": "any"}}, None,
     "`tools[1].input_schema`: schema at /properties/u/not"),
    ("/v1/chat/completions", {"tools": [TOOLS[0], {"type": "function", "function": {"name": "c", "parameters": {"enum": [1]}}}],
                              "tool_choice": "required"}, "tools[1].function.parameters", "`tools[1].function.parameters`"),
    ("/v1/completions", {"guided_json": "{"}, "guided_json", "`guided_json` is not valid JSON"),
]


@pytest.mark.parametrize("path, members, param, words", SENTENCES, ids=lambda v: v if isinstance(v, str) and v.startswith("/") else "")
def test_names_the_place_as_the_client_wrote_it(mini, path, members, param, words):
    status, named, message = refusal(mini, path, LEAST[path] | members)
    assert status == 400 and named == param and words in message, (named, message)


VALUES = [True, -1, 1.5, 10**30, "", "\x00", [], [[]], [None], {}, {"a": 1}, [{}], [{"type": "x"}]]


@pytest.mark.parametrize("path", LEAST)
def test_any_member_of_any_kind(mini, path):
    """A value that a member does not take is a 400 that begins with the member's name."""
    document = requests.get(mini.base + "/openapi.json", timeout=10).json()
    reference = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    members = document["components"]["schemas"][reference.rsplit("/", 1)[1]]["properties"]
    session = requests.Session()
    refused = 0
    for i, member in enumerate(members):
        for value in VALUES[i % 3::3]:  # each member a third of them
            answer = session.post(mini.base + path, json=LEAST[path] | {member: value}, timeout=30)
            if answer.status_code == 200:
                continue
            message = answer.json()["error"]["message"]
            assert answer.status_code in (400, 404, 503) and len(message) > 20, (member, value, answer.text)
            refused += 1
            if answer.json()["error"].get("param") is not None:
                assert "the body" not in message, (member, value, message)
    assert refused > 10
