"""Questions to any OpenAI-compatible endpoint: cached, retried with back-off, a few at a time, under a hard cost cap.

The key is an argument of `ask_all` and stands in no setting, key, answer or error. The `openai` package is imported
when a question is sent, not before.
"""

import hashlib
import json
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Protocol

from ops.language_models.budget import Budget, CostCapReached
from ops.language_models.prompted import Message

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
LONGEST_WAIT_S = 60.0


class EndpointError(RuntimeError):
    """An endpoint that does not answer. One sentence: what it said, and what to check. Never holds the key."""


class AnswerCache(Protocol):
    """Answers by request hash."""

    def get(self, key: str) -> "Answer | None":
        """The stored answer, or None."""
        ...

    def put(self, key: str, answer: "Answer") -> None:
        """Store an answer, durably."""
        ...


@dataclass(frozen=True)
class Answer:
    """The raw reply and the tokens that the endpoint counted (None: it did not say)."""

    text: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True)
class Endpoint:
    """Where and how to ask. Prices are US dollars a million tokens; 0 for a server of one's own.

    `extra` goes into the request's body as it is (say, what turns a model's reasoning off).
    """

    base_url: str
    model: str
    input_price: float
    output_price: float
    max_tokens: int = 4
    max_tokens_field: str = "max_tokens"
    temperature: float | None = 0.0
    timeout_s: float = 60.0
    attempts: int = 6
    first_wait_s: float = 1.0
    concurrency: int = 4
    extra: dict[str, Any] = field(default_factory=dict)

    def request(self, messages: Sequence[Message]) -> dict[str, Any]:
        """The body of a chat completion request."""
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        body[self.max_tokens_field] = self.max_tokens
        if self.temperature is not None:
            body["temperature"] = self.temperature
        return body | self.extra

    def key(self, messages: Sequence[Message]) -> str:
        """sha256 of the endpoint and the request: the same question to the same model has one answer."""
        text = json.dumps([self.base_url, self.request(messages)], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def bound(self, messages: Sequence[Message]) -> float:
        """The most a request can cost in US dollars: a token is at least one byte, a message's frame at most 16."""
        n_bytes = sum(len(m["content"].encode()) + len(m["role"]) + 16 for m in messages) + 64
        return (n_bytes * self.input_price + self.max_tokens * self.output_price) / 1e6

    def cost(self, answer: Answer, messages: Sequence[Message]) -> float:
        """What an answer cost in US dollars; its bound if the endpoint did not count its tokens."""
        if answer.prompt_tokens is None or answer.completion_tokens is None:
            return self.bound(messages)
        return (answer.prompt_tokens * self.input_price + answer.completion_tokens * self.output_price) / 1e6


def ask_all(
    endpoint: Endpoint,
    requests: Sequence[Sequence[Message]],
    cache: AnswerCache,
    budget: Budget,
    api_key: str,
    report: Callable[[int, int, float], None] = lambda done, total, spent: None,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Answer]:
    """An answer to each of `requests` (chat messages), in their order. A repeated question is sent once.

    Each answer is in `cache` before the next is awaited, so a rerun sends only what is missing. `report` gets done,
    total, US dollars spent. Raises CostCapReached before a request that the cap does not cover, EndpointError when a
    request is refused or fails `attempts` times; answers that had arrived are kept.
    """
    keys = [endpoint.key(messages) for messages in requests]
    answers = {key: answer for key in dict.fromkeys(keys) if (answer := cache.get(key)) is not None}
    missing = {key: messages for key, messages in zip(keys, requests, strict=True) if key not in answers}
    report(len(answers), len(answers) + len(missing), budget.spent)
    if missing:
        total = len(answers) + len(missing)
        client = _client(endpoint, api_key)
        pool = ThreadPoolExecutor(endpoint.concurrency, thread_name_prefix="ask")
        try:
            futures = {
                pool.submit(_ask, client, endpoint, messages, budget, api_key, sleep): key
                for key, messages in missing.items()
            }
            failure: Exception | None = None
            for future in as_completed(futures):
                if future.cancelled():
                    continue
                error = future.exception()
                if error is None:
                    answers[futures[future]] = future.result()
                    cache.put(futures[future], future.result())
                    report(len(answers), total, budget.spent)
                elif not isinstance(error, (EndpointError, CostCapReached)):
                    raise error
                elif failure is None:
                    failure = error
                    for waiting in futures:
                        waiting.cancel()
            if failure is not None:
                raise failure
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            client.close()
    return [answers[key] for key in keys]


def _client(endpoint: Endpoint, api_key: str) -> Any:
    try:
        import openai
    except ImportError:
        raise EndpointError('prompting needs the extra: pip install "ropewalk[llm]"') from None
    return openai.OpenAI(base_url=endpoint.base_url, api_key=api_key, max_retries=0, timeout=endpoint.timeout_s)


def _ask(client: Any, endpoint: Endpoint, messages, budget: Budget, api_key: str, sleep) -> Answer:
    """One answer, with back-off between attempts. Each attempt reserves its cost before it is sent."""
    bound, jitter = endpoint.bound(messages), random.Random(endpoint.key(messages))
    said = "nothing"
    for attempt in range(endpoint.attempts):
        budget.reserve(bound)
        wait: float | None = None
        try:
            answer, said, wait, charged = _send(client, endpoint, messages, api_key)
        except BaseException:
            budget.settle(bound, bound)
            raise
        if answer is not None:
            budget.settle(bound, endpoint.cost(answer, messages))
            return answer
        budget.settle(bound, bound if charged else 0.0)
        if attempt + 1 < endpoint.attempts:
            backed_off = endpoint.first_wait_s * 2**attempt * (0.5 + jitter.random())
            sleep(min(LONGEST_WAIT_S, max(backed_off, wait or 0.0)))
    raise EndpointError(
        f"{endpoint.model}: no answer after {endpoint.attempts} attempts, last: {said}; run again later, what was "
        "answered is kept"
    )


def _send(client: Any, endpoint: Endpoint, messages, api_key: str) -> tuple[Answer | None, str, float | None, bool]:
    """One attempt: the answer, or what went wrong, how long the server asks to wait, and whether it may be charged.

    Raises EndpointError on a refusal that a retry does not cure.
    """
    import openai

    try:
        raw = client.chat.completions.with_raw_response.create(**_named(endpoint.request(messages)))
        answer = _read(raw.http_response.content)
        return answer, "an answer that is not a chat completion", None, True
    except openai.APIStatusError as error:
        status, headers = error.status_code, error.response.headers
        code = str(getattr(error, "code", None) or "")
        if status in RETRIED and code != "insufficient_quota":
            return None, f"HTTP {status}", _seconds(headers.get("retry-after")), False
        advice = {
            401: "check the key in the environment",
            403: "check what the key may use",
            404: "check base_url and model",
            429: "the account has no credit left",
        }.get(status, "check the model's name and the request's fields")
        raise EndpointError(
            f"{endpoint.model}: HTTP {status} {_clean(code, api_key)}; {advice}".replace(" ;", ";")
        ) from None
    except openai.APITimeoutError:
        return None, f"no reply within {endpoint.timeout_s:g} s", None, True
    except openai.APIConnectionError:
        return None, "the connection failed", None, True
    except (openai.APIError, ValueError, UnicodeError):
        return None, "an answer that cannot be read", None, True


def _named(body: dict[str, Any]) -> dict[str, Any]:
    """The body as the client's arguments; fields that it does not know travel as extra_body."""
    known = {"model", "messages", "max_tokens", "max_completion_tokens", "temperature"}
    named = {name: value for name, value in body.items() if name in known}
    if rest := {name: value for name, value in body.items() if name not in known}:
        named["extra_body"] = rest
    return named


def _read(content: bytes) -> Answer | None:
    """The answer in a reply's body; None when it is JSON but no chat completion. Raises ValueError on no JSON."""
    body = json.loads(content)
    try:
        choice = body["choices"][0]
        text, reason = choice["message"]["content"], choice.get("finish_reason")
        usage = body.get("usage") or {}
        counted = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        return None
    if not isinstance(text, str) or not all(n is None or (isinstance(n, int) and n >= 0) for n in counted):
        return None
    return Answer(text, str(reason), *counted)


def _seconds(header: str | None) -> float | None:
    try:
        return None if header is None else max(0.0, float(header))
    except ValueError:
        return None


def _clean(text: str, api_key: str) -> str:
    return text.replace(api_key, "***")[:80] if api_key else text[:80]
