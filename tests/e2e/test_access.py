"""Who may reach the server, and how: keys, origins, TLS, a Unix socket, sizes of bodies."""

import http.client
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import time

import pytest
import requests

from conftest import BINARY, Server
from test_bad_http import BAD, cases, read_answer

pytestmark = pytest.mark.sanitize

BODY = {"prompt": "x", "max_tokens": 1}
TINY = ("--served-model-name", "m", "--kv-cache-memory-bytes", "4MiB")


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def replace(path, text):
    """As careful programs write: a new file in the old one's place."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text)
    os.replace(fresh, path)


# ---- keys ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(make_server, mini_model, tmp_path_factory):
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text("# team a\nsk-file\n")
    server = make_server(mini_model, *TINY, "--api-key", "sk-one", "--api-key", "sk-two", "--api-key-file", keys,
                         "--admin-api-key", "sk-admin", "--allowed-origins", '["https://app.example"]',
                         "--max-body-bytes", "64KiB")
    server.keys = keys
    return server


def test_everything_but_probes_is_guarded(guarded):
    for path in ("/health", "/live", "/ready", "/"):
        assert requests.get(guarded.base + path, timeout=10).status_code == 200
    for path in ("/openapi.json", "/v1/requests", "/v1/models", "/metrics", "/version", "/nowhere"):
        answer = requests.get(guarded.base + path, timeout=10)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["code"] == "missing_api_key"
        assert answer.json()["error"]["type"] == "invalid_request_error"
    for headers in (bearer("sk-one"), bearer("sk-two"), bearer("sk-file"), {"x-api-key": "sk-two"}, bearer("sk-admin")):
        assert guarded.post("/v1/completions", BODY, headers=headers).status_code == 200
    for headers in ({}, bearer("sk-on"), bearer("sk-onee"), {"x-api-key": "no"}, {"Authorization": "Basic c2stb25l"}):
        assert guarded.post("/v1/completions", BODY, headers=headers).status_code == 401


def test_the_administrators_part(guarded):
    assert guarded.post("/reset_prefix_cache", {}).status_code == 401
    refused = guarded.post("/reset_prefix_cache", {}, headers=bearer("sk-one"))
    assert refused.status_code == 403 and refused.json()["error"]["code"] == "insufficient_permissions"
    assert guarded.post("/reset_prefix_cache", {}, headers=bearer("sk-admin")).status_code == 200


def test_refused_before_the_body_is_read(guarded):
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=10) as s:
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n")
        assert read_answer(s) == (401, True)


def test_keys_are_read_again(guarded):
    def status(key):
        return guarded.post("/tokenize", {"prompt": "x"}, headers=bearer(key)).status_code

    assert status("sk-next") == 401
    replace(guarded.keys, "sk-next\n")
    until(lambda: status("sk-next") == 200)
    assert status("sk-file") == 401
    replace(guarded.keys, "two words\n")  # of no use: what was there stays
    guarded.process.send_signal(signal.SIGHUP)
    until(lambda: any("stay as they were" in line for line in guarded.log))
    assert status("sk-next") == 200
    replace(guarded.keys, "sk-file\n")
    guarded.process.send_signal(signal.SIGHUP)
    until(lambda: status("sk-file") == 200)
    assert not any("sk-" in line for line in guarded.log), "a key in the log"


def test_origins(guarded):
    origin = {"Origin": "https://app.example"}
    preflight = requests.options(guarded.base + "/v1/chat/completions", timeout=10, headers={
        **origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"})
    assert preflight.status_code == 204 and preflight.headers["access-control-allow-origin"] == "https://app.example"
    assert preflight.headers["access-control-allow-headers"] == "authorization"
    other = requests.options(guarded.base + "/v1/chat/completions", timeout=10, headers={
        "Origin": "https://other.example", "Access-Control-Request-Method": "POST"})
    assert other.status_code == 403 and "access-control-allow-origin" not in other.headers
    for key, body, status in (("sk-one", BODY, 200), ("sk-one", {"prompt": 5}, 400), ("no", BODY, 401)):
        answer = guarded.post("/v1/completions", body, headers=origin | bearer(key))
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert "Origin" in answer.headers["vary"]
    streamed = guarded.post("/v1/completions", BODY | {"stream": True}, headers=origin | bearer("sk-one"))
    assert streamed.headers["access-control-allow-origin"] == "https://app.example"


def test_no_origin_is_allowed_by_default(mini):
    answer = requests.get(mini.base + "/v1/models", headers={"Origin": "https://app.example"}, timeout=10)
    assert answer.status_code == 200 and "access-control-allow-origin" not in answer.headers


def test_size_of_bodies(guarded):
    def post(size):
        body = json.dumps({"prompt": "x", "max_tokens": 1}).encode().ljust(size)
        return requests.post(guarded.base + "/v1/completions", data=body, timeout=30,
                             headers=bearer("sk-one") | {"Content-Type": "application/json"})

    assert post(65536).status_code == 200
    refused = post(65537)
    assert refused.status_code == 413
    message = refused.json()["error"]["message"]
    assert "65536 bytes" in message and "--max-body-bytes" in message


def test_refusals_carry_a_request_id_and_are_logged_with_it(guarded):
    """Whatever refuses: the rules of HTTP, keys, routes."""
    def headers_of(head, **fields):
        lines = [head, "Host: a", *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items())]
        with socket.create_connection(("127.0.0.1", guarded.port), timeout=10) as s:
            s.sendall("\r\n".join([*lines, "", ""]).encode())
            answer = http.client.HTTPResponse(s)
            answer.begin()
            return answer.status, answer.headers

    def logged(request_id):
        return any("request refused" in line and f"id={request_id} " in line for line in guarded.log)

    post = "POST /v1/completions HTTP/1.1"
    key = {"Authorization": "Bearer sk-one"}
    refused = [(413, post, {"Content_Length": 100_000}), (400, post, {"Content_Length": "x"}),
               (414, f"GET /{'x' * 9000} HTTP/1.1", {}), (431, post, {"X": "x" * 17_000}),
               (501, post, {"Transfer_Encoding": "gzip"}), (401, post, {"Content_Length": 2}),
               (404, "GET /nowhere HTTP/1.1", key), (405, "GET /v1/completions HTTP/1.1", key),
               (415, post, key | {"Content_Length": 2, "Content_Type": "text/plain"})]
    for i, (wanted, head, fields) in enumerate(refused):
        status, headers = headers_of(head, X_Request_Id=f"mine-{i}", **fields)
        assert status == wanted
        if status != 414:  # which may be said before the field has come
            assert headers["x-request-id"] == f"mine-{i}", (wanted, str(headers))
        until(lambda: logged(headers["x-request-id"]))
        own = headers_of(head, **fields)[1]["x-request-id"]
        assert own.startswith("req-")
        until(lambda: logged(own))


def test_an_allowed_preflight_is_no_refusal(guarded):
    before = len(guarded.log)
    preflight = requests.options(guarded.base + "/v1/chat/completions", timeout=10, headers={
        "Origin": "https://app.example", "Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 204
    until(lambda: any("status=204" in line for line in guarded.log[before:]))
    assert not any("refused" in line and "status=204" in line for line in guarded.log)


# ---- TLS -------------------------------------------------------------------------------------------------------


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, timeout=60, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificate(folder, name, authority=None):
    """NAME.crt and NAME.key, of an authority or signed by one, good for localhost."""
    crt, key, request, extra = (folder / f"{name}.{end}" for end in ("crt", "key", "csr", "ext"))
    if authority is None:
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-keyout", key, "-out", crt)
        return crt
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
            "-keyout", key, "-out", request)
    extra.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority.with_suffix(".key"),
            "-days", "2", "-extfile", extra, "-out", crt)
    return crt


class TlsServer(Server):
    def __init__(self, model, authority, *flags):
        self.context = ssl.create_default_context(cafile=str(authority))
        super().__init__(model, *flags)

    def _wait_ready(self):
        until(lambda: self.process.poll() is not None or any("is ready on https://" in line for line in self.log), 120)
        assert self.process.poll() is None, "".join(self.log)

    def connect(self, context=None):
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=15)
        return (context or self.context).wrap_socket(raw, server_hostname="localhost")

    def ask(self, method="GET", path="/health", body=None, context=None):
        connection = http.client.HTTPSConnection("localhost", self.port, timeout=30, context=context or self.context)
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"), "authority")


@pytest.fixture(scope="module")
def secure(mini_model, authority):
    crt = make_certificate(authority.parent, "server", authority)
    server = TlsServer(mini_model, authority, *TINY, "--ssl-certfile", crt, "--ssl-keyfile", crt.with_suffix(".key"),
                       "--ssl-ca-certs", authority, "--ssl-cert-reqs", "1", "--enable-ssl-refresh")
    server.crt = crt
    yield server
    assert server.stop() == 0, "".join(server.log[-20:])


def test_tls(secure):
    assert secure.ask()[0] == 200
    status, text = secure.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 40, "stream": True})
    assert status == 200 and text.endswith(b"data: [DONE]\n\n")
    plain = requests.get(f"http://127.0.0.1:{secure.port}/health", timeout=10)
    assert plain.status_code == 400 and plain.json()["error"]["code"] == "tls_required"
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.warns(DeprecationWarning):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError):
        secure.connect(old)


@pytest.mark.parametrize("case", cases("http"), ids=lambda c: c["name"])
def test_bad_http_over_tls(secure, case):
    payload = (BAD / case["name"]).read_bytes()
    with secure.connect() as s:
        try:
            s.sendall(payload)
            if case["name"] == "http/body_cut.http":
                s.unwrap()
        except OSError:
            pass
        if case["name"] != "http/body_cut.http":
            status, closed = read_answer(s)
            assert status in case["status"], status
            assert closed or not case["must_close"]
    assert secure.ask()[0] == 200


def test_garbage_and_silence_on_the_tls_port(secure):
    silent = [socket.create_connection(("127.0.0.1", secure.port), timeout=10) for _ in range(20)]
    for payload in (b"\x16" * 4096, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(600), os.urandom(4096)):
        with socket.create_connection(("127.0.0.1", secure.port), timeout=10) as s:
            s.sendall(payload)
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):
                pass
    assert secure.ask()[0] == 200
    for s in silent:
        s.close()


def test_clients_certificates(secure, authority):
    def context(name, signer):
        crt = make_certificate(authority.parent, name, signer)
        made = ssl.create_default_context(cafile=str(authority))
        made.load_cert_chain(crt, crt.with_suffix(".key"))
        return made

    assert secure.ask(context=context("friend", authority))[0] == 200
    stranger = context("stranger", make_certificate(authority.parent, "other"))
    with pytest.raises((OSError, http.client.HTTPException)):
        secure.ask(context=stranger)


def test_a_renewed_certificate_is_taken_up(secure, authority):
    def serial():
        with secure.connect() as s:
            return s.getpeercert()["serialNumber"]

    before = serial()
    with secure.connect() as held:
        renewed = make_certificate(authority.parent, "renewed", authority)
        for end in (".key", ".crt"):  # one after the other, as tools do
            os.replace(renewed.with_suffix(end), secure.crt.with_suffix(end))
        until(lambda: serial() != before)
        held.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")  # goes on with what it had
        assert held.recv(4096).startswith(b"HTTP/1.1 200 ")


# ---- a Unix socket ---------------------------------------------------------------------------------------------


class UnixServer(Server):
    def __init__(self, model, path, *flags):
        self.path = path
        super().__init__(model, "--uds", path, *flags)

    def _wait_ready(self):
        until(lambda: self.process.poll() is not None or any("is ready on" in line for line in self.log), 120)
        assert self.process.poll() is None, "".join(self.log)

    def ask(self, path="/health"):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(15)
            s.connect(str(self.path))
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            answer = http.client.HTTPResponse(s)
            answer.begin()
            return answer.status


def test_unix_socket(mini_model, tmp_path):
    path = tmp_path / "vivace.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    server = UnixServer(mini_model, path, *TINY)
    try:
        assert server.ask() == 200 and server.ask("/v1/models") == 200
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", server.port), timeout=5)
    finally:
        assert server.stop() == 0
    assert not path.exists()


# ---- flags that cannot be used ---------------------------------------------------------------------------------


@pytest.mark.parametrize("flags, word", [
    (("--api-key", "two words"), "--api-key"),
    (("--api-key-file", "/nonexistent"), "--api-key-file"),
    (("--allowed-origins", "app.example"), "--allowed-origins"),
    (("--allowed-origins", "[1]"), "--allowed-origins"),
    (("--ssl-keyfile", "/nonexistent"), "--ssl-certfile"),
    (("--ssl-certfile", "/dev/zero"), "--ssl-certfile"),
    (("--ssl-cert-reqs", "3"), "--ssl-cert-reqs"),
    (("--max-body-bytes", "1GiB"), "--max-body-bytes"),
    (("--uds", "/nonexistent/folder/socket"), "--uds"),
], ids=lambda v: v if isinstance(v, str) else v[0])
def test_refused(mini_model, flags, word):
    done = subprocess.run([BINARY, "serve", mini_model, "--weight-cache", "off", *flags], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.returncode in (1, 2) and word in done.stderr and "two words" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("vivace: "), done.stderr


@pytest.mark.parametrize("variable", ["VIVACE_API_KEY", "VLLM_API_KEY"])
def test_a_key_of_the_environment(mini_model, monkeypatch, variable):
    monkeypatch.setenv(variable, "sk-env")
    server = Server(mini_model, *TINY)
    try:
        assert server.post("/tokenize", {"prompt": "x"}).status_code == 401
        assert server.post("/tokenize", {"prompt": "x"}, headers=bearer("sk-env")).status_code == 200
    finally:
        assert server.stop() == 0
