"""schemathesis against a live server: what /openapi.json says is what the server does."""

import pathlib
import subprocess
import sys

import pytest
import requests

pytest.importorskip("schemathesis")
SCHEMATHESIS = pathlib.Path(sys.executable).parent / "schemathesis"

# Bodies are described coarsely, so that not all that the document allows is accepted; and members without a row are reported,
# not refused. What is left: no 5xx, only statuses, types and shapes that the document names.
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


# Other names of the same routes are not tried again.
ALIASES = "^/(chat/|completions|responses|embeddings|rerank|score|models|v2/)"


@pytest.mark.slow
def test_the_server_keeps_to_its_description(mini, tmp_path):
    command = [SCHEMATHESIS, "run", mini.base + "/openapi.json", "--checks", CHECKS, "--phases", "fuzzing", "--max-examples", "12",
               "--generation-deterministic", "--exclude-path-regex", ALIASES, "--request-timeout", "20",
               "--suppress-health-check", "all", "--no-color"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr[-2000:]
    assert requests.get(mini.base + "/health", timeout=10).status_code == 200
    mini.wait_idle()
