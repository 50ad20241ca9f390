"""The two stages in Dagster, on a tiny local model and a loopback server: tables, claims, cache, no secret anywhere."""

import json
import math
from itertools import pairwise

import dagster as dg
import duckdb
import pytest
from loopback_server import KEY, Server, solve
from made_tokenizers import made_tokenizer

from assets.builder import StoreResource
from assets.prompting import api_key
from ops.language_models.endpoint import EndpointError
from ops.spec.language_models import EndpointSpec
from ops.spec.study import SpecError
from ops.tasks.registry import parse_study
from pipeline.factory import build_assets

STUDY = """
study: lm
description: A tiny model and a loopback server.
executor: in_process
experiments:
  tiny_lm:
    language_model:
      source: {folder}
      prompts:
        - {{kind: binding, n_prompts: 2, n_pairs: 4}}
        - {{kind: text, n_prompts: 2, n_blocks: 4, block_tokens: 2}}
  asked:
    prompting:
      cost_cap_usd: 1.0
      lengths: {lengths}
      n_runs: 2
      n_items: 6
      model: {{kind: endpoint, model: toy, base_url: {url}, api_key_env: TOY_KEY, input_price: 1.0, output_price: 1.0}}
"""


@pytest.fixture
def folder(tmp_path, build_model):
    """A tiny Llama with a tokenizer, as save_pretrained leaves them."""
    place = tmp_path / "model"
    build_model("llama", vocab_size=1500).save_pretrained(place)
    made_tokenizer("byte", True).save_pretrained(place)
    return place


def run(text, store):
    """Execute the study; success, and cache hit or miss by asset."""
    assets = build_assets([parse_study(text, "lm.yaml")])
    chosen = [asset for asset in assets if not asset.keys & {dg.AssetKey("charts"), dg.AssetKey("report")}]
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            chosen, instance=instance, resources={"store": StoreResource(root=str(store))}, raise_on_error=False
        )
    events = result.get_asset_materialization_events()
    return result.success, {e.asset_key.to_user_string(): e.materialization.metadata["cache"].value for e in events}


def test_from_yaml_to_claims_and_nothing_twice(tmp_path, folder, monkeypatch):
    monkeypatch.setenv("TOY_KEY", KEY)
    store = tmp_path / "store"
    with Server(reply=solve) as server:
        url = server.endpoint().base_url
        text = STUDY.format(folder=folder, url=url, lengths=[12, 16, 24])
        assert run(text, store)[0]
        assert len(server.seen) == 2 * 3 * 2 * 6
        success, cache = run(text, store)
        assert success
        assert set(cache.values()) == {"hit"}
        assert len(server.seen) == 72
        longer = STUDY.format(folder=folder, url=url, lengths=[12, 16, 24, 32])
        success, cache = run(longer, store)
        assert success
        assert cache["asked/prompting_s0"] == "miss"
        assert cache["tiny_lm/language_models_s0"] == "hit"
        assert len(server.seen) == 72 + 2 * 2 * 6  # only the new length is asked

    with duckdb.connect(str(store / "warehouse.duckdb"), read_only=True) as connection:
        rows = connection.sql
        assert rows("SELECT DISTINCT prompts FROM lm_head_scores ORDER BY 1").fetchall() == [
            ("binding/names-things",),
            ("text",),
        ]
        kinds = ["none", "random-logits", "untrained"]
        assert [k for (k,) in rows("SELECT DISTINCT null_kind FROM lm_correlation ORDER BY 1").fetchall()] == kinds
        assert rows("SELECT max(score_error) < 1e-5, count(*) FROM lm_verification").fetchall()[0] == (True, 2 * 2 * 4)
        assert rows("SELECT bool_and(screened), avg(accuracy) FROM lm_length_accuracy").fetchall()[0] == (True, 1.0)
        assert rows("SELECT count(*) FROM lm_answers WHERE raw = expected").fetchall()[0] == (96,)
        verdicts = dict(rows("SELECT id, verdict FROM claims WHERE basis = 'language models'").fetchall())
        assert set(verdicts) == {
            "scores-anticorrelated",
            "early-positional-late-symbolic",
            "high-frequency-positional",
            "llm-letter-beats-number",
        }
        assert verdicts["llm-letter-beats-number"] == "not reproduced"  # both tasks are solved alike
        assert "random logits" in rows("SELECT detail FROM claims WHERE id = 'scores-anticorrelated'").fetchall()[0][0]
    for path in store.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


def test_empty_replies_are_kept_with_their_reason_and_said(tmp_path, folder, monkeypatch):
    monkeypatch.setenv("TOY_KEY", KEY)
    silent = {"message": {"content": None}, "finish_reason": "length"}
    with Server([silent] * 99) as server:
        text = STUDY.format(folder=folder, url=server.endpoint().base_url, lengths=[16])
        assert run(text, tmp_path / "store")[0]
        assert len(server.seen) == 12
    with duckdb.connect(str(tmp_path / "store" / "warehouse.duckdb"), read_only=True) as connection:
        query = "SELECT DISTINCT raw, answer, finish_reason, prompt_tokens, completion_tokens FROM lm_answers"
        assert connection.sql(query).fetchall() == [("", None, "length", 20, 1)]
    summaries = [json.loads(p.read_text())["summary"] for p in (tmp_path / "store").glob("artifacts/prompting/*/m*")]
    (check,) = (summary["checks"]["replies_have_words"] for summary in summaries)
    assert check == {"passed": False, "measured": {"n_replies": 12, "n_empty": 12, "n_empty_length": 12}}


def test_a_model_at_chance_is_asked_no_further_and_decides_nothing(tmp_path, folder, monkeypatch):
    monkeypatch.setenv("TOY_KEY", KEY)
    with Server(reply=lambda body: "1") as server:
        text = STUDY.format(folder=folder, url=server.endpoint().base_url, lengths=[12, 16, 24])
        assert run(text, tmp_path / "store")[0]
        assert len(server.seen) == 12
    with duckdb.connect(str(tmp_path / "store" / "warehouse.duckdb"), read_only=True) as connection:
        assert connection.sql("SELECT DISTINCT task, length, screened FROM lm_length_accuracy").fetchall() == [
            ("letter", 16, False)
        ]
        found = connection.sql("SELECT verdict FROM claims WHERE id = 'llm-letter-beats-number'").fetchall()[0]
        assert found == ("not run",)


def test_the_cap_stops_the_stage_and_a_higher_one_goes_on(tmp_path, folder, monkeypatch):
    monkeypatch.setenv("TOY_KEY", KEY)
    with Server(reply=solve) as server:
        text = STUDY.format(folder=folder, url=server.endpoint().base_url, lengths=[12, 16])
        low = text.replace("cost_cap_usd: 1.0", "cost_cap_usd: 0.0015")
        success, _ = run(low, tmp_path / "store")
        assert not success
        sent = len(server.seen)
        assert 0 < sent < 48
        assert run(text, tmp_path / "store")[0]
        assert len(server.seen) == 48  # what was answered under the low cap is not asked again


def test_the_key_comes_from_the_environment_only():
    spec = EndpointSpec(model="m", input_price=1.0, output_price=1.0)
    assert api_key(spec, {"OPENAI_API_KEY": "k"}) == "k"
    with pytest.raises(ValueError, match="OPENAI_API_KEY is not set"):
        api_key(spec, {})
    assert api_key(spec, {"OPENAI_API_KEY": " k\n"}) == "k"
    with pytest.raises(ValueError, match="OPENAI_API_KEY is not set"):
        api_key(spec, {"OPENAI_API_KEY": "\n"})
    with pytest.raises(EndpointError, match="environment variable OPENAI_API_KEY stands in quotation marks"):
        api_key(spec, {"OPENAI_API_KEY": "\u201ck\u201d"})
    assert api_key(spec.model_copy(update={"base_url": "http://localhost:1/v1"}), {}) == "none"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[12, 16, 24]", "[12, 24]", "16"),
        ("input_price: 1.0, ", "", "input_price: is missing"),
        ("http://", "http://user:secret@", "base_url"),
        ("kind: text", "kind: poem", "poem"),
        ("n_pairs: 4", "n_pairs: 1", "n_pairs"),
        ("cost_cap_usd: 1.0", "cost_cap_usd: -1.0", "cost_cap_usd"),
    ],
)
def test_a_wrong_study_is_one_sentence(old, new, said):
    text = STUDY.format(folder="smollm2", url="http://127.0.0.1:1/v1", lengths=[12, 16, 24])
    assert old in text
    with pytest.raises(SpecError, match=said) as failure:
        parse_study(text.replace(old, new), "lm.yaml")
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(("r", "n"), [(0.1, 12), (-0.4, 30), (-0.9, 40), (0.62, 270)])
def test_the_p_value_in_sql_is_that_of_students_t(r, n, tmp_path):
    from importlib.resources import files

    from scipy import stats

    x = [math.cos(1.7 * i) for i in range(n)]
    y = [math.sin(0.9 * i * i) for i in range(n)]
    mean_x, mean_y = sum(x) / n, sum(y) / n
    x, y = [v - mean_x for v in x], [v - mean_y for v in y]
    slope = sum(a * b for a, b in zip(x, y, strict=True)) / sum(a * a for a in x)
    rest = [b - slope * a for a, b in zip(x, y, strict=True)]
    norm_x, norm_r = (math.sqrt(sum(v * v for v in values)) for values in (x, rest))
    made = [r * a / norm_x + math.sqrt(1 - r * r) * b / norm_r for a, b in zip(x, rest, strict=True)]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE lm_prompt_scores (experiment TEXT, seed INT, model TEXT, prompts TEXT, tau DOUBLE, "
            "null_kind TEXT, prompt INT, positional_score DOUBLE, symbolic_score DOUBLE)"
        )
        connection.executemany(
            "INSERT INTO lm_prompt_scores VALUES ('e', 0, 'm', 'p', 0.01, 'none', 0, ?, ?)",
            list(zip(x, made, strict=True)),
        )
        select = (files("warehouse") / "sql" / "lm_correlation.sql").read_text()
        ((found_r, p, found_n),) = connection.sql(f"SELECT r, p, n FROM ({select})").fetchall()
    assert (found_r, found_n) == (pytest.approx(r), n)
    expected = 2 * stats.t.sf(abs(r) * math.sqrt((n - 2) / (1 - r * r)), n - 2)
    assert p == pytest.approx(expected, rel=1e-3)
    assert all(a <= b for a, b in pairwise([0.0, p, 1.0]))
