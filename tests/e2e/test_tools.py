"""Tools and thinking over HTTP, with a template that carries Hermes' marks."""

import json

import jsonschema
import pytest
from conftest import MODEL, need

# The examples make a small model write calls: it continues the pattern.
HERMES = """{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if tools %}{% for i in range(6) %}<|im_start|>user
Call {{ tools[0].function.name }}<|im_end|>
<|im_start|>assistant
<tool_call>
{"name": "{{ tools[0].function.name }}", "arguments": {"city": "Graz"}}
</tool_call><|im_end|>
{% endfor %}<|im_start|>user
Call {{ tools[0].function.name }}<|im_end|>
{% endif %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking %}<think>
{% endif %}{% endif %}"""

WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "Tells the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
                   "additionalProperties": False}}}
NOW = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
# Room enough: near the end of it no call is begun that might not end in time.
REQUEST = {"model": "m", "temperature": 0, "max_tokens": 256, "tools": [WEATHER, NOW],
           "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture(scope="module")
def hermes(make_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("templates") / "hermes.jinja"
    path.write_text(HERMES)
    return make_server(need(MODEL), "--chat-template", path, "--served-model-name", "m", "--max-model-len", 2048)


def streamed(chunks):
    """The message that deltas make: content, reasoning, calls (name, arguments), how it ended."""
    content, reasoning, calls, end = "", "", [], None
    for chunk in chunks:
        if not chunk.choices:
            continue
        delta = chunk.choices[0].delta
        content += delta.content or ""
        reasoning += getattr(delta, "reasoning", None) or ""
        for call in delta.tool_calls or []:
            if call.id:
                assert call.index == len(calls) and call.type == "function"
                calls.append([call.function.name, ""])
            calls[call.index][1] += call.function.arguments or ""
        end = chunk.choices[0].finish_reason or end
    return content, reasoning, calls, end


def whole(answer):
    message = answer.choices[0].message
    calls = [[call.function.name, call.function.arguments] for call in message.tool_calls or []]
    return message.content or "", getattr(message, "reasoning", None) or "", calls, answer.choices[0].finish_reason


def test_calls_whole_and_streamed(hermes):
    client = hermes.client()
    answer = client.chat.completions.create(**REQUEST)
    content, _, calls, end = whole(answer)
    assert end == "tool_calls" and content == "", answer
    assert calls[0][0] == "weather" and json.loads(calls[0][1]) == {"city": "Graz"}
    assert answer.choices[0].message.tool_calls[0].id.startswith("call_")
    assert streamed(client.chat.completions.create(stream=True, **REQUEST)) == whole(answer)


def test_a_conversation_with_calls_goes_on(hermes):
    client = hermes.client()
    first = client.chat.completions.create(**REQUEST).choices[0].message
    messages = REQUEST["messages"] + [
        first.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "Rain."}]
    answer = client.chat.completions.create(**REQUEST | {"messages": messages, "max_tokens": 4})
    assert answer.choices[0].finish_reason in ("stop", "tool_calls", "length")


# Calls of these are short, however hot the model is.
SHORT = [{"type": "function", "function": {"name": "weather", "parameters": {
             "type": "object", "properties": {"city": {"enum": ["Graz", "Wien"]}}, "required": ["city"],
             "additionalProperties": False}}},
         {"type": "function", "function": {"name": "now", "parameters": {
             "type": "object", "properties": {}, "additionalProperties": False}}}]


def check_calls(message):
    """Every call is of a tool, and its arguments obey the schema."""
    assert message.tool_calls and not message.content
    for call in message.tool_calls:
        arguments = json.loads(call.function.arguments)
        if call.function.name == "weather":
            assert list(arguments) == ["city"] and arguments["city"] in ("Graz", "Wien")
        else:
            assert call.function.name == "now" and arguments == {}


# Hot enough that the model left alone would write none of it.
def test_required_calls_whatever_the_model_thinks(hermes):
    hot = REQUEST | {"temperature": 2, "tools": SHORT, "tool_choice": "required", "max_tokens": 64, "seed": 1}
    client = hermes.client()
    one = client.chat.completions.create(**hot, parallel_tool_calls=False)
    check_calls(one.choices[0].message)
    assert len(one.choices[0].message.tool_calls) == 1 and one.choices[0].finish_reason == "tool_calls"
    assert streamed(client.chat.completions.create(stream=True, parallel_tool_calls=False, **hot)) == whole(one)
    check_calls(client.chat.completions.create(**hot).choices[0].message)


# What says nothing of objects, or allows more, is no way out of a call.
@pytest.mark.parametrize("schema", [
    {}, {"description": "x"}, {"type": "object", "nullable": True, "properties": {}},
    {"anyOf": [{"type": "object", "properties": {"a": {"const": 1}}}, {"type": "string"}]},
    {"type": "object", "properties": None, "required": None}, {"type": "object", "properties": {
        "a": {"type": "object", "properties": None, "required": None, "enum": None}}}])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_forced_calls_have_an_object_for_arguments(hermes, mini, schema, path):
    tool = {"name": "w", "parameters": schema}
    body = {"model": "m", "temperature": 1.3, "max_tokens": 60, "messages": HI}
    if path == "/v1/messages":
        body |= {"tools": [{"name": "w", "input_schema": schema}], "tool_choice": {"type": "any"}}
    elif path == "/v1/responses":
        body = {"model": "m", "temperature": 1.3, "max_output_tokens": 60, "input": "Hi",
                "tools": [{"type": "function", **tool}], "tool_choice": "required"}
    else:
        body |= {"tools": [{"type": "function", "function": tool}], "tool_choice": "required"}
    for server in (hermes, mini):
        for seed in range(1, 3):
            answer = server.post(path, body | {"seed": seed})
            assert answer.status_code == 200, answer.text
            answer = answer.json()
            if path == "/v1/messages":
                calls = [block.get("input") for block in answer["content"]]
            elif path == "/v1/responses":
                calls = [json.loads(item["arguments"]) for item in answer["output"]]
            else:
                calls = [json.loads(call["function"]["arguments"]) for call in answer["choices"][0]["message"]["tool_calls"]]
            assert calls and all(isinstance(call, dict) for call in calls), answer


# Left alone, the model goes on with two calls at once, as before; its format has no marks.
def test_one_call_where_no_grammar_holds_the_model_to_it(smol):
    def turn(city):
        calls = [{"id": f"{city}{i}", "type": "function", "function": {"name": "weather", "arguments": json.dumps({"city": c})}}
                 for i, c in enumerate((city, "Wien"))]
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "sunny"} for call in calls]
        return [{"role": "user", "content": f"Weather in {city} and Wien?"}, {"role": "assistant", "tool_calls": calls}, *results]

    body = {"model": "m", "temperature": 0, "max_tokens": 120, "tools": [WEATHER], "messages": [
        message for city in ("Graz", "Linz", "Ried") for message in turn(city)] + [
        {"role": "user", "content": "Weather in Rom and Wien?"}]}
    client = smol.client()
    both = whole(client.chat.completions.create(**body))
    assert both[2]  # two, where the machine's arithmetic does not tip the model; what follows holds either way
    one = client.chat.completions.create(**body, parallel_tool_calls=False)
    assert whole(one) == (both[0], both[1], both[2][:1], "tool_calls")
    assert streamed(client.chat.completions.create(**body, parallel_tool_calls=False, stream=True)) == whole(one)
    assert one.usage.completion_tokens < 120


# A template is known by its marks, and then the model writes calls so.
TAGS = {"qwen3_coder": "<function= <parameter=", "glm": "<tool_call> <arg_key>", "minimax": "<minimax:tool_call>",
        "deepseek_v3_2": "｜DSML｜ function_calls", "gemma4": "<|tool_call> <tool_call|>"}
PLAIN = {"type": "object", "properties": {"few": {"type": "integer", "minimum": 3, "maximum": 9},
                                          "unit": {"enum": ["C", "F"]}}, "required": ["few", "unit"]}
RICH = {"type": "object", "properties": {"n": {"type": "number", "multipleOf": 5, "minimum": 0, "maximum": 50},
                                         "code": {"type": "string", "pattern": "^[a-c]{2}$", "maxLength": 2}}, "required": ["n", "code"]}


@pytest.mark.parametrize("form", TAGS)
def test_arguments_of_every_spelling_obey_their_schema(make_server, mini_model, tmp_path, form):
    path = tmp_path / "marks.jinja"
    path.write_text("{% if tools %}{{ '" + TAGS[form] + "' }}{% endif %}{{ messages[-1].content }}")
    server = make_server(mini_model, "--chat-template", path, "--served-model-name", "m", "--max-model-len", 512)

    def answer(schema, seed):
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        return server.post("/v1/chat/completions", {
            "model": "m", "messages": HI, "tools": [tool], "tool_choice": "required", "temperature": 1.5, "seed": seed,
            "max_tokens": 300, "parallel_tool_calls": False})

    for schema in (PLAIN, RICH):
        for seed in range(2):
            got = answer(schema, seed)
            if form == "gemma4" and schema is RICH:
                assert got.status_code == 400 and "multipleOf" in got.json()["error"]["message"]
                continue
            assert got.status_code == 200, got.text
            calls = got.json()["choices"][0]["message"]["tool_calls"]
            assert len(calls) == 1
            jsonschema.validate(json.loads(calls[0]["function"]["arguments"]), schema)


ANTHROPIC = [{"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]} for tool in SHORT]
FLAT = [{"type": "function", **tool["function"]} for tool in SHORT]
HI = [{"role": "user", "content": "Hi"}]


# Calls are held to an end that fits: what max_tokens cuts off is a further call, so the answer is whole.
@pytest.mark.parametrize("limit", [24, 33, 40])
def test_forced_calls_at_the_limit_are_whole(hermes, limit):
    common = {"model": "m", "temperature": 1.5, "seed": limit}
    chat = hermes.post("/v1/chat/completions", common | {
        "messages": HI, "tools": SHORT, "tool_choice": "required", "max_tokens": limit}).json()["choices"][0]
    assert chat["finish_reason"] == "tool_calls", chat
    for call in chat["message"]["tool_calls"]:
        json.loads(call["function"]["arguments"])
    messages = hermes.post("/v1/messages", common | {
        "messages": HI, "tools": ANTHROPIC, "tool_choice": {"type": "any"}, "max_tokens": limit}).json()
    assert messages["stop_reason"] == "tool_use" and {block["type"] for block in messages["content"]} == {"tool_use"}
    responses = hermes.post("/v1/responses", common | {
        "input": "Hi", "tools": FLAT, "tool_choice": "required", "max_output_tokens": limit}).json()
    assert responses["status"] == "completed" and responses["incomplete_details"] is None
    assert {(item["type"], item["status"]) for item in responses["output"]} == {("function_call", "completed")}


def test_a_named_function_is_called(hermes):
    choice = {"type": "function", "function": {"name": "now"}}
    tools = [WEATHER, {"type": "function", "function": {"name": "now", "parameters": {
        "type": "object", "properties": {"zone": {"enum": ["UTC", "CET"]}}, "required": ["zone"],
        "additionalProperties": False}}}]
    answer = hermes.client().chat.completions.create(**REQUEST | {"tool_choice": choice, "tools": tools})
    calls = answer.choices[0].message.tool_calls
    assert [call.function.name for call in calls] == ["now"] and answer.choices[0].finish_reason == "stop"
    assert json.loads(calls[0].function.arguments)["zone"] in ("UTC", "CET")


def test_strict_arguments_of_a_free_call(hermes):
    tool = {"type": "function", "function": {"name": "weather", "strict": True, "parameters": {
        "type": "object", "properties": {"city": {"enum": ["Wien"]}}, "required": ["city"],
        "additionalProperties": False}}}
    answer = hermes.client().chat.completions.create(**REQUEST | {"tools": [tool], "parallel_tool_calls": False})
    _, _, calls, _ = whole(answer)
    assert [[name, json.loads(arguments)] for name, arguments in calls] == [["weather", {"city": "Wien"}]]


def test_a_schema_that_cannot_be_enforced(hermes):
    tool = {"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {"a": {"type": "string", "pattern": "(?<=x)y"}}}}}
    body = REQUEST | {"tools": [tool], "max_tokens": 1}
    assert hermes.post("/v1/chat/completions", body | {"tool_choice": "required"}).status_code == 400
    # Where nothing was promised it is told.
    free = hermes.post("/v1/chat/completions", body)
    assert free.status_code == 200 and "tools.parameters" in free.json()["vivace"]["ignored"]


def test_a_thought_and_then_a_schema(hermes):
    body = {"model": "m", "temperature": 0, "max_tokens": 48, "reasoning_effort": "low",
            "messages": [{"role": "user", "content": "Is it?"}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"enum": ["yes", "no"]}}}}
    message = hermes.post("/v1/chat/completions", body).json()["choices"][0]["message"]
    assert json.loads(message["content"]) in ("yes", "no") and message["reasoning"]


def test_a_budget_that_no_token_ends(hermes):
    body = {"model": "m", "max_tokens": 2, "messages": [{"role": "user", "content": "Hi"}],
            "thinking_token_budget": 4}
    answer = hermes.post("/v1/chat/completions", body)
    assert "thinking_token_budget" in answer.headers["x-vivace-ignored"]


def test_none_calls_nothing(hermes):
    answer = hermes.client().chat.completions.create(**REQUEST | {"tool_choice": "none", "max_tokens": 8})
    assert not answer.choices[0].message.tool_calls and answer.choices[0].message.content


def test_thinking_that_the_prompt_opens(hermes):
    body = {"model": "m", "temperature": 0, "max_tokens": 12, "messages": [{"role": "user", "content": "Hi"}],
            "reasoning_effort": "low", "ignore_eos": True}
    message = hermes.post("/v1/chat/completions", body).json()
    choice = message["choices"][0]["message"]
    assert choice["content"] == "" and choice["reasoning"] == choice["reasoning_content"] != ""
    assert message["usage"]["completion_tokens_details"]["reasoning_tokens"] == 12
    plain = hermes.post("/v1/chat/completions", body | {"reasoning_effort": "none"}).json()
    assert "reasoning" not in plain["choices"][0]["message"]
    hidden = hermes.post("/v1/chat/completions", body | {"include_reasoning": False}).json()
    assert "reasoning" not in hidden["choices"][0]["message"]
    assert hidden["usage"]["completion_tokens_details"]["reasoning_tokens"] == 12


@pytest.mark.parametrize("members, param", [
    ({"tools": None, "tool_choice": "required"}, "tool_choice"),
    ({"tool_choice": {"type": "function", "function": {"name": "nope"}}}, "tool_choice"),
    ({"tool_choice": "sometimes"}, "tool_choice"),
    ({"tools": [NOW, NOW]}, "tools[1].function.name"),
    ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {
        "type": 7, "properties": {"a": {"type": ["x"], "pattern": 7}}}}}]}, "tools[0].function.parameters"),
])
def test_bad_tools_are_refused(hermes, members, param):
    answer = hermes.post("/v1/chat/completions", REQUEST | members)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param
