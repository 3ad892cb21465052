"""Programs people use, unchanged but for the address: openai with pydantic, LiteLLM, LangChain."""

import json
from typing import Literal

import pytest
from pydantic import BaseModel, Field

ASK = [{"role": "user", "content": "Say hello to the weather in Bern."}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather at a place.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Bern", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
FORCED = {"type": "function", "function": {"name": "weather"}}


class Trip(BaseModel):
    city: Literal["Bern", "Rome"]
    days: int = Field(ge=1, le=9)


def check_call(name, arguments):
    assert name == "weather"
    assert json.loads(arguments)["city"] in ("Bern", "Rome") and 1 <= json.loads(arguments)["days"] <= 9


def test_openai_parses_into_a_model(smol):
    client = smol.client()
    chat = client.chat.completions.parse(model="m", messages=ASK, response_format=Trip, max_tokens=60, temperature=0)
    assert isinstance(chat.choices[0].message.parsed, Trip)
    answer = client.responses.parse(model="m", input="A trip.", text_format=Trip, max_output_tokens=60, temperature=0)
    assert isinstance(answer.output_parsed, Trip)


def test_openai_calls_a_function(smol):
    client = smol.client()
    options = {"model": "m", "messages": ASK, "tools": [WEATHER], "tool_choice": FORCED, "temperature": 0, "max_tokens": 80}
    whole = client.chat.completions.create(**options).choices[0].message.tool_calls[0].function
    check_call(whole.name, whole.arguments)
    with client.chat.completions.stream(**options) as stream:
        final = stream.get_final_completion().choices[0].message.tool_calls[0].function
    assert (final.name, final.arguments) == (whole.name, whole.arguments)


@pytest.fixture(scope="module")
def litellm():
    module = pytest.importorskip("litellm")
    module.suppress_debug_info = True
    module.telemetry = False
    return module


def test_litellm(litellm, smol):
    options = {"model": "openai/m", "api_base": smol.base + "/v1", "api_key": "none", "temperature": 0, "max_tokens": 8,
               "messages": ASK}
    whole = litellm.completion(**options)
    text = whole.choices[0].message.content
    assert text and whole.usage.completion_tokens == 8
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in litellm.completion(stream=True, **options))
    assert streamed == text
    call = litellm.completion(**options | {"max_tokens": 80}, tools=[WEATHER], tool_choice=FORCED)
    check_call(call.choices[0].message.tool_calls[0].function.name, call.choices[0].message.tool_calls[0].function.arguments)
    vectors = litellm.embedding(model="openai/m", api_base=smol.base + "/v1", api_key="none", input=["one", "two"])
    assert [len(item["embedding"]) for item in vectors.data] == [576, 576]


def test_litellm_speaks_to_messages(litellm, smol):
    answer = litellm.completion(model="anthropic/m", api_base=smol.base, api_key="none", temperature=0, max_tokens=8,
                                messages=ASK)
    assert answer.choices[0].message.content


def test_langchain(smol):
    langchain = pytest.importorskip("langchain_openai")
    model = langchain.ChatOpenAI(model="m", base_url=smol.base + "/v1", api_key="none", temperature=0, max_tokens=60,
                                 max_retries=0)
    text = model.invoke("Hi").content
    assert text
    assert "".join(chunk.content for chunk in model.stream("Hi")) == text
    assert isinstance(model.with_structured_output(Trip, method="json_schema").invoke("A trip."), Trip)
    called = model.bind_tools([WEATHER], tool_choice="weather").invoke("A trip.")
    assert called.tool_calls[0]["name"] == "weather" and called.tool_calls[0]["args"]["city"] in ("Bern", "Rome")
    # It sends prompts as token ids of OpenAI's own tokenizers unless told not to.
    vectors = langchain.OpenAIEmbeddings(model="m", base_url=smol.base + "/v1", api_key="none", max_retries=0,
                                         check_embedding_ctx_length=False)
    assert len(vectors.embed_query("one")) == 576
