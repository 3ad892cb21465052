"""/v1/messages through the official `anthropic` client."""

import json
import socket

import anthropic
import pytest


@pytest.fixture(scope="module")
def client(smol):
    return anthropic.Anthropic(base_url=smol.base, api_key="none", max_retries=0)


# This client has no argument for sampling parameters.
GREEDY = {"temperature": 0}
HELLO = {"logit_bias": {"33662": 100}} | GREEDY  # forces " hello" whatever the weights say


def user(text):
    return [{"role": "user", "content": text}]


def test_answers(client):
    answer = client.messages.create(model="m", max_tokens=12, system="Be brief.", messages=user("Hi"))
    assert answer.type == "message" and answer.role == "assistant" and answer.id.startswith("msg_")
    assert answer.content[0].type == "text" and answer.content[0].text
    assert answer.usage.output_tokens > 0
    assert answer.stop_reason in ("end_turn", "max_tokens")


def test_says_the_same_as_chat(client, smol):
    chat = smol.client().chat.completions.create(
        model="m", temperature=0, max_tokens=12,
        messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    answer = client.messages.create(model="m", max_tokens=12, extra_body=GREEDY,
                                    system=[{"type": "text", "text": "Be brief."}],
                                    messages=[{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])
    assert answer.content[0].text == chat.choices[0].message.content
    usage = answer.usage
    assert usage.input_tokens + usage.cache_read_input_tokens == chat.usage.prompt_tokens


def test_reasons_to_stop(client):
    cut = client.messages.create(model="m", max_tokens=2, messages=user("Hi"), extra_body=HELLO)
    assert cut.stop_reason == "max_tokens" and cut.content[0].text == " hello hello"
    stopped = client.messages.create(model="m", max_tokens=9, messages=user("Hi"),
                                     stop_sequences=["lo he"], extra_body=HELLO)
    assert stopped.stop_reason == "stop_sequence" and stopped.stop_sequence == "lo he"
    assert stopped.content[0].text == " hel"
    ended = client.messages.create(model="m", max_tokens=9, messages=user("Hi"),
                                   extra_body={"logit_bias": {"2": 100}} | GREEDY)
    assert ended.stop_reason == "end_turn" and ended.content == []


def test_stream(client):
    options = {"model": "m", "max_tokens": 12, "messages": user("Count to three."), "extra_body": GREEDY}
    whole = client.messages.create(**options)
    with client.messages.stream(**options) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_events(client):
    events = list(client.messages.create(model="m", max_tokens=2, messages=user("Hi"), stream=True,
                                         extra_body=HELLO))
    types = [event.type for event in events if event.type != "ping"]
    assert types[0:2] == ["message_start", "content_block_start"]
    assert types[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(types[2:-3]) == {"content_block_delta"}


def test_counting(client):
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    counted = client.messages.count_tokens(model="m", system="Be brief.", messages=user("Hi"))
    answer = client.messages.create(model="m", max_tokens=1, system="Be brief.", messages=user("Hi"))
    usage = answer.usage
    assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens
    assert client.messages.count_tokens(model="m", messages=user("Hi"), tools=tools).input_tokens > 0


def test_begun_answers_are_continued(client):
    answer = client.messages.create(model="m", max_tokens=4, messages=user("2+2?") + [
        {"role": "assistant", "content": "The sum is"}])
    assert answer.content[0].text


def test_turns_with_tools_and_thoughts(client):
    answer = client.messages.create(model="m", max_tokens=2, messages=user("Weather?") + [
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "A tool.", "signature": ""},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}]}])
    assert answer.usage.output_tokens > 0


def test_errors_have_anthropics_shape(client):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": [image]}])
    assert refused.value.body["type"] == "error"
    assert refused.value.body["error"]["type"] == "invalid_request_error"
    assert "text only" in refused.value.body["error"]["message"]
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(model="nope", max_tokens=1, messages=user("Hi"))
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(model="m", max_tokens=1, messages=[])


VERDICT = {"type": "object", "additionalProperties": False, "required": ["verdict"],
           "properties": {"verdict": {"enum": ["good", "bad"]}}}


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "judge"}])
def test_tool_use(client, choice):
    options = {"model": "m", "max_tokens": 60, "messages": user("Judge."), "extra_body": GREEDY,
               "tools": [{"name": "judge", "description": "Judges.", "input_schema": VERDICT}],
               "tool_choice": choice}
    answer = client.messages.create(**options)
    call = next(block for block in answer.content if block.type == "tool_use")
    assert answer.stop_reason == "tool_use"
    assert call.name == "judge" and call.id and call.input["verdict"] in ("good", "bad")
    with client.messages.stream(**options) as stream:
        final = stream.get_final_message()
    assert next(block for block in final.content if block.type == "tool_use").input == call.input
    again = client.messages.create(model="m", max_tokens=2, messages=user("Judge.") + [
        {"role": "assistant", "content": [call.model_dump(exclude_none=True)]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "noted"}]}])
    assert again.usage.output_tokens > 0


def test_schemas(client):
    answer = client.messages.create(model="m", max_tokens=40, messages=user("Judge."), output_config={
        "format": {"type": "json_schema", "schema": VERDICT}})
    assert json.loads(answer.content[0].text)["verdict"] in ("good", "bad")


def raw_answer(port, payload):
    """Status and JSON body of what these bytes get."""
    with socket.create_connection(("127.0.0.1", port), timeout=15) as s:
        s.sendall(payload)
        s.shutdown(socket.SHUT_WR)
        data = b""
        while part := s.recv(65536):
            data += part
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), json.loads(body)


@pytest.mark.parametrize("request_line, more, status", [
    (b"POST /v1/messages HTTP/1.1", b"Host: x\r\nContent-Length: abc\r\n", 400),
    (b"POST /v1/messages?beta=true HTTP/1.1", b"Host: x\r\nBad Name: 1\r\n", 400),
    (b"POST /v1/messages/count_tokens HTTP/1.1", b"Host: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400),
    (b"POST /v1/messages HTTP/1.1", b"Host: x\r\nContent-Length: 1000000000000\r\n", 413),
    (b"POST /v1/messages/batches HTTP/1.1", b"Host: x\r\nContent-Length: 2\r\n\r\n{}", 404),
    (b"GET /v1/messages HTTP/1.1", b"Host: x\r\nConnection: close\r\n", 405),
    (b"POST /v1/messages HTTP/1.1", b"Host: x\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415),
])
def test_early_errors_have_this_shape(mini, request_line, more, status):
    def errors(line):
        return raw_answer(mini.port, line + b"\r\n" + more + b"\r\n")

    got, body = errors(request_line)
    assert got == status
    assert set(body) == {"type", "error"} and body["type"] == "error"
    assert set(body["error"]) == {"type", "message"} and body["error"]["message"]
    # Elsewhere it is OpenAI's.
    got, body = errors(request_line.replace(b"/v1/messages", b"/v1/messagesx"))
    assert got in (status, 404) and set(body["error"]) == {"message", "type", "param", "code"}
