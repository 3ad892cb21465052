"""/v1/responses through the official `openai` client."""

import json

import openai
import pytest
from pydantic import BaseModel

HELLO = {"logit_bias": {"33662": 100}}  # forces " hello" whatever the weights say


@pytest.fixture(scope="module")
def client(smol):
    return smol.client()


def ask(client, question="Hi", **options):
    return client.responses.create(model="m", input=question, temperature=0, **options)


def test_answers(client):
    answer = ask(client, "Say hello.", max_output_tokens=16, instructions="You are brief.",
                 metadata={"k": "v"}, store=False)
    assert answer.object == "response" and answer.id.startswith("resp_")
    assert answer.output_text
    assert answer.instructions == "You are brief." and answer.metadata == {"k": "v"}
    assert answer.temperature == 0 and answer.store is False
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert answer.usage.output_tokens_details.reasoning_tokens == 0
    assert answer.status in ("completed", "incomplete")


def test_says_the_same_as_chat(client):
    chat = client.chat.completions.create(
        model="m", temperature=0, max_tokens=12,
        messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    answer = ask(client, max_output_tokens=12, instructions="Be brief.")
    assert answer.output_text == chat.choices[0].message.content
    assert answer.usage.input_tokens == chat.usage.prompt_tokens


def test_cut_answers_are_incomplete(client):
    answer = ask(client, max_output_tokens=2, extra_body=HELLO)
    assert answer.status == "incomplete"
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.output_text == " hello hello"


def test_items_of_earlier_turns(client):
    first = ask(client, "My name is Ada.", max_output_tokens=8)
    items = [{"role": "user", "content": "My name is Ada."}]
    items += [item.model_dump(exclude_none=True) for item in first.output]
    items += [{"role": "user", "content": [{"type": "input_text", "text": "What is my name?"}]}]
    second = client.responses.create(model="m", input=items, max_output_tokens=8)
    assert second.usage.input_tokens > first.usage.total_tokens
    assert second.output[0].type == "message"


def test_calls_of_earlier_turns(client):
    answer = client.responses.create(model="m", max_output_tokens=4, input=[
        {"role": "user", "content": "Weather?"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rome"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"}])
    assert answer.usage.output_tokens > 0


def test_stream_of_events(client):
    events = list(client.responses.create(model="m", input="Hi", temperature=0, max_output_tokens=3,
                                          stream=True, extra_body=HELLO))
    assert [event.type for event in events][:4] == [
        "response.created", "response.in_progress", "response.output_item.added",
        "response.content_part.added"]
    assert events[-1].type == "response.incomplete"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == " hello hello hello" == events[-1].response.output_text


def test_stream_helper(client):
    stop = {"logit_bias": {"2": 100}, "min_tokens": 0}  # ends at once
    with client.responses.stream(model="m", input="Hi", temperature=0, max_output_tokens=20) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    with client.responses.stream(model="m", input="Hi", temperature=0, extra_body=stop) as stream:
        final = stream.get_final_response()
    assert text
    assert final.status == "completed" and final.output_text == ""


def test_whole_and_streamed_are_the_same(client):
    whole = ask(client, "Count to three.", max_output_tokens=12)
    events = list(ask(client, "Count to three.", max_output_tokens=12, stream=True))
    assert events[-1].response.output_text == whole.output_text
    assert events[-1].response.usage.output_tokens == whole.usage.output_tokens


def test_logprobs(client):
    answer = ask(client, max_output_tokens=2, top_logprobs=2, include=["message.output_text.logprobs"])
    entries = answer.output[0].content[0].logprobs
    assert len(entries) == 2 and all(len(entry.top_logprobs) == 2 for entry in entries)


@pytest.mark.parametrize("options, param", [
    ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ({"background": True}, "background"),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"temperature": -1}, "temperature"),
])
def test_refusals_name_the_parameter(client, options, param):
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="m", input="Hi", **options)
    assert refused.value.param == param


def test_reports(client):
    raw = client.responses.with_raw_response.create(model="m", input="Hi", max_output_tokens=1,
                                                    store=True, user="u")
    assert set(raw.headers["x-vivace-ignored"].split(",")) == {"store", "user"}
    assert set(raw.parse().model_dump()["vivace"]["ignored"]) == {"store", "user"}


class Verdict(BaseModel):
    verdict: str
    points: int


VERDICT = {"type": "object", "additionalProperties": False, "required": ["verdict", "points"],
           "properties": {"verdict": {"enum": ["good", "bad"]},
                          "points": {"type": "integer", "minimum": 0, "maximum": 9}}}
JUDGE = {"type": "function", "name": "judge", "parameters": VERDICT, "strict": True}


def test_parse(client):
    """A string of a schema has no bound: the answer ends where its tokens do, and parses all the same."""
    answer = client.responses.parse(model="m", input="Judge.", text_format=Verdict, max_output_tokens=40)
    assert isinstance(answer.output_parsed, Verdict)


def test_schemas(client):
    answer = ask(client, "Judge.", max_output_tokens=40,
                 text={"format": {"type": "json_schema", "name": "v", "schema": VERDICT, "strict": True}})
    assert json.loads(answer.output_text)["verdict"] in ("good", "bad")
    assert answer.text.format.type == "json_schema"


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "judge"}])
def test_calls(client, choice):
    options = {"tools": [JUDGE], "tool_choice": choice, "max_output_tokens": 60}
    answer = ask(client, "Judge.", **options)
    call = next(item for item in answer.output if item.type == "function_call")
    assert call.name == "judge" and call.call_id and json.loads(call.arguments)["verdict"] in ("good", "bad")
    events = list(ask(client, "Judge.", stream=True, **options))
    done = next(event for event in events if event.type == "response.function_call_arguments.done")
    deltas = "".join(event.delta for event in events if event.type == "response.function_call_arguments.delta"
                     and event.item_id == done.item_id)
    assert deltas == done.arguments == call.arguments
    # The call and its output go back.
    again = client.responses.create(model="m", max_output_tokens=2, input=[
        {"role": "user", "content": "Judge."}, call.model_dump(exclude_none=True),
        {"type": "function_call_output", "call_id": call.call_id, "output": "noted"}])
    assert again.usage.output_tokens > 0
