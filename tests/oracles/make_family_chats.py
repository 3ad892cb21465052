#!/usr/bin/env python3
"""Writes src/text/jinja/testdata/family_chats.json: conversations, and what jinja2 makes of them by each template
of testdata/families.

    python3 tests/oracles/make_family_chats.py

The templates are ours, each in the manner of a family of models: the same constructs, none of its words. A null
text is one that jinja2 refuses; so must we. Contents are as the server hands them on: parts go only to templates
that walk over them, so a conversation with parts is rendered by those alone ("parts").
"""
import json
import pathlib

from jinja_oracle import render

DATA = pathlib.Path(__file__).resolve().parents[2] / "src/text/jinja/testdata"
TOKENS = {"bos_token": "<bos>", "eos_token": "<eos>"}


def message(role, content, **more):
    return {"role": role, "content": content, **more}


def tool(name, properties, description="Does \"it\" & <more>: grüß 日本", **more):
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {
        "type": "object", "properties": properties, "required": list(properties)[:1]}, **more}}


def call(name, arguments, number=1):
    return {"id": f"call{number:05d}", "type": "function", "function": {"name": name, "arguments": arguments}}


TOOLS = [
    tool("get_weather", {
        "city": {"type": "string", "description": "Where"},
        "days": {"type": "integer", "minimum": 1, "default": 3},
        "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
        "tags": {"type": "array", "items": {"type": "string"}, "nullable": True},
        "grid": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        "place": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": ["string", "null"]}},
                  "required": ["x"]},
        "either": {"oneOf": [{"type": "string", "default": "a"}, {"type": "number", "description": "n"}]},
        "flag": {"type": "boolean"}, "free": {}, "$odd-name": {"type": "string", "name": "n", "$id": 1.5}}),
    tool("now", {}, description=" The time. ", strict=True),
]
ARGUMENTS = {"city": "Köln \"<&>\" 日本 😀", "days": 2, "f": 1.0, "e": 1e-7, "t": True, "n": None, "l": [1, "a", {}],
             "d": {"x": {"y": []}}}
ONE_CALL = [message("user", "Weather?"), message("assistant", "", tool_calls=[call("get_weather", ARGUMENTS)]),
            message("tool", "{\"t\": 21}", tool_call_id="call00001", name="get_weather")]
TWO_CALLS = [message("user", "Both?"),
             message("assistant", "I'll see. ", tool_calls=[call("get_weather", {"city": "A"}), call("now", {}, 2)]),
             message("tool", "rain\n", tool_call_id="call00001"), message("tool", "12:00 ü", tool_call_id="call00002"),
             message("assistant", "It rains."), message("user", "Thanks 👋")]
DOCUMENTS = [{"title": "One", "text": "First \"text\""}, {"title": "Zwei", "text": "Grüße\n日本"}]

CHATS = [
    ("user", [message("user", "Hi")], {}),
    ("system", [message("system", "  You are terse. \n"), message("user", "Hi")], {}),
    ("system_only", [message("system", "Alone.")], {}),
    ("system_twice", [message("system", "A"), message("user", "b"), message("system", "C"), message("user", "d")], {}),
    ("developer", [message("developer", "Be kind."), message("user", "Hi")], {}),
    ("turns", [message("user", " Hi\n"), message("assistant", "\nHello! "), message("user", "Bye 👋"),
               message("assistant", "Tschüß"), message("user", "?")], {}),
    ("closed", [message("user", "Hi"), message("assistant", "Hello")], {"add_generation_prompt": False}),
    ("users_twice", [message("user", "a"), message("user", "b")], {}),
    ("assistant_first", [message("assistant", "a"), message("user", "b")], {}),
    ("unicode", [message("user", "e\u0301 ﷺ \u200b\u00a0 İi ß ﬁ \U0001f469\u200d\U0001f4bb \x00\x1b\x7f\u2028 \ufeff")],
     {}),
    ("blanks", [message("user", "\t\n "), message("assistant", " \n"), message("user", "\u00a0x\u3000")], {}),
    ("control_text", [message("user", "{{ 1 }}{% x %}<|im_end|></think>[/ASK]<done>\r\n")], {}),
    ("empty", [message("user", "")], {}),
    ("none", [], {}),
    ("null_user", [message("user", None)], {}),
    ("null_assistant", [message("user", "a"), message("assistant", None), message("user", "b")], {}),
    ("no_content", [message("user", "a"), {"role": "assistant", "reasoning_content": "r"}, message("user", "b")], {}),
    ("null_call", [message("user", "a"), message("assistant", None, tool_calls=[call("now", {})]),
                   message("tool", "1", tool_call_id="call00001")], {}),
    ("tools", [message("system", "S"), message("user", "Weather?")], {"tools": TOOLS}),
    ("tools_no_system", [message("user", "Weather?")], {"tools": TOOLS}),
    ("no_tools", [message("user", "Weather?")], {"tools": []}),
    ("bare_tool", [message("user", "x")], {"tools": [{"type": "function", "function": {"name": "bare"}}]}),
    ("tool_call", ONE_CALL, {"tools": TOOLS}),
    ("tool_call_system", [message("system", "S"), *ONE_CALL], {"tools": TOOLS}),
    ("tool_calls", TWO_CALLS, {"tools": TOOLS}),
    ("calls_without_tools", TWO_CALLS, {}),
    ("text_arguments", [message("user", "a"), message("assistant", "", tool_calls=[call("now", "{\"a\": 1}")]),
                        message("tool", "ok", tool_call_id="call00001")], {"tools": TOOLS}),
    ("tools_in_system", [message("user", "Hi")], {"tools": TOOLS, "first_user_holds_tools": False}),
    ("builtin_tools", [message("user", "a"), message("assistant", "", tool_calls=[call("search", {"q": "x", "r": "y"})]),
                       message("tool", "z", tool_call_id="call00001")], {"builtin_tools": ["search", "code_interpreter"]}),
    ("date", [message("user", "Hi")], {"date_string": "01 Jan 2000"}),
    ("reasoning", [message("user", "1+1?"), message("assistant", "2", reasoning_content="\nadd\n"),
                   message("user", "2+2?"), message("assistant", "4", reasoning_content="again", thinking="t")],
     {"add_generation_prompt": False}),
    ("reasoning_in_text", [message("user", "1+1?"), message("assistant", "<think>\nadd\n</think>\n\n2"),
                           message("user", "2+2?")], {}),
    ("reasoning_last", [message("user", "1+1?"), message("assistant", "<think>add</think>\n2")],
     {"add_generation_prompt": False, "hide_thoughts": False}),
    ("reasoning_and_tools", [message("user", "a"), message("assistant", "", reasoning_content="look", thinking="look",
                                                           tool_calls=[call("now", {})]),
                             message("tool", "12", tool_call_id="call00001")], {"tools": TOOLS}),
    ("thinking_off", [message("user", "Hi")], {"enable_thinking": False}),
    ("thinking_on", [message("system", "/think hard"), message("user", "Hi")], {"enable_thinking": True}),
    ("no_think_word", [message("system", "x /no_think "), message("user", "Hi"), message("assistant", "\nHo")], {}),
    ("system_override", [message("system", "Just this /system_override"), message("user", "Hi")], {}),
    ("effort", [message("user", "Hi")], {"reasoning_effort": "high", "identity": "You are X.", "thinking": True}),
    ("documents", [message("user", "Which?"), message("assistant", "That."), message("user", "Why?")],
     {"documents": DOCUMENTS}),
    ("documents_and_tools", [message("user", "Which?")],
     {"documents": DOCUMENTS, "tools": TOOLS, "controls": {"citations": True, "length": "long"},
      "cite": {"mode": "fast"}}),
    ("bad_call_id", [message("user", "a"), message("assistant", "", tool_calls=[{**call("now", {}), "id": "x"}])], {}),
    ("channel_text", [message("user", "a"), message("assistant", "<|channel|>final<|message|>b"), message("user", "c")],
     {}),
    ("metadata", [message("user", "a"), message("assistant", "b", metadata="tool"), message("observation", "c")], {}),
    ("parts", [message("system", [{"type": "text", "text": "S "}]),
               message("user", [{"type": "text", "text": " A "}, {"type": "text", "text": "B"}])], {}),
    ("empty_parts", [message("user", [])], {}),
]
WALK_PARTS = ("gemma", "qwen3_thinking")


def main():
    templates = {p.stem: p.read_text() for p in sorted((DATA / "families").glob("*.jinja"))}
    chats, refused = [], 0
    for name, messages, options in CHATS:
        text = {}
        for family, template in templates.items():
            if any(isinstance(m.get("content"), list) for m in messages) and family not in WALK_PARTS:
                continue
            text[family] = render(template, {"messages": messages, "tools": None, "documents": None,
                                             "add_generation_prompt": True, **TOKENS, **options})
            refused += text[family] is None
        extra = {k: v for k, v in options.items() if k not in ("tools", "documents", "add_generation_prompt")}
        chats.append({"name": name, "messages": messages, "tools": options.get("tools"),
                      "documents": options.get("documents"),
                      "add_generation_prompt": options.get("add_generation_prompt", True), "extra": extra, "text": text})
    (DATA / "family_chats.json").write_text(
        json.dumps({"families": list(templates), "chats": chats}, ensure_ascii=True, indent=1) + "\n")
    print(len(chats), "conversations,", len(templates), "templates,", refused, "refusals")


if __name__ == "__main__":
    main()
