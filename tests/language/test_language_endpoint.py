"""Prompting over HTTP: a real server on loopback that misbehaves in every way that hosted ones do."""

import importlib.util
import json
import re
import threading

import numpy as np
import pytest
from loopback_server import KEY, Server, solve

from ops.language_models.budget import Budget, CostCapReached
from ops.language_models.endpoint import Answer, EndpointError, ask_all
from ops.language_models.lengths import length_accuracy
from ops.language_models.prompted import draw_items, n_rows, parse_answer, questions
from ops.language_models.replies import wait_asked


class Memory(dict):
    """A cache as the warehouse's, in memory."""

    put = dict.__setitem__


def ask(server, requests, cache=None, cap=10.0, waits=None, **changes):
    waits = [] if waits is None else waits
    patience = 1.0 if "hang" in server.script else 60.0
    return ask_all(
        server.endpoint(**({"timeout_s": patience, "concurrency": 2} | changes)),
        requests,
        Memory() if cache is None else cache,
        Budget(cap) if isinstance(cap, float) else cap,
        KEY,
        sleep=waits.append,
    )


def messages(text):
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("mishap", [429, 500, 503, "hang", "truncated", "malformed", "no choices"])
def test_mishap_is_retried_after_a_wait(mishap):
    waits = []
    with Server([mishap, mishap]) as server:
        answers = ask(server, [messages("one")], waits=waits)
    assert answers == [Answer("A", "stop", 20, 1)]
    assert len(server.seen) == 3
    assert len(waits) == 2
    if mishap == 429:
        assert min(waits) >= 3.0  # what the server asked for
    else:
        assert waits[1] > waits[0] * 2 / 3  # backs off


@pytest.mark.parametrize("mishap", [500, "truncated", "hang"])
def test_gives_up_with_one_sentence(mishap):
    cache = Memory()
    with Server([mishap] * 9) as server, pytest.raises(EndpointError, match="no answer after 3 attempts") as failure:
        ask(server, [messages("one")], cache=cache, attempts=3)
    assert len(server.seen) == 3
    assert not cache
    assert KEY not in str(failure.value)
    assert failure.value.__cause__ is None


@pytest.mark.parametrize(
    ("mishap", "advice"), [(401, "check the key"), (404, "base_url"), (400, "fields"), ("no quota", "credit")]
)
def test_refusal_is_not_retried_and_hides_the_key(mishap, advice):
    with Server([mishap] * 9) as server, pytest.raises(EndpointError, match=advice) as failure:
        ask(server, [messages("one")])
    assert len(server.seen) == 1
    assert KEY not in str(failure.value)
    assert failure.value.__suppress_context__


UNCOUNTED = ("A", "stop", None, None)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"message": {"content": None, "reasoning_content": "Hm"}, "finish_reason": "length"}, ("", "length", 20, 1)),
        ({"message": {"content": ""}}, ("", "stop", 20, 1)),
        ({"message": {"tool_calls": []}, "finish_reason": "tool_calls"}, ("", "tool_calls", 20, 1)),
        ({"message": {"content": None, "refusal": "I cannot."}}, ("I cannot.", "refusal", 20, 1)),
        ({"message": {"content": None}, "finish_reason": "content_filter"}, ("", "content_filter", 20, 1)),
        ({"message": {"content": [{"type": "thinking", "text": "B"}, {"type": "text", "text": "A"}]}}, "A"),
        ({"message": {"content": 3}}, "3"),
        ({"message": {"content": "\ud83dA"}, "finish_reason": "st\udc00op"}, ("\ufffdA", "st\ufffdop", 20, 1)),
        (
            {"message": {"content": "A"}, "usage": {"prompt_tokens": 10**30, "completion_tokens": 1e308}},
            ("A", "stop", None, None),
        ),
        ({"message": {"content": "A"}, "finish_reason": None}, ("A", "unknown", 20, 1)),
        ({"message": {"content": "A"}, "usage": {"prompt_tokens": 20.0, "completion_tokens": "1"}}, "A"),
        ({"message": {"content": "A"}, "usage": None}, UNCOUNTED),
        (
            {"message": {"content": "A"}, "usage": {"prompt_tokens": -1, "completion_tokens": True}},
            ("A", "stop", None, None),
        ),
    ],
)
def test_what_was_paid_for_is_kept_as_what_it_is(reply, answer):
    cache, budget = Memory(), Budget(1.0)
    expected = Answer(*answer) if isinstance(answer, tuple) else Answer(answer, "stop", 20, 1)
    with Server([reply]) as server:
        assert ask(server, [messages("one")], cache=cache, cap=budget) == [expected]
        assert len(server.seen) == len(cache) == 1
        assert budget.spent == pytest.approx(server.endpoint().cost(expected, messages("one")))


def stream(*pieces, end=b"data: [DONE]\n\n"):
    """A reply of server-sent events."""
    lines = b"".join(b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in pieces)
    return (200, {"content-type": "text/event-stream"}, b": ping\n\n" + lines + end)


def piece(finish=None, **delta):
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


USAGE = {"usage": {"prompt_tokens": 20, "completion_tokens": 2}}


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (
            stream(piece(content=""), piece(content="A"), piece(content="B"), piece("stop") | USAGE),
            ("AB", "stop", 20, 2),
        ),
        (stream(piece(content="A"), piece("length"), {"choices": [], **USAGE}, end=b""), ("A", "length", 20, 2)),
        (stream(piece("stop", content=None)), ("", "stop", None, None)),
        (
            (200, {}, {"choices": [{"message": None, "finish_reason": "content_filter"}], **USAGE}),
            ("", "content_filter", 20, 2),
        ),
        ((200, {}, {"choices": [{"text": "A", "finish_reason": "stop"}], **USAGE}), ("A", "stop", 20, 2)),
        (
            (200, {}, b'\xef\xbb\xbf{"choices": [{"message": {"content": "A\xe9"}}]}'),
            ("A\ufffd", "unknown", None, None),
        ),
    ],
)
def test_an_answer_in_another_shape_is_kept_at_the_first_try(reply, answer):
    with Server([reply]) as server:
        assert ask(server, [messages("one")]) == [Answer(*answer)]
        assert len(server.seen) == 1


def test_a_stream_that_breaks_off_is_asked_for_again():
    with Server([stream(piece(content="A"), end=b'data: {"choi')]) as server:
        assert ask(server, [messages("one")]) == [Answer("A", "stop", 20, 1)]
        assert len(server.seen) == 2


@pytest.mark.parametrize("body", [{"detail": "Not Found"}, {"message": {"content": "A"}, "done": True}, []])
def test_a_server_of_another_kind_is_asked_once(body):
    with Server([(200, {}, body)] * 9) as server:
        with pytest.raises(EndpointError, match=r"not a chat completion.*; check base_url"):
            ask(server, [messages("one")])
        assert len(server.seen) == 1


PAGE = b"<!doctype html><title>Sign in</title>"
FINAL = [
    ((400, {}, {"error": {"message": "max_tokens is not supported"}}), "HTTP 400 max_tokens is not supported; check"),
    ((402, {}, {"detail": "pay first"}), "pay first; the account has no credit left"),
    ((403, {}, {"error": {"message": f"{KEY[:12]}… may not"}}), r"\*\*\*… may not; check what the key may use"),
    ((404, {}, {"error": {"message": "no model toy"}}), "no model toy; check base_url and model"),
    ((422, {"content-type": "text/html"}, PAGE), "HTTP 422; check the model's name"),
    ((308, {"location": "http://other/v1"}, {}), "moved to http://other/v1; correct base_url"),
    ((429, {}, {"error": {"type": "billing_not_active", "message": "pay"}}), "no credit left"),
    ((429, {"retry-after": "7200"}, {"error": {"message": "daily limit"}}), "daily limit; it asks to wait 7200 s"),
    ((200, {}, {"error": {"code": 402, "message": "pay"}}), "HTTP 402 402 pay; the account has no credit left"),
    ((200, {}, {"error": {"code": "context_length_exceeded", "message": "too long"}}), "too long; check"),
]


@pytest.mark.parametrize(("reply", "said"), FINAL)
def test_a_refusal_says_the_servers_reason_once_and_costs_nothing(reply, said):
    budget, waits = Budget(1.0), []
    with Server([reply] * 9) as server, pytest.raises(EndpointError, match=said) as failure:
        ask(server, [messages(f"q{i}") for i in range(5)], cap=budget, waits=waits, concurrency=1)
    assert len(server.seen) == 1  # no other question either
    assert not waits
    assert budget.spent == budget.reserved == 0
    assert KEY[:12] not in str(failure.value)


def test_a_web_page_is_no_answer_and_is_not_asked_for_again():
    with Server([(200, {"content-type": "text/html"}, PAGE)] * 9) as server:
        with pytest.raises(EndpointError, match="a web page, not a chat completion; check base_url"):
            ask(server, [messages("one")])
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({"retry-after": "20"}, 20.0), ({"retry-after": "90"}, 90.0), ({"retry-after-ms": "30000"}, 30.0)],
)
def test_the_wait_that_the_server_asks_for_is_kept(headers, wait):
    waits = []
    with Server([(429, headers, {})]) as server:
        ask(server, [messages("one")], waits=waits)
    assert waits == [wait]


def test_a_date_to_wait_for_is_read_by_the_servers_clock():
    headers = {"date": "Tue, 01 Dec 2026 10:00:00 GMT", "retry-after": "Tue, 01 Dec 2026 10:01:30 GMT"}
    assert wait_asked(headers) == 90.0
    assert wait_asked(headers | {"date": headers["retry-after"]}) == 0.0


@pytest.mark.parametrize("given", ["soon", "nan", "-5", "inf", ""])
def test_a_wait_without_sense_is_left_aside(given):
    assert not wait_asked({"retry-after": given})


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY}\r\n", f" {KEY}", f"\t{KEY} "])
def test_blanks_around_a_key_are_dropped(key):
    with Server() as server:
        ask_all(server.endpoint(), [messages("q")], Memory(), Budget(1.0), key)
    assert server.seen[0][1] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("\u201csk-abc\u201d", "quotation marks"),
        ('"sk-abc"', "quotation marks"),
        ("sk-\nabc", r"U\+000A"),
        ("sk-ab\u200bc", r"U\+200B"),
        ("sk-\u043ebc", r"U\+043E"),
        ("  ", "is empty"),
    ],
)
def test_what_cannot_be_a_key_is_never_sent(key, said):
    budget = Budget(1.0)
    with Server() as server:
        with pytest.raises(EndpointError, match=said) as failure:
            ask_all(server.endpoint(), [messages("q")], Memory(), budget, key)
        assert not server.seen
    assert budget.spent == 0
    assert "abc" not in str(failure.value)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("SSL_CERT_FILE", "/nowhere/ca.pem", "SSL_CERT_FILE"),
        ("ALL_PROXY", "socks://127.0.0.1:9", "proxy"),
        ("ALL_PROXY", "socks5://127.0.0.1:9", "socksio"),
        ("SSLKEYLOGFILE", "/nowhere/keys.log", "SSLKEYLOGFILE"),
        ("OPENAI_ORG_ID", "org\n", "cannot be sent"),
        ("OPENAI_ORG_ID", "\u201corg\u201d", "check OPENAI_ORG_ID"),
    ],
)
def test_an_environment_that_cannot_work_is_one_sentence_and_no_request(variable, value, said, monkeypatch):
    if value.startswith("socks5") and importlib.util.find_spec("socksio"):
        pytest.skip("socksio is installed")
    monkeypatch.setenv(variable, value)
    budget, waits = Budget(1.0), []
    with Server() as server:
        with pytest.raises(EndpointError, match=said) as failure:
            ask(server, [messages("q")], cap=budget, waits=waits)
        assert not server.seen
    assert not waits
    assert budget.spent == 0
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("url", "requests", "said"),
    [
        ("http://127.0.0.1:1/v1", 3, "no connection to .*refused"),
        ("ftp://127.0.0.1/v1", 1, "cannot be sent"),
        ("127.0.0.1:8000/v1", 1, "cannot be sent"),
        ("http://127.0.0.1:port/v1", 1, "base_url"),
        ("http://nowhere.invalid/v1", 1, "no connection to .*check base_url"),
    ],
)
def test_what_never_left_costs_nothing(url, requests, said):
    budget, waits = Budget(1.0), []
    with Server() as server, pytest.raises(EndpointError, match=said):
        ask(server, [messages("q")], cap=budget, waits=waits, base_url=url, attempts=3)
    assert len(waits) == requests - 1
    assert budget.spent == budget.reserved == 0


def test_https_at_a_server_that_does_not_speak_it_is_tried_once():
    budget, waits = Budget(1.0), []
    with Server() as server:
        url = server.endpoint().base_url.replace("http", "https")
        with pytest.raises(EndpointError, match="no connection"):
            ask(server, [messages("q")], cap=budget, waits=waits, base_url=url)
    assert not waits
    assert budget.spent == 0


def test_the_answer_that_another_process_kept_first_is_the_one():
    class First(Memory):
        def put(self, key, value):
            self[key] = Answer("B", "stop", 20, 1)

    with Server() as server:
        assert ask(server, [messages("q")], cache=First())[0].text == "B"


def test_rerun_sends_nothing_and_repeats_are_sent_once():
    cache = Memory()
    with Server(reply=lambda body: body["messages"][0]["content"][-1]) as server:
        requests = [messages(f"question {i % 3}") for i in range(9)]
        first = ask(server, requests, cache=cache)
        assert [answer.text for answer in first] == [str(i % 3) for i in range(9)]
        assert len(server.seen) == 3
        assert ask(server, requests, cache=cache) == first
        assert len(server.seen) == 3
        ask(server, requests[:1], cache=cache, max_tokens=5)
        assert len(server.seen) == 4  # another request, another answer


def test_failure_keeps_what_was_answered_and_resumes():
    cache = Memory()
    with Server([None, None, 400]) as server:
        requests = [messages(f"q{i}") for i in range(6)]
        with pytest.raises(EndpointError):
            ask(server, requests, cache=cache, concurrency=1)
        kept, sent = len(cache), len(server.seen)
        assert kept >= 2
        ask(server, requests, cache=cache, concurrency=1)
        assert len(server.seen) == sent + 6 - kept


def test_never_more_requests_at_once_than_allowed():
    with Server() as server:
        server.together = threading.Barrier(3)
        ask(server, [messages(f"q{i}") for i in range(12)], concurrency=3)
    assert server.most_open == 3


def test_cap_is_reserved_before_sending():
    cache = Memory()
    with Server() as server:
        endpoint = server.endpoint()
        bound = endpoint.bound(messages("q0"))
        assert bound > endpoint.cost(Answer("A", "stop", 20, 1), messages("q0")) > 0
        budget = Budget(bound * 0.9)
        with pytest.raises(CostCapReached, match="raise cost_cap_usd"):
            ask(server, [messages("q0")], cap=budget)
        assert not server.seen
        budget = Budget(bound + 1.5 * endpoint.cost(Answer("A", "stop", 20, 1), messages("q0")))
        with pytest.raises(CostCapReached):
            ask(server, [messages(f"q{i}") for i in range(9)], cache=cache, cap=budget, concurrency=4)
        assert (
            len(server.seen) == len(cache) == 2
        )  # waits for what is in flight, then goes on as far as the cap reaches
        assert budget.spent <= budget.cap
        assert budget.reserved == pytest.approx(0)


def test_uncounted_and_lost_answers_are_charged_at_their_bound():
    for script, usage, n in (((), False, 1), (("hang",), True, 1)):
        with Server(script, usage=usage) as server:
            budget = Budget(1.0)
            ask(server, [messages("q")], cap=budget)
            bound = server.endpoint().bound(messages("q"))
            assert budget.spent >= n * bound


def test_key_is_in_the_header_and_nowhere_else():
    cache = Memory()
    with Server() as server:
        endpoint = server.endpoint(extra={"reasoning_effort": "none"}, max_tokens_field="max_completion_tokens")
        ask_all(endpoint, [messages("q")], cache, Budget(1.0), KEY)
    body, header = server.seen[0]
    assert header == f"Bearer {KEY}"
    assert body["reasoning_effort"] == "none"
    assert body["max_completion_tokens"] == 4
    assert KEY not in json.dumps([list(cache), [repr(a) for a in cache.values()], repr(endpoint), body])


@pytest.mark.parametrize("task", ["number", "letter"])
def test_both_tasks_end_to_end_over_http(task):
    asked = questions(task, length=24, run=3, n_items=48, n_shots=3)
    with Server([429, "malformed", 500], reply=solve) as server:
        answers = ask(server, [q.messages for q in asked], concurrency=4)
    assert [parse_answer(task, a.text) for a in answers] == [q.expected for q in asked]
    shots = [m["content"] for m in asked[0].messages if m["role"] == "assistant"]
    users = [m["content"] for m in asked[0].messages if m["role"] == "user"]
    assert shots == [solve({"messages": [{"content": text}]}) for text in users[:-1]]


@pytest.mark.parametrize("task", ["number", "letter"])
def test_answers_are_spread_over_the_window(task):
    asked = questions(task, length=12, run=0, n_items=240, n_shots=0)
    places = []
    for question in asked:
        *row, query = question.messages[-1]["content"].split()
        assert len(row) == 12
        if task == "number":
            places.append(12 - int(query))
        else:
            found = [i for i, pair in enumerate(row) if pair[0] == query[1]]
            assert len(found) == 1
            places += found
    assert {places.count(i) for i in range(12)} == {20}
    assert questions(task, 12, 0, 240, 0) == asked
    assert questions(task, 12, 1, 240, 0) != asked


@pytest.mark.parametrize("task", ["number", "letter"])
def test_a_runs_questions_differ_and_none_is_among_its_shots(task):
    asked = questions(task, length=2, run=0, n_items=1_000, n_shots=20)
    assert len({question.messages[-1]["content"] for question in asked}) == 1_000
    for question in asked:
        rows = [m["content"] for m in question.messages if m["role"] == "user"]
        assert len(set(rows)) == 21


def test_as_many_rows_as_a_window_has_and_no_more():
    stream = np.random.default_rng(0)
    assert n_rows("number", 2) == 1_352
    assert n_rows("letter", 2) == len("ABCDEFGH") ** 2 * 2 * 7 * 8 * 8
    assert len({item.row for item in draw_items("number", 2, 1_352, stream)}) == 1_352
    with pytest.raises(ValueError, match="1352 different rows, too few for 1353"):
        draw_items("number", 2, 1_353, stream)


def test_too_few_rows_are_refused_before_anything_is_asked():
    with pytest.raises(ValueError, match=r"number window of 2 .* lower n_items"):
        length_accuracy(None, ("letter", "number"), (16, 2), [0], 2_000, 0, 0.85, False)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("A", "A"),
        (" B\n", "B"),
        ("a", None),
        ("A.", None),
        ("The letter is A", None),
        ("", None),
        ("AB", None),
        ("3", None),
    ],
)
def test_answers_are_parsed_strictly(text, answer):
    assert parse_answer("number", text) == answer
    assert parse_answer("letter", re.sub("[AB]", "7", text).replace("77", "78")) == (
        answer and "7" if text != "3" else "3"
    )
