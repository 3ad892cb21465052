"""Of the measuring parts that can be wrong without anyone noticing: the load client's counting, the ratios."""

import json
import pathlib
import socketserver
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import load_client  # noqa: E402
import report  # noqa: E402
from cases import ALL, ServedCase, kernel_cases, served_cases  # noqa: E402
from results import Results  # noqa: E402

GAP_S = 0.1


class Scripted(socketserver.BaseRequestHandler):
    """Answers each request with four events GAP_S apart; every other send cuts an event in two."""

    def handle(self):
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.request.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self.request.recv(65536)
        request = json.loads(body)
        assert request["ignore_eos"] and request["stream"] and request["temperature"] == 0
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        count = request["max_tokens"] - (self.server.missing if self.server.missing else 0)
        for i in range(4):
            time.sleep(GAP_S)
            event = b'data: {"choices":[{"text":"x"}]}\n\n'
            self.request.sendall(event[:3 + i])
            self.request.sendall(event[3 + i:])
        self.request.sendall(b'data: {"choices":[],"usage":{"completion_tokens":%d}}\n\ndata: [DONE]\n\n' % count)


@pytest.fixture
def server():
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Scripted) as scripted:
        scripted.daemon_threads = True
        scripted.missing = 0
        threading.Thread(target=scripted.serve_forever, daemon=True).start()
        yield scripted
        scripted.shutdown()


def url(server):
    return "http://127.0.0.1:%d" % server.server_address[1]


def test_times_run_from_the_request_to_the_first_and_last_event(server):
    figures = load_client.drive(url(server), "m", [[1, 2]] * 6, 4, 3)
    assert figures["requests"] == 6
    # Two turns of three at once, 4 gaps each. On a busy machine all of it takes longer, so nothing is bounded by a
    # time from above; but a client's two requests do not overlap.
    assert figures["ttft_ms_mean"] > 0.9 * GAP_S * 1e3
    assert figures["tpot_ms_mean"] > 0.9 * GAP_S * 1e3
    assert figures["seconds"] > 8 * GAP_S * 0.95
    assert figures["ttft_ms_mean"] + 3 * figures["tpot_ms_mean"] <= figures["seconds"] / 2 * 1e3
    assert figures["output_tok_s"] == pytest.approx(24 / figures["seconds"])
    assert 0 < figures["client_cpu"] < 0.5


def test_a_server_that_sends_other_than_asked_is_no_figure(server):
    server.missing = 1
    with pytest.raises(load_client.Broken, match="3 tokens instead of 4"):
        load_client.drive(url(server), "m", [[1]], 4, 1)


def test_percentiles_lie_on_the_line_between_two_values():
    assert load_client.percentile([4, 1, 3, 2], 0.5) == 2.5
    assert load_client.percentile([1], 0.9) == 1
    assert load_client.percentile(range(11), 0.9) == 9


def test_cases_are_those_of_the_table_and_their_prompts_never_repeat():
    assert sum(len(c.prompts) + len(c.batches) for c in kernel_cases(ALL)) == 4 + 7 * 3
    assert len(served_cases(ALL)) == 12
    case = ServedCase(104, 64, 8)
    assert len(case.prompts(0)) == 16 and all(len(p) == 104 for p in case.prompts(0))
    assert case.prompts(0) == case.prompts(0)
    assert not any(p in case.prompts(1) for p in case.prompts(0))


def test_only_what_is_lacking_is_measured_again():
    prompts, decode = kernel_cases(ALL)[:2]
    assert prompts.lacking({"512", "32"}).prompts == (128, 2048)
    assert decode.lacking({"1"}).batches == (2, 4, 8, 16, 32, 64) and decode.lacking({"1"}).context == 128
    assert prompts.lacking({"32", "128", "512", "2048"}) is None
    assert ServedCase(104, 64, 8).lacking({"all"}) is None and ServedCase(104, 64, 8).lacking(set())


def filled(path):
    results = Results(path, "test")
    for number, (own, theirs) in enumerate(((0.5, 2.0), (1.0, 2.0), (0.5, 1.0))):
        results.put("kernel", "prompt", "vivace", "Q4_0", number, metrics={"512": {
            "seconds": own, "fraction_of_limit": 0.4, "binds": "compute", "outside_kernels": 0.01}})
        results.put("kernel", "prompt", "llama.cpp", "Q4_0", number, metrics={"512": {"seconds": theirs}})
    for engine, rate in (("vivace", 600.0), ("openvino", 200.0)):
        metrics = {name: 5.0 for name in report.SERVED} | {"output_tok_s": rate, "client_cpu": 0.01}
        results.put("served", "104/64 c=8", engine, "Q4_0", 0, metrics={"all": metrics})
    return results


def test_ratios_are_of_medians_and_survive_an_interruption(tmp_path):
    filled(tmp_path / "r.json")
    results = Results(tmp_path / "r.json", "again")
    assert results.items("kernel", "prompt", "vivace", "Q4_0", 2) == {"512"}
    assert not results.items("kernel", "prompt", "vivace", "Q4_0", 3)
    (row,) = report.kernel_rows(results)
    assert row["vivace_tok_s"] == 1024 and row["peer_tok_s"] == 256 and row["ratio"] == 4
    ours, theirs = report.served_rows(results)
    assert ours["engine"] == "vivace" and "ratio" not in ours and theirs["ratio"] == 3
    results.drop("vivace")
    assert not results.items("kernel", "prompt", "vivace", "Q4_0", 0)
    assert results.items("kernel", "prompt", "llama.cpp", "Q4_0", 0)


def test_reports_say_the_ratio(tmp_path):
    results = filled(tmp_path / "r.json")
    report.write(results, tmp_path)
    assert "| prompt 512 | Q4_0 | 1024 | 256 | 4.00 |" in (tmp_path / "ratios.md").read_text()
    assert "4.0x" in (tmp_path / "ratios.svg").read_text()
    assert json.loads((tmp_path / "ratios.json").read_text())["served"][1]["ratio"] == 3
