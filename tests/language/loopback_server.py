"""A real HTTP server on loopback that speaks the chat-completion protocol and misbehaves on demand."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ops.language_models.endpoint import Endpoint

KEY = "sk-secret-0123456789"


class Server(ThreadingHTTPServer):
    """Follows a script of mishaps, then answers. Counts requests, and how many are open at once.

    A mishap is a status, a word, or whole: (status, headers, JSON or bytes); a dictionary changes the good answer's
    message, finish_reason and usage.

    With a barrier in `together` it answers only when as many requests are open as that waits for.
    """

    daemon_threads = True

    def __init__(self, script=(), reply=lambda body: "A", usage=True):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.reply, self.usage = list(script), reply, usage
        self.lock, self.seen, self.open, self.most_open = threading.Lock(), [], 0, 0
        self.together, self.stopping = None, threading.Event()

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return super().__enter__()

    def __exit__(self, *exc):
        self.stopping.set()
        self.shutdown()
        super().__exit__(*exc)

    def endpoint(self, **changes):
        """Settings for this server."""
        url = f"http://127.0.0.1:{self.server_port}/v1"
        return Endpoint(**({"base_url": url, "model": "toy", "input_price": 1.0, "output_price": 2.0} | changes))


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            server.seen.append((body, self.headers.get("authorization")))
            server.open += 1
            server.most_open = max(server.most_open, server.open)
            mishap = server.script.pop(0) if server.script else None
        if server.together:
            server.together.wait(60)
        with server.lock:
            server.open -= 1  # before the answer, after which its client may ask again
        self.answer(body, mishap)

    def answer(self, body, mishap):
        usage = {"usage": {"prompt_tokens": 20, "completion_tokens": 1}} if self.server.usage else {}
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": self.server.reply(body)},
        }
        good = {"id": "1", "object": "chat.completion", "created": 1, "model": "toy", "choices": [choice], **usage}
        payload, status, headers = json.dumps(good).encode(), 200, {}
        if isinstance(mishap, int):
            status, payload = mishap, json.dumps({"error": {"message": f"bad key {KEY}", "code": "oops"}}).encode()
            headers = {"retry-after": "3"} if mishap == 429 else {}
        elif mishap == "hang":
            self.server.stopping.wait(60)
        elif mishap == "malformed":
            payload = b'{"choices": [{"message"'
        elif mishap == "no choices":
            payload = json.dumps(good | {"choices": []}).encode()
        elif mishap == "no quota":
            status, payload = 429, json.dumps({"error": {"message": "pay", "code": "insufficient_quota"}}).encode()
        elif isinstance(mishap, dict):
            choice["message"] = {"role": "assistant"} | mishap.get("message", {})
            changed = {name: value for name, value in mishap.items() if name == "usage"}
            if "finish_reason" in mishap:
                choice["finish_reason"] = mishap["finish_reason"]
            payload = json.dumps(good | changed).encode()
        elif isinstance(mishap, tuple):
            status, headers, body = mishap
            payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        if "content-type" not in headers:
            self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload) + (50 if mishap == "truncated" else 0)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)
        self.close_connection = True


def solve(body):
    """An oracle that reads the prompt as a model would."""
    *row, query = body["messages"][-1]["content"].split()
    if query.isdecimal():
        return row[-int(query)]
    return next(pair[1] for pair in row if pair[0] == query[1])
