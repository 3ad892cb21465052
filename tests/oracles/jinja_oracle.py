"""jinja2 set up as Hugging Face's apply_chat_template sets it up: the reference of src/text/jinja."""
import datetime
import json

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 7, 4, 15, 5, 9)  # what strftime_now tells in all cases


class Generation(jinja2.ext.Extension):
    """{% generation %}: a scope of its own, transparent to the prompt."""
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_support")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(lineno)

    def _support(self, caller):
        return caller()


def _raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def _tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = _tojson
    env.globals["raise_exception"] = _raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


ENV = environment()


def render(template, variables):
    """The rendered text, or None where jinja2 refuses."""
    try:
        text = ENV.from_string(template).render(**variables)
        text.encode()  # lone surrogates are no text
        return text
    except (MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 - whatever the template provokes is a refusal
        return None
