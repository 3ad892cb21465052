"""What `vivace bench` and `vivace tune` make of datasets: lengths beside a chat template, messages, one flag for names
and files."""

import http.server
import json
import subprocess
import threading

import pytest

from conftest import BINARY, MODEL


def run(*args, timeout=120):
    return subprocess.run([BINARY, *map(str, args)], capture_output=True, text=True, timeout=timeout)


def detailed(tmp_path, *args):
    """What `bench serve` saved of a run, and what it told. A client that a busy machine slowed down is exit code 1."""
    report = tmp_path / "run.json"
    done = run("bench", "serve", *args, "--output-json", report)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(report.read_text()), done.stderr


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def plain_model(mini_model, tmp_path_factory):
    """Without a chat template."""
    path = tmp_path_factory.mktemp("model") / "plain.gguf"
    key = b"tokenizer.chat_template"
    content = mini_model.read_bytes()
    assert content.count(key) == 1
    path.write_bytes(content.replace(key, b"x" * len(key)))
    return path


CHAT = ("--endpoint", "/v1/chat/completions", "--apply-chat-template", "--num-prompts", 2)


@pytest.mark.parametrize("by", ["tokenizer", "server"])
def test_prompts_are_of_their_length_with_the_chat_template(smol, tmp_path, by):
    flags = ("--tokenizer", MODEL) if by == "tokenizer" else ()
    saved, told = detailed(tmp_path, "--base-url", smol.base, *CHAT, "--random-input-len", 64, "--random-output-len", 2,
                           *flags)
    assert saved["input_lens"] == [64, 64]  # as the server counted them
    assert "without the chat template" not in told


def test_a_tokenizer_without_a_template_is_noted(mini, plain_model, tmp_path):
    _, told = detailed(tmp_path, "--base-url", mini.base, *CHAT, "--random-input-len", 8, "--random-output-len", 2,
                       "--tokenizer", plain_model)
    assert "note: lengths of prompts are without the chat template" in told


def test_answers_have_no_chat_template_around_them(mini, tmp_path):
    path = tmp_path / "chats.json"
    answer = "The sun is a star at the centre of our system of planets."
    path.write_text(json.dumps([{"conversations": [{"from": "human", "value": "What is the sun, and where is it?"},
                                                   {"from": "gpt", "value": answer}]}]))
    plain = mini.post("/tokenize", {"model": "m", "prompt": answer, "add_special_tokens": False}).json()
    for flags in (CHAT, ("--num-prompts", 2)):
        saved, _ = detailed(tmp_path, "--base-url", mini.base, "--dataset", path, "--ignore-eos", *flags)
        assert saved["output_lens"] == [plain["count"]]


class WithoutUsage(http.server.BaseHTTPRequestHandler):
    """Streams two chunks, and has no /tokenize."""

    def do_GET(self):
        self.send_error(404)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.endswith("/completions"):
            return self.send_error(404)
        chunk = "data: " + json.dumps({"choices": [{"index": 0, "text": "a", "finish_reason": None}]}) + "\n\n"
        body = (chunk * 2 + "data: [DONE]\n\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_server_that_counts_nothing_has_the_lengths_that_were_asked_for(tmp_path):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), WithoutUsage) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            saved, _ = detailed(tmp_path, "--base-url", f"http://127.0.0.1:{server.server_port}", "--model", "m",
                                "--num-prompts", 3, "--random-input-len", 10, "--random-output-len", 2)
        finally:
            server.shutdown()
            thread.join()
    assert saved["input_lens"] == [10, 10, 10]
    assert saved["total_input_tokens"] == 30


OFFLINE = ("--weight-cache", "off", "--num-kv-blocks", 256)


def test_messages_are_rendered_in_process(mini_model, tmp_path):
    asked = [{"messages": [{"role": "user", "content": "Hello there" + "!" * i}], "output_len": 3} for i in range(4)]
    path = lines(tmp_path / "asked.jsonl", asked)
    result = tmp_path / "r.json"
    done = run("bench", "throughput", mini_model, "--dataset", path, "--no-limits", "--output-json", result, *OFFLINE)
    assert done.returncode == 0, done.stderr
    of_messages = json.loads(result.read_text())
    assert of_messages["num_requests"] == 4 and of_messages["output_tokens"] == 12
    texts = lines(tmp_path / "texts.jsonl", [{"prompt": row["messages"][0]["content"]} for row in asked])
    done = run("bench", "throughput", mini_model, "--dataset", texts, "--output-len", 3, "--no-limits", "--output-json",
               result, *OFFLINE)
    assert done.returncode == 0, done.stderr
    assert of_messages["prompt_tokens"] > json.loads(result.read_text())["prompt_tokens"] + 4 * 5  # the template's

    out = tmp_path / "tuned"
    done = run("tune", mini_model, "--dataset", path, "--max-num-seqs", "2,4", "--max-num-batched-tokens", 256,
               "--max-itl", 0, "--threads", 1, "--budget", "20s", "--out", out, *OFFLINE)
    assert done.returncode == 0, done.stderr
    tuned = json.loads((out / "pareto.json").read_text())
    assert tuned["candidates"][0]["measured"]["input_tokens"] == of_messages["prompt_tokens"]
    few = "fewer than 100 requests completed: a p99 is about the slowest of them"
    provenance = json.loads((out / "vivace.json").read_text())["provenance"]
    assert few in done.stdout and any(few in note for note in provenance["notes"])


def test_messages_need_a_template(plain_model, tmp_path):
    path = lines(tmp_path / "asked.jsonl", [{"messages": [{"role": "user", "content": "Hello"}]}])
    for command in (("bench", "throughput", plain_model), ("tune", plain_model, "--out", tmp_path / "out")):
        done = run(*command, "--dataset", path, *OFFLINE)
        assert done.returncode == 1 and "the model brings no chat template" in done.stderr


def test_one_flag_takes_a_name_or_a_file(mini_model, tmp_path):
    path = lines(tmp_path / "trace.jsonl", [{"timestamp": 0, "input_length": 40, "output_length": 5}] * 2)
    common = ("--no-limits", "--output-json", tmp_path / "r.json", *OFFLINE)
    made = ("--num-prompts", 2, "--input-len", 12, "--output-len", 2)
    for words, tokens in [(("--dataset", path), 80), (("--dataset", "trace", "--dataset-path", path), 80),
                          (("--dataset", "random-words", *made), 24)]:
        done = run("bench", "throughput", mini_model, *words, *common)
        assert done.returncode == 0, done.stderr
        assert json.loads((tmp_path / "r.json").read_text())["prompt_tokens"] == tokens
    for command in (("tune", mini_model, "--out", tmp_path / "x"), ("bench", "throughput", mini_model),
                    ("bench", "serve")):
        done = run(*command, "--dataset", path, "--input-len", 5)
        assert done.returncode == 2 and "--random-input-len is for prompts that are made here" in done.stderr
        done = run(*command, "--dataset", tmp_path / "absent")
        assert done.returncode == 2
        assert f"--dataset is '{tmp_path / 'absent'}'; give the path of a file, or one of random" in done.stderr
