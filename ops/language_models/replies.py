"""What an OpenAI-compatible server sent back: an answer as it is, or the reason in the server's own words."""

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
ADVICE = {
    401: "check the key in the environment",
    402: "the account has no credit left",
    403: "check what the key may use",
    404: "check base_url and model",
    405: "check base_url, which often ends in /v1",
    407: "check the proxy's name and password in the environment",
    413: "the request is too long; ask at shorter lengths",
    429: "the account has no credit left",
}
FIELDS = "check the model's name and the request's fields"
NO_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "quota_exceeded"})
FINAL_CODES = NO_CREDIT | {
    "access_terminated",
    "account_deactivated",
    "authentication_error",
    "content_filter",
    "content_policy_violation",
    "context_length_exceeded",
    "invalid_api_key",
    "invalid_request_error",
    "model_not_found",
    "permission_error",
    "unsupported_parameter",
    "unsupported_value",
}
LONGEST_REASON = 240
MOST_TOKENS = 1_000_000_000  # of one request; a larger count is a mistake and would use up any budget


@dataclass(frozen=True)
class Answer:
    """The raw reply and the tokens that the endpoint counted (None: it did not say).

    Half a surrogate pair, which JSON can hold and no table can, is U+FFFD.

    An answer without words (all tokens spent on reasoning, a tool call) has the text ""; a refusal its own words and
    the finish reason "refusal". An endpoint that gives no finish reason has "unknown".
    """

    text: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None

    def __post_init__(self) -> None:
        for name in ("text", "finish_reason"):
            object.__setattr__(self, name, re.sub("[\ud800-\udfff]", "\ufffd", getattr(self, name)))


class Fault(NamedTuple):
    """Why there is no answer. `retry`: it may pass; `wait_s`: how long the server asks to wait.

    `charged`: the request may have been paid for ("bound": as far as its bound; "nothing": it was refused or not sent).
    """

    said: str
    retry: bool
    charged: Literal["bound", "nothing"]
    wait_s: float | None = None


def read_reply(content: bytes, content_type: str) -> Answer | Fault:
    """The answer in the body of a reply with status 200, or what is wrong with it.

    A server that streams although it was not asked to is read to its end.
    """
    try:
        body = json.loads(content.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        if content.lstrip()[:1] == b"<" or "html" in content_type:
            return Fault("a web page, not a chat completion; check base_url, which often ends in /v1", False, "bound")
        body = _streamed(content)
        if body is None:
            return Fault("an answer that cannot be read", True, "bound")
    choices = body.get("choices") if isinstance(body, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, dict) and isinstance(choice.get("message") or choice.get("text"), (dict, str)):
        return _answer(choice, body.get("usage"))
    if error := _error(body) or _error(choice):
        return error
    if isinstance(choice, dict) and isinstance(choice.get("finish_reason"), str):  # it ended without a word
        return _answer(choice, body.get("usage"))
    if choices is None:  # another kind of server: the same comes again, however often it is asked
        said = reason(body)
        return Fault(f"not a chat completion{f' but {said}' if said else ''}; check base_url and model", False, "bound")
    return Fault("an answer that is not a chat completion", True, "bound")


def _streamed(content: bytes) -> dict[str, Any] | None:
    """The pieces of a stream of server-sent events as one chat completion; None for what is none, or was cut off."""
    whole: dict[str, Any] = {"message": {"content": ""}}
    body: dict[str, Any] = {"choices": [whole]}
    ended = False
    for line in content.decode("utf-8", "replace").splitlines():
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            ended = True
            continue
        try:
            piece = json.loads(data)
        except (ValueError, RecursionError):
            return None
        if not isinstance(piece, dict):
            return None
        if piece.get("error"):
            return piece
        body["usage"] = piece.get("usage") or body.get("usage")
        for choice in piece.get("choices") or ():
            delta = choice.get("delta") if isinstance(choice, dict) else None
            if not isinstance(delta, dict) or choice.get("index", 0) != 0:
                continue
            whole["message"]["content"] += _text(delta.get("content"))
            whole["message"]["refusal"] = (whole["message"].get("refusal") or "") + _text(delta.get("refusal"))
            whole["finish_reason"] = choice.get("finish_reason") or whole.get("finish_reason")
    return body if ended or whole.get("finish_reason") else None


def read_refusal(status: int, body: Any, headers: Mapping[str, str]) -> Fault:
    """What a reply with another status than 200 says."""
    code, words = _codes(body), reason(body)
    said = f"HTTP {status}" + (f" {words}" if words else "")
    if 300 <= status < 400:
        return Fault(
            f"HTTP {status}, moved to {headers.get('location', 'nowhere')}; correct base_url", False, "nothing"
        )
    wait = wait_asked(headers)
    if status in RETRIED and not code & NO_CREDIT:
        return Fault(said, True, "nothing", wait)
    return Fault(f"{said}; {ADVICE.get(status, FIELDS)}", False, "nothing")


def reason(body: Any) -> str:
    """The server's own reason on one short line: the message of its error, its code, or its plain text."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        parts = [error.get(name) for name in ("code", "message", "detail")]
        words = " ".join(part if isinstance(part, str) else json.dumps(part) for part in parts if part is not None)
    else:
        words = error if isinstance(error, str) and "<" not in error[:200] else ""
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split()).rstrip(".;")
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


def hidden(text: str, key: str) -> str:
    """`text` with the key, and with any eight of its characters in a row, blotted out."""
    if len(key) < 8:
        return re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "***", text) if key not in ("", "none") else text
    result, start = [], 0
    while start < len(text):
        stop = start
        while stop < len(text) and text[start : stop + 1] in key:
            stop += 1
        result.append("***" if stop - start >= 8 else text[start])
        start = stop if stop - start >= 8 else start + 1
    return "".join(result)


def wait_asked(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: milliseconds, seconds, or a date (against the server's own clock)."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        if (asked := _number(headers.get(name))) is not None:
            return max(0.0, asked * unit)
    until, now = _date(headers.get("retry-after")), _date(headers.get("date"))
    return None if until is None else max(0.0, until - (time.time() if now is None else now))


def _answer(choice: dict[str, Any], usage: Any) -> Answer:
    message, given = choice.get("message"), choice.get("finish_reason")
    if not isinstance(message, dict):
        message = {"content": message or choice.get("text")}  # `text` is that of completions without chat
    text, refused = _text(message.get("content")), message.get("refusal")
    finish = given if isinstance(given, str) and given else "unknown"
    if not text and isinstance(refused, str) and refused:
        text, finish = refused, "refusal"
    counts = usage if isinstance(usage, dict) else {}
    return Answer(text, finish, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))


def _text(content: Any) -> str:
    """The words of a message's content: a string, or the text among a list of parts; "" where there is none."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "".join(_text(part) for part in content if isinstance(part, (str, dict)))
    if isinstance(content, dict):
        words = content.get("text") if content.get("type", "text") in ("text", "output_text") else None
        return words if isinstance(words, str) else ""
    return json.dumps(content)


def _count(value: Any) -> int | None:
    """A number of tokens, or None where the endpoint gave none that makes sense."""
    number = _number(value)
    return int(number) if number is not None and 0 <= number <= MOST_TOKENS and number.is_integer() else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _date(header: str | None) -> float | None:
    try:
        return None if header is None else email.utils.parsedate_to_datetime(header).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _error(body: Any) -> Fault | None:
    """An error object that came with status 200, judged by its own status or code."""
    if not isinstance(body, dict) or not body.get("error"):
        return None
    status = _count(body["error"].get("code")) if isinstance(body["error"], dict) else None
    if status is not None and 400 <= status < 600:
        return read_refusal(status, body, {})
    words = reason(body)
    if codes := _codes(body) & FINAL_CODES:
        return Fault(f"{words}; {ADVICE[402] if codes & NO_CREDIT else FIELDS}", False, "nothing")
    return Fault(words or "an error without a reason", True, "bound")


def _codes(body: Any) -> set[str]:
    error = body.get("error", body) if isinstance(body, dict) else {}
    return {str(error.get(name)) for name in ("code", "type")} if isinstance(error, dict) else set()
