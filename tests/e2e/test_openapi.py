"""schemathesis against a live server: what /openapi.json says is what the server does."""

import pathlib
import subprocess
import sys

import pytest
import requests

SCHEMATHESIS = pathlib.Path(sys.executable).parent / "schemathesis"

# Bodies are described coarsely, so that not all that the document allows is accepted; and members without a row are reported,
# not refused. What is left: no 5xx, only statuses, types and shapes that the document names.
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


# Other names of the same routes are not tried again.
ALIASES = "^/(chat/|completions|responses|embeddings|rerank|score|models|v2/)"


MESSAGES = [{"role": "user", "content": "Hi"}]
LEAST = {"messages": MESSAGES, "prompt": "x", "input": "x", "query": "x", "documents": ["y"], "text_1": "x", "text_2": ["y"],
         "tokens": [1], "max_tokens": 1}


def shape(answer):
    """Which members an answer has, at every depth."""
    if isinstance(answer, dict):
        return {name: shape(value) for name, value in answer.items()}
    return [shape(item) for item in answer] if isinstance(answer, list) else None


def test_null_means_absent(mini):
    """Every member but those that a request needs, under every name, in every path."""
    document = requests.get(mini.base + "/openapi.json", timeout=10).json()
    walked = 0
    for path, operations in document["paths"].items():
        if "requestBody" not in operations.get("post", {}):
            continue
        name = operations["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        schema = document["components"]["schemas"][name]
        needs = set(schema["required"]) or {"prompt"}
        least = {member: LEAST[member] for member in needs}
        nulls = {member: None for member in schema["properties"] if member not in needs}
        if "max_tokens" in nulls or "max_output_tokens" in nulls:
            # The longest answer there is: one token, of those that end it at once.
            nulls = {member: None for member in nulls if member not in ("max_tokens", "max_output_tokens", "n")}
            least |= {"max_output_tokens" if "max_output_tokens" in schema["properties"] else "max_tokens": 1}
        if nulls.pop("seed", 1) is None:
            least["seed"] = 1  # the same answer twice
        plain, with_nulls = mini.post(path, least), mini.post(path, least | nulls)
        assert plain.status_code == 200, (path, plain.text)
        assert with_nulls.status_code == 200, (path, with_nulls.text)
        assert shape(with_nulls.json()) == shape(plain.json()), path
        reports = [{header: value for header, value in answer.headers.items() if header.startswith("x-vivace-")}
                   for answer in (plain, with_nulls)]
        assert reports[0] == reports[1], path
        for member in needs:
            refused = mini.post(path, least | {member: None})
            assert refused.status_code == 400, (path, member)
            error = refused.json()["error"]
            assert f"`{member}` is required" in error["message"], (path, error)
        walked += len(nulls)
    assert walked > 300


@pytest.mark.slow
def test_the_server_keeps_to_its_description(mini, tmp_path):
    command = [SCHEMATHESIS, "run", mini.base + "/openapi.json", "--checks", CHECKS, "--phases", "fuzzing", "--max-examples", "12",
               "--generation-deterministic", "--exclude-path-regex", ALIASES, "--request-timeout", "20",
               "--suppress-health-check", "all", "--no-color"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr[-2000:]
    assert requests.get(mini.base + "/health", timeout=10).status_code == 200
    mini.wait_idle()
