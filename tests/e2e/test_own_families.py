"""Families that have no model in ../shared: small ones made here answer as a forward pass in numpy does."""

import shutil
import sys

import pytest

from conftest import ROOT
from test_families import check_answers

sys.path.insert(0, str(ROOT / "tests/oracles"))
import hf_to_gguf  # noqa: E402
import stablelm  # noqa: E402


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
    check_answers(model, folder)
