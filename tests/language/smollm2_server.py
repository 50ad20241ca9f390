"""A small OpenAI-compatible server on loopback for SmolLM2: python smollm2_server.py prints its port when ready."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ops.language_models.load import load_model

MODEL, TOKENIZER = load_model("smollm2")
ONE_AT_A_TIME = threading.Lock()
SEEN = []


def complete(body):
    """A chat completion: transformers' own greedy generation behind the model's own chat template."""
    ids = TOKENIZER.apply_chat_template(
        body["messages"], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    n_prompt = ids["input_ids"].shape[1]
    with ONE_AT_A_TIME:
        SEEN.append(body)
        output = MODEL.generate(
            **ids, max_new_tokens=body["max_tokens"], do_sample=False, pad_token_id=TOKENIZER.eos_token_id
        )
    fresh = output[0, n_prompt:]
    ended = bool(fresh[-1] == TOKENIZER.eos_token_id)
    return {
        "id": f"chatcmpl-{len(SEEN)}",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop" if ended else "length",
                "message": {"role": "assistant", "content": TOKENIZER.decode(fresh, skip_special_tokens=True)},
            }
        ],
        "usage": {"prompt_tokens": n_prompt, "completion_tokens": len(fresh), "total_tokens": n_prompt + len(fresh)},
    }


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        self.reply(len(SEEN))

    def do_POST(self):
        assert self.path == "/v1/chat/completions"
        self.reply(complete(json.loads(self.rfile.read(int(self.headers["content-length"])))))

    def reply(self, body):
        payload = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()
