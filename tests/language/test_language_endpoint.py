"""Prompting over HTTP: a real server on loopback that misbehaves in every way that hosted ones do."""

import json
import re
import threading

import pytest
from loopback_server import KEY, Server, solve

from ops.language_models.budget import Budget, CostCapReached
from ops.language_models.endpoint import Answer, EndpointError, ask_all
from ops.language_models.prompted import parse_answer, questions


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
