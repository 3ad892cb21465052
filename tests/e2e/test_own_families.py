"""Families that have no model in ../shared: small ones made here answer as a forward pass in numpy does."""

import json
import shutil
import sys

import pytest

from conftest import ROOT, Server
from test_families import check_case

sys.path.insert(0, str(ROOT / "tests/oracles"))
import hf_to_gguf  # noqa: E402
import stablelm  # noqa: E402


def check(model, folder):
    server = Server(model, "--isa", "reference", "--kv-cache-memory-bytes", "16MiB")
    try:
        for case in json.loads((folder / "reference.json").read_text())["cases"]:
            check_case(server, case)
    finally:
        assert server.stop() == 0


STABLELM = {"1.6b": {"qkv_bias": True}, "3b": {}, "parallel": {"parallel": True}}


@pytest.mark.parametrize("kind", STABLELM)
@pytest.mark.parametrize("form", ["config.json", "config.v4.json", "gguf"])
def test_stablelm(tmp_path, kind, form):
    folder = tmp_path / "stablelm"
    stablelm.write(folder, **STABLELM[kind])
    model = folder
    if form == "gguf":
        model = tmp_path / "stablelm.gguf"
        hf_to_gguf.Converter(folder).write(str(model), "F32")
    elif form != "config.json":
        shutil.copy(folder / form, folder / "config.json")
    check(model, folder)
