"""A Hugging Face hub small enough to misbehave: repositories in memory, on 127.0.0.1, with faults by file.

It answers what huggingface_hub asks (GET /api/models/..., HEAD and GET /ORG/NAME/resolve/COMMIT/FILE): large
files are redirected to a second server, as the hub's CDN is a second host, and every request is kept in `seen`.
"""

import hashlib
import http.server
import json
import re
import threading
import urllib.parse


def git_blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Repo:
    """Files by name; `large` ones have an LFS pointer and come from the other host."""

    def __init__(self, files, large=(), gated=False, private=False, commit=None):
        self.files = files
        self.large = set(large)
        self.gated = gated
        self.private = private
        self.commit = commit or hashlib.sha1(repr(sorted(files)).encode()).hexdigest()
        self.listed = None  # other names than the files', for hostile listings

    def etag(self, name):
        data = self.files[name]
        return hashlib.sha256(data).hexdigest() if name in self.large else git_blob(data)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        self.cut, self.damage = None, False
        hub = self.server.hub
        with hub.lock:
            hub.seen.append((self.server.role, self.command, self.path, dict(self.headers)))
            fault = next((f for f in hub.faults if f.takes(self)), None)
        if fault is not None and fault.act(self):
            return
        if self.server.role == "cdn":
            return self.content(hub.blobs[self.path.strip("/")], None)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if (m := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/([^/]+)", self.path)):
            return self.listing(hub, m[1], urllib.parse.unquote(m[2]), token)
        if (m := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/?]+).*", self.path)):  # huggingface_hub's
            return self.tree(hub, m[1], token)
        if (m := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path)):
            return self.file(hub, m[1], m[2], urllib.parse.unquote(m[3]), token)
        self.plain(404, {})

    def plain(self, status, headers, body=b""):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.damage:
            body = bytes(b ^ 1 for b in body)
        if self.cut is not None:
            body, self.close_connection = body[:self.cut], True
        self.wfile.write(body)

    def repo(self, hub, name, token):
        repo = hub.repos.get(name)
        if repo is None or (repo.private and token != hub.token):
            return self.plain(401, {"X-Error-Code": "RepoNotFound"})
        return repo

    def listing(self, hub, name, revision, token):
        repo = self.repo(hub, name, token)
        if repo is None:
            return
        if revision not in ("main", repo.commit):
            return self.plain(404, {"X-Error-Code": "RevisionNotFound"})
        names = repo.listed or list(repo.files)
        body = {"id": name, "sha": repo.commit, "siblings": [{"rfilename": n} for n in names]}
        self.plain(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    def tree(self, hub, name, token):
        repo = self.repo(hub, name, token)
        if repo is None:
            return
        rows = [{"type": "file", "path": n, "size": len(d), "oid": git_blob(d)} for n, d in repo.files.items()]
        self.plain(200, {"Content-Type": "application/json"}, json.dumps(rows).encode())

    def file(self, hub, name, revision, path, token):
        repo = self.repo(hub, name, token)
        if repo is None:
            return
        if repo.gated and token != hub.token:
            return self.plain(403 if token else 401, {"X-Error-Code": "GatedRepo"})
        if revision not in ("main", repo.commit) or path not in repo.files:
            return self.plain(404, {"X-Error-Code": "EntryNotFound"})
        data, etag = repo.files[path], repo.etag(path)
        if path not in repo.large:
            return self.content(data, {"ETag": f'"{etag}"', "X-Repo-Commit": repo.commit})
        hub.blobs[etag] = data
        self.plain(302, {"Location": f"{hub.cdn_url}/{etag}", "X-Linked-Etag": f'"{etag}"',
                         "X-Linked-Size": str(len(data)), "X-Repo-Commit": repo.commit})

    def content(self, data, headers):
        headers = dict(headers or {"ETag": '"of-the-cdn"'})
        begin, status = 0, 200
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked and self.headers.get("If-Range", headers["ETag"]) == headers["ETag"]:
            begin, status = int(asked[1]), 206
            if begin >= len(data):
                return self.plain(416, {"Content-Range": f"bytes */{len(data)}"})
            headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        self.plain(status, headers, data[begin:])


class Fault:
    """Does something else to the first `times` requests that match `pattern` ("METHOD path", a regex)."""

    def __init__(self, pattern, act, times=1):
        self.pattern, self._act, self.left = re.compile(pattern), act, times

    def takes(self, handler):
        if self.left == 0 or not self.pattern.search(f"{handler.command} {handler.path}"):
            return False
        self.left -= 1
        return True

    def act(self, handler):
        return self._act(handler) is not False


def status(code, **headers):
    return lambda h: h.plain(code, {k.replace("_", "-"): v for k, v in headers.items()})


def cut_after(count):
    """The head of the whole answer and `count` bytes of its body, then nothing more."""
    def act(handler):
        handler.cut = count
        return False
    return act


def wrong_bytes(handler):
    handler.damage = True
    return False


def stall(seconds=30):
    def act(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        handler.wfile.write(b"x" * 100)
        handler.wfile.flush()
        handler.server.hub.stopping.wait(seconds)
        handler.close_connection = True
    return act


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    try:
        while not handler.server.hub.stopping.is_set():
            handler.wfile.write(b"x" * 65536)
    except OSError:
        pass


def drip(seconds_between):
    def act(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        try:
            while not handler.server.hub.stopping.wait(seconds_between):
                handler.wfile.write(b"x")
                handler.wfile.flush()
        except OSError:
            pass
    return act


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # clients that leave are part of the tests


class MockHub:
    def __init__(self):
        self.repos, self.blobs, self.faults, self.seen = {}, {}, [], []
        self.token = "hf_right"
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self._servers = []
        self.url = self._start("hub")
        self.cdn_url = self._start("cdn")

    def _start(self, role):
        server = _Server(("127.0.0.1", 0), _Handler)
        server.hub, server.role = self, role
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self._servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    def fault(self, pattern, act, times=1):
        self.faults.append(Fault(pattern, act, times))

    def requests(self, pattern):
        return [one for one in self.seen if re.search(pattern, f"{one[1]} {one[2]}")]

    def stop(self):
        self.stopping.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()
