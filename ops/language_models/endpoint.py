"""Questions to any OpenAI-compatible endpoint: cached, retried with back-off, a few at a time, under a hard cost cap.

The key is an argument of `ask_all` and stands in no setting, key, answer or error. The `openai` package is imported
when a question is sent, not before.
"""

import hashlib
import json
import random
import re
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Protocol

from ops.language_models.budget import Budget, CostCapReached
from ops.language_models.prompted import Message
from ops.language_models.replies import ADVICE, RETRIED, Answer, Fault, hidden, read_refusal, read_reply

__all__ = ["RETRIED", "Answer", "AnswerCache", "Endpoint", "EndpointError", "ask_all", "usable_key"]

LONGEST_WAIT_S = 60.0
LONGEST_WAIT_ASKED_S = 600.0
QUOTES = "\"'`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"


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
    sleep: Callable[[float], object] | None = None,
) -> list[Answer]:
    """An answer to each of `requests` (chat messages), in their order. A repeated question is sent once.

    Each answer is in `cache` before the next is awaited, so a rerun sends only what is missing. `report` gets done,
    total, US dollars spent; `sleep` gets seconds. An answer without words is an answer: it is paid for and kept.
    Raises CostCapReached before a request that the cap does not cover, EndpointError when a request is refused, cannot
    be sent or fails `attempts` times; then nothing else is tried, and answers that had arrived are kept.
    """
    keys = [endpoint.key(messages) for messages in requests]
    answers = {key: answer for key in dict.fromkeys(keys) if (answer := cache.get(key)) is not None}
    missing = {key: messages for key, messages in zip(keys, requests, strict=True) if key not in answers}
    report(len(answers), len(answers) + len(missing), budget.spent)
    if missing:
        total = len(answers) + len(missing)
        asking = _Asking(endpoint, budget, usable_key(api_key, f"{endpoint.model}: the key"), sleep)
        pool = ThreadPoolExecutor(endpoint.concurrency, thread_name_prefix="ask")
        try:
            futures = {pool.submit(asking.ask, messages): key for key, messages in missing.items()}
            failure: Exception | None = None
            for future in as_completed(futures):
                if future.cancelled():
                    continue
                error = future.exception()
                if error is None:
                    key = futures[future]
                    cache.put(key, future.result())
                    answers[key] = cache.get(key) or future.result()  # another process may have kept its own first
                    report(len(answers), total, budget.spent)
                elif not isinstance(error, (EndpointError, CostCapReached)):
                    raise error
                elif failure is None or isinstance(failure, _Stopped):
                    failure = error
                    for waiting in futures:
                        waiting.cancel()
            if failure is not None:
                raise failure
        finally:
            asking.stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
            asking.client.close()
    return [answers[key] for key in keys]


def usable_key(api_key: str, what: str) -> str:
    """The key without blanks and line breaks around it. Raises EndpointError, naming `what`, if no header can hold it.

    `what` names the key without showing it.
    """
    key = api_key.strip()
    if key and (key[0] in QUOTES or key[-1] in QUOTES):
        raise EndpointError(f"{what} stands in quotation marks; set it without them")
    if not key:
        raise EndpointError(f"{what} is empty; put the key there")
    if odd := next((c for c in key if not "!" <= c <= "~"), None):
        raise EndpointError(f"{what} holds the character U+{ord(odd):04X}, which no key has; copy it again")
    return key


class _Stopped(EndpointError):
    """Another request has failed for good, so this one is not tried (again)."""


class _Asking:
    """One client and one budget for all requests; `stopped` once one of them has failed for good."""

    def __init__(self, endpoint: Endpoint, budget: Budget, api_key: str, sleep: Callable[[float], object] | None):
        self.endpoint, self.budget, self.api_key = endpoint, budget, api_key
        self.client = _client(endpoint, api_key)
        self.stopped = threading.Event()
        self.sleep = sleep or self.stopped.wait

    def ask(self, messages: Sequence[Message]) -> Answer:
        """One answer, with back-off between attempts. Each attempt reserves its cost before it is sent."""
        try:
            return self._ask(messages)
        except BaseException:
            self.stopped.set()
            raise

    def _ask(self, messages: Sequence[Message]) -> Answer:
        endpoint, bound = self.endpoint, self.endpoint.bound(messages)
        jitter, said = random.Random(endpoint.key(messages)), "nothing"
        for attempt in range(endpoint.attempts):
            if self.stopped.is_set():
                raise _Stopped(f"{endpoint.model}: not asked, since another request failed")
            reply = self._paid(messages, bound)
            if isinstance(reply, Answer):
                return reply
            said = hidden(reply.said, self.api_key)
            if not reply.retry:
                raise EndpointError(f"{endpoint.model}: {said}") from None
            if (reply.wait_s or 0.0) > LONGEST_WAIT_ASKED_S:
                raise EndpointError(
                    f"{endpoint.model}: {said}; it asks to wait {reply.wait_s:.0f} s, run again after that, what was "
                    "answered is kept"
                ) from None
            if attempt + 1 < endpoint.attempts:
                backed_off = endpoint.first_wait_s * 2**attempt * (0.5 + jitter.random())
                self.sleep(max(min(LONGEST_WAIT_S, backed_off), reply.wait_s or 0.0))
        raise EndpointError(
            f"{endpoint.model}: no answer after {endpoint.attempts} attempts, last: {said}; run again later, what was "
            "answered is kept"
        ) from None

    def _paid(self, messages: Sequence[Message], bound: float) -> Answer | Fault:
        """One attempt, its cost reserved before and settled after; one that is broken off may have been paid for."""
        self.budget.reserve(bound)
        cost = bound
        try:
            reply = _send(self.client, self.endpoint, messages)
            if isinstance(reply, Answer):
                cost = self.endpoint.cost(reply, messages)
            elif reply.charged == "nothing":
                cost = 0.0
            return reply
        finally:
            self.budget.settle(bound, cost)


def _client(endpoint: Endpoint, api_key: str) -> Any:
    """The openai client. Redirects are not followed: they would turn a question into another request."""
    try:
        import openai
    except ImportError:
        raise EndpointError('prompting needs the extra: pip install "ropewalk[llm]"') from None
    try:
        web = openai.DefaultHttpxClient(timeout=endpoint.timeout_s, follow_redirects=False)
        return openai.OpenAI(
            base_url=endpoint.base_url, api_key=api_key, max_retries=0, timeout=endpoint.timeout_s, http_client=web
        )
    except ImportError:
        raise EndpointError(
            f"{endpoint.model}: the environment names a SOCKS proxy (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY), which "
            "needs the package socksio; pip install socksio, or unset the variable"
        ) from None
    except OSError as error:
        raise EndpointError(
            f"{endpoint.model}: the certificates named by SSL_CERT_FILE or SSL_CERT_DIR cannot be read, or the file "
            f"SSLKEYLOGFILE cannot be written ({error.strerror or error}); correct the variable or unset it"
        ) from None
    except Exception as error:
        if not isinstance(error, ValueError) and type(error).__name__ != "InvalidURL":
            raise
        raise EndpointError(
            f"{endpoint.model}: base_url {endpoint.base_url} or a proxy in the environment (ALL_PROXY, HTTPS_PROXY, "
            f"HTTP_PROXY) is no address that can be used ({hidden(str(error), api_key)}); correct it"
        ) from None


def _send(client: Any, endpoint: Endpoint, messages: Sequence[Message]) -> Answer | Fault:
    """One attempt: the answer, or why there is none."""
    import openai

    try:
        raw = client.chat.completions.with_raw_response.create(**_named(endpoint.request(messages)))
    except openai.APIStatusError as error:
        return read_refusal(error.status_code, error.body, error.response.headers)
    except openai.APIConnectionError as error:
        return _unreached(error, endpoint)
    except (openai.OpenAIError, ValueError, TypeError) as error:
        words = " ".join(str(error).split())[:200]
        check = "OPENAI_ORG_ID and OPENAI_PROJECT_ID" if isinstance(error, UnicodeError) else "the request's fields"
        return Fault(f"the request cannot be sent ({words}); check {check}", False, "nothing")
    reply = raw.http_response
    return read_reply(reply.content, reply.headers.get("content-type", ""))


def _unreached(error: Exception, endpoint: Endpoint) -> Fault:
    """What a broken connection means, by the first cause: before the request was sent nothing can have been charged."""
    cause = error.__cause__ or error
    kind, words = type(cause).__name__, " ".join(str(cause).split())[:200] or "no reason given"
    where = f"{endpoint.base_url}, or to the proxy that the environment names"
    if kind in ("ConnectTimeout", "PoolTimeout"):
        return Fault(f"no connection to {where} within {endpoint.timeout_s:g} s", True, "nothing")
    if kind in ("ReadTimeout", "WriteTimeout") or "Timeout" in kind:
        return Fault(f"no reply within {endpoint.timeout_s:g} s", True, "bound")
    if kind in ("LocalProtocolError", "UnsupportedProtocol", "InvalidURL"):
        return Fault(f"the request cannot be sent ({words}); check base_url and the environment", False, "nothing")
    if kind == "ProxyError":
        status = re.match(r"(\d{3})\b", words)
        final = status is not None and int(status.group(1)) not in RETRIED
        advice = f"; {ADVICE[407]}" if final else ""
        return Fault(f"the proxy does not let the request through ({words}){advice}", not final, "nothing")
    if kind == "ConnectError":
        advice = _final_connection(cause, words)
        return Fault(f"no connection to {where}: {words}{advice or ''}", advice is None, "nothing")
    return Fault(f"the connection broke off ({words})", True, "bound")


def _final_connection(cause: BaseException, words: str) -> str | None:
    """The advice where no other attempt can succeed: a name that nobody has, or a certificate that is not trusted."""
    if "CERTIFICATE" in words.upper():
        return "; name your network's certificates in SSL_CERT_FILE (REQUESTS_CA_BUNDLE is not read)"
    if "WRONG_VERSION_NUMBER" in words or "unknown protocol" in words:
        return "; the server does not speak https, check base_url"
    chain: BaseException | None = cause
    while chain is not None:
        if isinstance(chain, socket.gaierror) and chain.errno == socket.EAI_NONAME:
            return "; check base_url, or the network"
        chain = chain.__cause__ or chain.__context__
    return None


def _named(body: dict[str, Any]) -> dict[str, Any]:
    """The body as the client's arguments; fields that it does not know travel as extra_body."""
    known = {"model", "messages", "max_tokens", "max_completion_tokens", "temperature"}
    named = {name: value for name, value in body.items() if name in known}
    if rest := {name: value for name, value in body.items() if name not in known}:
        named["extra_body"] = rest
    return named
