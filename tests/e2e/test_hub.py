"""Models by name: pull, list, rm and what takes a model, against a hub on 127.0.0.1 that also misbehaves."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import mock_hub
from conftest import BINARY, Server
from mock_hub import MockHub, Repo

WEIGHTS = bytes(range(256)) * 20_000  # 5 MB
FOLDER = {
    ".gitattributes": b"x", "README.md": b"# n", "config.json": b'{"model_type": "llama"}',
    "generation_config.json": b"{}", "tokenizer.json": b'{"a": 1}', "tokenizer_config.json": b"{}",
    "chat_template.jinja": b"{{ messages }}", "model.safetensors": WEIGHTS, "onnx/model.onnx": b"no",
    "pytorch_model.bin": b"no",
}
TAKEN = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
         "model.safetensors"}
pytestmark = pytest.mark.sanitize


@pytest.fixture
def hub():
    hub = MockHub()
    hub.repos["org/name"] = Repo(FOLDER, large=["model.safetensors"])
    yield hub
    hub.stop()


@pytest.fixture
def env(hub, tmp_path):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HF_") and not k.lower().endswith("_proxy")}
    return kept | {"HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": hub.url, "HOME": str(tmp_path)}


def run(env, *args, timeout=60, **options):
    return subprocess.run([BINARY, *map(str, args)], env=env, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, **options)


def pull(env, *args, **options):
    result = run(env, "pull", *args, **options)
    assert result.returncode == 0, result.stderr
    return pathlib.Path(result.stdout.strip())


def refuse(env, *args, reason, words=()):
    result = run(env, *args)
    assert result.returncode in (1, 2) and result.stdout == "", result.stdout
    assert f"[{reason}]" in result.stderr, result.stderr
    for word in words:
        assert word in result.stderr, result.stderr
    return result.stderr


def cache_of(env):
    return pathlib.Path(env["HF_HOME"]) / "hub"


def blobs(env, repo="models--org--name"):
    return {p.name for p in (cache_of(env) / repo / "blobs").iterdir()}


def test_pull_writes_hugging_faces_layout(hub, env):
    path = pull(env, "org/name")
    repo, root = hub.repos["org/name"], cache_of(env) / "models--org--name"
    assert path == root / "snapshots" / repo.commit
    assert {p.name for p in path.iterdir()} == TAKEN
    for name in TAKEN:
        link = path / name
        assert os.readlink(link) == f"../../blobs/{repo.etag(name)}"
        assert link.read_bytes() == FOLDER[name]
    assert (root / "refs/main").read_text() == repo.commit
    assert blobs(env) == {repo.etag(name) for name in TAKEN}
    before = len(hub.seen)
    assert pull(env, "org/name") == path
    assert not [one for one in hub.seen[before:] if one[1] == "GET" and "resolve" in one[2]], "asked for bytes again"


def test_huggingface_hub_reads_what_we_wrote_and_the_other_way_round(hub, env, tmp_path):
    path = pull(env, "org/name")
    code = ("import sys, huggingface_hub as h;"
            "print(h.hf_hub_download('org/name', 'model.safetensors', local_files_only=True));"
            "print(len(h.scan_cache_dir().repos), h.scan_cache_dir().warnings)")
    out = subprocess.run([sys.executable, "-c", code], env=env,
                         capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr
    assert out.stdout.splitlines() == [str(path / "model.safetensors"), "1 []"]
    theirs = env | {"HF_HOME": str(tmp_path / "theirs")}
    code = ("import huggingface_hub as h;"
            "print(h.snapshot_download('org/name', allow_patterns=['*.json', '*.safetensors']))")
    out = subprocess.run([sys.executable, "-c", code], env=theirs, capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr
    folder = out.stdout.strip()
    found = run(theirs | {"HF_HUB_OFFLINE": "1"}, "pull", "org/name")
    assert found.stdout.strip() == folder
    before = len(hub.requests("GET .*safetensors|GET /[0-9a-f]{64}"))
    assert str(pull(theirs, "org/name")) == folder
    assert len(hub.requests("GET .*safetensors|GET /[0-9a-f]{64}")) == before
    assert (pathlib.Path(folder) / "chat_template.jinja").exists(), "what was lacking came"


def test_resume_after_a_cut(hub, env):
    hub.fault("GET /[0-9a-f]{64}", mock_hub.cut_after(3_000_000))
    path = pull(env, "org/name")
    assert (path / "model.safetensors").read_bytes() == WEIGHTS
    [first, second] = hub.requests("GET /[0-9a-f]{64}")
    assert "Range" not in first[3]
    begin = int(second[3]["Range"].removeprefix("bytes=").rstrip("-"))
    assert 0 < begin <= 3_000_000


def test_resume_in_the_next_pull(hub, env):
    etag = hub.repos["org/name"].etag("model.safetensors")
    folder = cache_of(env) / "models--org--name/blobs"
    folder.mkdir(parents=True)
    (folder / f"{etag}.incomplete").write_bytes(WEIGHTS[:1_234_567])
    path = pull(env, "org/name")
    assert (path / "model.safetensors").read_bytes() == WEIGHTS
    [one] = hub.requests("GET /[0-9a-f]{64}")
    assert one[3]["Range"] == "bytes=1234567-"


@pytest.mark.parametrize("left", [b"not of this file", WEIGHTS + b"more", b"y" * len(WEIGHTS)])
def test_a_wrong_remainder_is_begun_again(hub, env, left):
    folder = cache_of(env) / "models--org--name/blobs"
    folder.mkdir(parents=True)
    (folder / f"{hub.repos['org/name'].etag('model.safetensors')}.incomplete").write_bytes(left)
    assert (pull(env, "org/name") / "model.safetensors").read_bytes() == WEIGHTS


def test_a_hub_without_ranges(hub, env):
    hub.fault("GET /[0-9a-f]{64}", mock_hub.cut_after(3_000_000))

    def ignore_range(handler):
        del handler.headers["Range"]
        return False
    hub.fault("GET /[0-9a-f]{64}", ignore_range, times=-1)
    assert (pull(env, "org/name") / "model.safetensors").read_bytes() == WEIGHTS


def test_killed_at_any_moment_leaves_nothing_half_done(hub, env):
    hub.fault("GET /[0-9a-f]{64}", mock_hub.stall())
    for sig, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        process = subprocess.Popen([BINARY, "pull", "org/name"], env=env, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 20
        while not list(cache_of(env).glob("**/*.incomplete")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(sig)
        _, said = process.communicate(timeout=20)
        assert process.returncode == code, said
        if sig == signal.SIGINT:
            assert "goes on from here" in said
        root = cache_of(env) / "models--org--name"
        assert not (root / "refs/main").exists()
        assert hub.repos["org/name"].etag("model.safetensors") not in blobs(env)
        hub.fault("GET /[0-9a-f]{64}", mock_hub.stall())
    hub.faults.clear()
    assert (pull(env, "org/name") / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_wrong_checksum(hub, env, file):
    pattern = "GET /[0-9a-f]{64}" if file == "model.safetensors" else "GET .*/config.json"
    hub.fault(pattern, mock_hub.wrong_bytes, times=-1)
    refuse(env, "pull", "org/name", reason="checksum_mismatch", words=[file])
    assert not list(cache_of(env).glob(f"**/{file}"))
    assert not (cache_of(env) / "models--org--name/refs/main").exists()
    hub.faults.clear()
    assert (pull(env, "org/name") / file).read_bytes() == FOLDER[file]


def test_refusals_say_what_to_do(hub, env):
    hub.repos["org/gated"] = Repo(FOLDER, gated=True)
    hub.repos["org/secret"] = Repo(FOLDER, private=True)
    refuse(env, "pull", "org/gated", reason="gated_model", words=["HF_TOKEN", f"{hub.url}/org/gated"])
    refuse(env, "pull", "org/secret", reason="no_such_model", words=["HF_TOKEN"])
    refuse(env, "pull", "org/absent", reason="no_such_model", words=["check the name"])
    refuse(env, "pull", "org/name", "--revision", "v9", reason="not_on_hub", words=["v9"])
    refuse(env, "pull", "org/name:nope.gguf", reason="no_such_file", words=["nope.gguf"])
    wrong = env | {"HF_TOKEN": "hf_wrong"}
    refuse(wrong, "pull", "org/gated", reason="gated_model", words=["account"])
    hub.fault("GET /api", mock_hub.status(403))
    refuse(env, "pull", "org/name", reason="no_access")
    right = env | {"HF_TOKEN": " hf_right\n"}
    assert pull(right, "org/gated").is_dir() and pull(right, "org/secret").is_dir()


def test_token_file_and_bad_tokens(hub, env):
    hub.repos["org/secret"] = Repo(FOLDER, private=True)
    token = pathlib.Path(env["HF_HOME"]) / "token"
    token.parent.mkdir(parents=True)
    token.write_text("hf_right\n")
    pull(env, "org/secret")
    assert pull(env | {"HF_TOKEN_PATH": str(token), "HF_HOME": env["HF_HOME"] + "2"}, "org/secret")
    for bad in ("hf\r\nX-Evil: 1", "hf_ä", "x" * 5000):
        pull(env | {"HF_TOKEN": bad}, "org/name")
    assert not [one for one in hub.seen if "X-Evil" in one[3]]


def test_the_token_stays_with_the_hub(hub, env):
    pull(env | {"HF_TOKEN": "hf_right"}, "org/name")
    assert all(one[3].get("Authorization") == "Bearer hf_right" for one in hub.seen if one[0] == "hub")
    at_cdn = [one for one in hub.seen if one[0] == "cdn"]
    assert at_cdn and not any("Authorization" in one[3] or "hf_right" in str(one) for one in at_cdn)


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x"])
def test_redirects_to_other_schemes(hub, env, target):
    hub.fault("GET .*resolve.*config.json", mock_hub.status(302, Location=target), times=-1)
    refuse(env, "pull", "org/name", reason="bad_redirect")


def test_redirects_without_end(hub, env):
    hub.fault("GET /api", mock_hub.status(302, Location="/api/again"), times=-1)
    refuse(env, "pull", "org/name", reason="bad_redirect")
    assert len(hub.seen) < 20


def test_renamed_repository(hub, env):
    hub.fault("GET /api/models/org/old", mock_hub.status(307, Location="/api/models/org/name/revision/main"), -1)
    for method in ("HEAD", "GET"):
        for name in TAKEN:
            where = f"/org/name/resolve/{hub.repos['org/name'].commit}/{name}"
            hub.fault(f"{method} /org/old/.*/{name}$", mock_hub.status(307, Location=where), -1)
    assert (pull(env, "org/old") / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_hub_is_asked_again(hub, env, code):
    hub.fault("GET /api", mock_hub.status(code, Retry_After="1"))
    hub.fault("HEAD .*config.json", mock_hub.status(code))
    pull(env, "org/name")
    assert len(hub.requests("GET /api")) == 2


def test_rate_limit_too_long_to_wait(hub, env):
    hub.fault("GET /api", mock_hub.status(429, Retry_After="3600"), times=-1)
    began = time.monotonic()
    refuse(env, "pull", "org/name", reason="busy", words=["3600", "HF_TOKEN"])
    assert time.monotonic() - began < 10 and len(hub.seen) == 1


def test_a_hub_that_stays_busy(hub, env):
    hub.fault("GET /api", mock_hub.status(503), times=-1)
    refuse(env, "pull", "org/name", reason="busy", words=["503"])
    assert 3 <= len(hub.seen) <= 8


def test_a_stalled_body_is_resumed(hub, env):
    hub.fault("GET /[0-9a-f]{64}", mock_hub.stall())
    path = pull(env, "org/name", "--timeout", "2")
    assert (path / "model.safetensors").read_bytes() == WEIGHTS


def test_bodies_without_end(hub, env):
    hub.fault("GET .*resolve.*/config.json", mock_hub.endless, times=-1)
    refuse(env, "pull", "org/name", reason="wrong_size")
    hub.faults.clear()
    hub.fault("GET /api", mock_hub.endless, times=-1)
    refuse(env, "pull", "org/name", reason="bad_answer")


def test_a_body_that_drips(hub, env):
    hub.fault("GET .*resolve.*/config.json", mock_hub.drip(0.2), times=1)
    assert pull(env, "org/name", "--timeout", "2").is_dir()


def test_no_hub_at_all(env):
    refuse(env | {"HF_ENDPOINT": "http://127.0.0.1:1"}, "pull", "org/name", reason="unreachable")
    refuse(env | {"HF_ENDPOINT": "nonsense://x"}, "pull", "org/name", reason="bad_endpoint")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"sha": "x", "siblings": []}', b"[" * 100_000,
                                  b'{"sha": "%s", "siblings": [{"rfilename": 1}]}' % (b"a" * 40)])
def test_listings_that_are_none(hub, env, body):
    hub.fault("GET /api", lambda h: h.plain(200, {}, body), times=-1)
    refuse(env, "pull", "org/name", reason="bad_answer")


@pytest.mark.parametrize("name", ["../../../evil.safetensors", "/etc/evil", "a/../../evil", "a\\..\\evil", "a\x00b",
                                  "config.json\n", ""])
def test_hostile_names(hub, env, name, tmp_path):
    hub.repos["org/name"].listed = [*FOLDER, name]
    refuse(env, "pull", "org/name", reason="hostile_name")
    assert not list(tmp_path.glob("**/evil*")) and not (cache_of(env) / "models--org--name").exists()


def test_odd_names_are_left_alone(hub, env):
    hub.repos["org/name"].listed = [*FOLDER, "bild-ä.png", "what?.json", "a" * 3000]
    assert {p.name for p in pull(env, "org/name").iterdir()} == TAKEN


@pytest.mark.parametrize("etag", ['"../../../evil"', '"a/b/c/d/e/f"', '""', '"' + "a" * 500 + '"', '"x.y.z.x.y.z"'])
def test_hostile_etags(hub, env, etag):
    hub.fault("HEAD .*config.json", mock_hub.status(200, ETag=etag), times=-1)
    refuse(env, "pull", "org/name", reason="bad_etag")


def test_headers_without_end(hub, env):
    def act(handler):
        handler.send_response(200)
        for i in range(3000):
            handler.send_header(f"X-{i}", "y" * 100)
        handler.end_headers()
        handler.close_connection = True
    hub.fault("GET /api", act, times=-1)
    refuse(env, "pull", "org/name", reason="bad_answer")


def test_too_many_files_and_too_large(hub, env):
    hub.repos["org/name"].listed = [f"f{i}" for i in range(20_001)]
    refuse(env, "pull", "org/name", reason="too_many_files")
    hub.repos["org/name"].listed = None
    hub.fault("HEAD .*safetensors", mock_hub.status(200, ETag='"' + "a" * 64 + '"', X_Linked_Size=str(1 << 60)), -1)
    refuse(env, "pull", "org/name", reason="file_too_large")


def test_disk_is_asked_first(hub, env):
    hub.fault("HEAD .*safetensors", mock_hub.status(200, ETag='"' + "a" * 64 + '"', X_Linked_Size=str(1 << 41)), -1)
    refuse(env, "pull", "org/name", reason="disk_full", words=["2.0 TiB", "64.0 MiB", "HF_HOME"])
    assert not hub.requests("GET .*resolve")


def test_offline(hub, env):
    for args, more in ((["--offline"], {}), ([], {"HF_HUB_OFFLINE": "1"}), ([], {"HF_HUB_OFFLINE": "true"})):
        refuse(env | more, "pull", "org/name", *args, reason="not_cached", words=["offline"])
    assert not hub.seen
    path = pull(env, "org/name")
    asked = len(hub.seen)
    assert pull(env, "org/name", "--offline") == path
    refuse(env, "pull", "org/name", "--offline", "--revision", "v1", reason="not_cached")
    assert pull(env, "org/name", "--offline", "--revision", hub.repos["org/name"].commit) == path
    assert len(hub.seen) == asked


def test_concurrent_pulls_fetch_each_byte_once(hub, env):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(lambda _: pull(env, "org/name"), range(4)))
    assert len(paths) == 1
    assert (paths.pop() / "model.safetensors").read_bytes() == WEIGHTS
    assert len(hub.requests("GET /[0-9a-f]{64}")) == 1
    assert not list(cache_of(env).glob("**/*.incomplete"))


def test_a_new_commit(hub, env):
    old = pull(env, "org/name")
    files = FOLDER | {"config.json": b'{"model_type": "new"}'}
    hub.repos["org/name"] = Repo(files, large=["model.safetensors"], commit="c" * 40)
    new = pull(env, "org/name")
    assert new.name == "c" * 40 and old.is_dir()
    assert (new / "config.json").read_bytes() == files["config.json"]
    assert len(hub.requests("GET /[0-9a-f]{64}")) == 1, "the weights are the same blob"


GGUFS = {"README.md": b"#", "n-Q8_0.gguf": b"eight" * 100, "n-Q4_K_M.gguf": b"four" * 100, "mmproj-n.gguf": b"no",
         "big/n-F16-00001-of-00002.gguf": b"one", "big/n-F16-00002-of-00002.gguf": b"two"}


def test_gguf_by_rule_and_by_name(hub, env):
    hub.repos["org/g"] = Repo(GGUFS, large=["n-Q4_K_M.gguf"])
    for wanted, file in (("", "n-Q4_K_M.gguf"), (":n-Q8_0.gguf", "n-Q8_0.gguf"), (":q8_0", "n-Q8_0.gguf"),
                         (":F16", "big/n-F16-00001-of-00002.gguf")):
        path = pull(env, "org/g" + wanted)
        assert path.read_bytes() == GGUFS[file] and str(path).endswith("/" + file)
    assert (path.parent / "n-F16-00002-of-00002.gguf").read_bytes() == b"two"
    hub.repos["org/two"] = Repo({"a.gguf": b"a", "b.gguf": b"b"})
    refuse(env, "pull", "org/two", reason="several_models", words=["org/two:a.gguf", "org/two:b.gguf"])


def test_list_and_rm(hub, env):
    hub.repos["org/g"] = Repo(GGUFS)
    assert "no models" in run(env, "list").stderr
    assert run(env, "list", "--json").stdout == "[]\n"
    for name in ("org/name", "org/g", "org/g:Q8_0", "org/g:F16"):
        pull(env, name)
    rows = json.loads(run(env, "list", "--json").stdout)
    assert [row["name"] for row in rows] == ["org/g:big/n-F16-00001-of-00002.gguf", "org/g:n-Q4_K_M.gguf",
                                             "org/g:n-Q8_0.gguf", "org/name"]
    assert rows[0]["bytes"] == 6 and rows[3]["bytes"] == sum(len(FOLDER[n]) for n in TAKEN)
    assert rows[3]["revision"] == "main" and rows[3]["commit"] == hub.repos["org/name"].commit
    table = run(env, "list").stdout
    assert "org/name" in table and "4.9 MiB" in table
    assert run(env, "rm", "org/g:F16").stdout.startswith("removed org/g:F16")
    assert run(env, "rm", "org/name").returncode == 0
    assert not (cache_of(env) / "models--org--name").exists()
    rows = json.loads(run(env, "list", "--json").stdout)
    assert [row["name"] for row in rows] == ["org/g:n-Q4_K_M.gguf", "org/g:n-Q8_0.gguf"]
    refuse(env, "rm", "org/name", reason="not_found")
    for bad in ("../..", "org", "org/../..", ".", "/etc", "models--org--g"):
        assert run(env, "rm", bad).returncode == 2
    assert json.loads(run(env, "list", "--json").stdout) == rows


def test_where_the_cache_is(hub, env, tmp_path):
    bare = {k: v for k, v in env.items() if k not in ("HF_HOME", "XDG_CACHE_HOME")}
    home = str(tmp_path / "home")
    for more, where in (({"HF_HUB_CACHE": str(tmp_path / "a")}, tmp_path / "a"),
                        ({"HF_HOME": str(tmp_path / "b")}, tmp_path / "b/hub"),
                        ({"XDG_CACHE_HOME": str(tmp_path / "c")}, tmp_path / "c/huggingface/hub"),
                        ({"HOME": home}, tmp_path / "home/.cache/huggingface/hub"),
                        ({"HOME": home, "HF_HOME": "~/d"}, tmp_path / "home/d/hub")):
        assert pull(bare | more, "org/name").is_relative_to(where)


def test_wrong_command_lines(env):
    for args in (["pull"], ["pull", "model.gguf"], ["pull", "a/b", "c/d"], ["pull", "a/b", "--timeout", "0"],
                 ["list", "x"], ["rm"]):
        assert run(env, *args).returncode == 2, args
    result = run(env, "pull", "a/b", "--revision", "../x")
    assert result.returncode == 2 and "--revision" in result.stderr


@pytest.fixture
def hub_with_model(hub, mini_model):
    data = mini_model.read_bytes()
    hub.repos["org/tiny"] = Repo({"README.md": b"#", "tiny-Q4_1.gguf": data}, large=["tiny-Q4_1.gguf"])
    return hub


@pytest.mark.parametrize("name", ["org/tiny", "org/tiny:Q4_1"])
def test_serve_by_name(hub_with_model, env, monkeypatch, name):
    for key in ("HF_HOME", "HF_ENDPOINT", "HOME"):
        monkeypatch.setenv(key, env[key])
    served = []
    for _ in range(2):  # from the hub, then from the cache, without a question
        before = len(hub_with_model.seen)
        server = Server(name, "--kv-cache-memory-bytes", "4MiB")
        try:
            served.append(server.client().models.list().data[0].id)
            body = {"prompt": "Hello", "max_tokens": 8, "temperature": 0, "ignore_eos": True}
            assert server.post("/v1/completions", body).json()["usage"]["completion_tokens"] == 8
        finally:
            assert server.stop() == 0
    assert served == ["org/tiny", "org/tiny"]
    assert len(hub_with_model.seen) == before


def test_every_command_takes_a_name(hub_with_model, env):
    out = subprocess.run([BINARY, "tokenize", "--tokenizer", "org/tiny"], env=env, input="Hello", capture_output=True,
                         text=True, timeout=60)
    assert out.returncode == 0 and json.loads(out.stdout), out.stderr
    assert run(env, "inspect", "--check", "org/tiny", "--offline").returncode == 0
    assert "tiny-Q4_1.gguf" in run(env, "inspect", "org/tiny:Q4_1").stdout
    files = {"two-Q8_0.gguf": hub_with_model.repos["org/tiny"].files["tiny-Q4_1.gguf"], "two-Q4_0.gguf": b"no model"}
    hub_with_model.repos["org/two"] = Repo(files)
    assert run(env, "inspect", "--check", "org/two").returncode == 1, "Q4_0 comes first"
    assert run(env, "inspect", "--check", "org/two:Q8_0").returncode == 0, "and this one is not in the cache yet"
    refuse(env, "inspect", "org/absent", reason="no_such_model")
    refuse(env, "serve", "org/absent", "--offline", reason="not_cached")


def test_a_path_that_exists_is_a_path(hub_with_model, env, mini_model, tmp_path):
    (tmp_path / "org").mkdir()
    (tmp_path / "org/tiny").write_bytes(mini_model.read_bytes())
    assert run(env, "inspect", "--check", "org/tiny", cwd=tmp_path).returncode == 0
    assert not hub_with_model.seen
    result = run(env, "inspect", "models/absent.gguf")
    assert result.returncode == 1 and not hub_with_model.seen
