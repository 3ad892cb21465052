#!/usr/bin/env python3
"""Replays malformed and malicious HTTP against a running server.

    replay_hostile.py HOST:PORT [CORPUS_DIR]

CORPUS_DIR holds manifest.json and http/*.http. Each file is sent whole and one byte at a time; the
status must be one the manifest allows, `must_close` must be obeyed, and /health must answer after each.
Then: dripping clients must not delay others, and clients that leave must be let go. Exit 0 if all held.
Standard library only.
"""
import json
import pathlib
import socket
import sys
import time

TIMEOUT_S = 5.0


def connect(address):
    sock = socket.create_connection(address, timeout=TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def send(sock, data, byte_by_byte):
    try:
        if byte_by_byte:
            for i in range(len(data)):
                sock.sendall(data[i:i + 1])
        else:
            sock.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused early: the answer, if any, is read next


def read_to_end(sock, seconds):
    """What the server sends within `seconds`, and whether it closed."""
    sock.settimeout(0.05)
    data, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            part = sock.recv(65536)
        except socket.timeout:
            continue
        except ConnectionResetError:
            return data, True
        if not part:
            return data, True
        data += part
    return data, False


def answers(data):
    """Status codes in a run of answers framed by Content-Length or chunks."""
    codes = []
    while data.startswith(b"HTTP/1.1 "):
        head, _, rest = data.partition(b"\r\n\r\n")
        codes.append(int(head.split(b" ", 2)[1]))
        fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
        if fields.get(b"transfer-encoding", b"").strip() == b"chunked":
            rest = rest.partition(b"0\r\n\r\n")[2]
        else:
            rest = rest[int(fields.get(b"content-length", b"0")):]
        data = rest
    return codes


def health_seconds(address):
    start = time.monotonic()
    with connect(address) as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        data, _ = read_to_end(sock, TIMEOUT_S)
    if not answers(data)[:1] == [200]:
        raise AssertionError(f"/health answered {data[:80]!r}")
    return time.monotonic() - start


def replay(address, corpus):
    failures = []
    for case in json.loads((corpus / "manifest.json").read_text())["cases"]:
        if not case["name"].startswith("http/"):
            continue
        data = (corpus / case["name"]).read_bytes()
        # A model's name is the one thing an accepted request may lack: 404 is as good as 200 then.
        allowed = set(case["status"]) | ({404} if case["status"] == [200] else set())
        for byte_by_byte in (False, True):
            with connect(address) as sock:
                send(sock, data, byte_by_byte)
                if case["name"].endswith("body_cut.http"):
                    sock.shutdown(socket.SHUT_WR)
                got, closed = read_to_end(sock, TIMEOUT_S if case["must_close"] else 0.5)
            codes = answers(got) or [0]
            if codes[0] not in allowed:
                failures.append(f"{case['name']}: {codes[0]}, allowed {sorted(allowed)}")
            if case["must_close"] and (not closed or len(codes) > 1):
                failures.append(f"{case['name']}: answers {codes}, closed: {closed}")
            health_seconds(address)
    return failures


def drip(address, count=200, rounds=10):
    socks = [connect(address) for _ in range(count)]
    worst = 0.0
    for sock in socks:
        sock.sendall(b"GET /health HTTP/1.1\r\nX: ")
    for _ in range(rounds):
        for sock in socks:
            send(sock, b"x", False)
        worst = max(worst, health_seconds(address))
    for sock in socks:
        sock.close()
    return [] if worst < 0.5 else [f"{count} dripping clients delay others by {worst:.2f} s"]


def leave(address, count=300):
    for i in range(count):
        sock = connect(address)
        sock.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"[:i + 1])
        if i % 2:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()
    return [] if health_seconds(address) < 1 else ["slow after clients left"]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    host, _, port = sys.argv[1].rpartition(":")
    address = (host.strip("[]"), int(port))
    failures = drip(address) + leave(address)
    if len(sys.argv) == 3:
        failures += replay(address, pathlib.Path(sys.argv[2]))
    for failure in failures:
        print("FAILED", failure, file=sys.stderr)
    print("ok" if not failures else f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
