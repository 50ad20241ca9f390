"""Head scores against golden vectors and a brute-force oracle: swap the layer's input for real, run the layer again."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from ops.model.gptj import GPTJ
from ops.scores import brute_force
from ops.scores.brute_force import brute_force_error, brute_force_scores
from ops.scores.heads import head_details, score_heads
from ops.spec.model import ModelSpec

TAUS = (1e-4, 1e-2, 1.0)


@pytest.fixture(scope="module")
def reference(golden):
    """inputs.npz and scores.npz in one dictionary, and the model they belong to."""
    values = {}
    for name in ("inputs", "scores"):
        with np.load(golden / f"{name}.npz") as stored:
            values |= dict(stored)
    model = GPTJ(ModelSpec(n_layers=3, n_heads=2, width=32, dropout=0.0), 137)
    model.load_state_dict(load_file(golden / "gptj_small.safetensors"))
    return values, model.eval()


@pytest.mark.parametrize("task", ["number", "letter"])
@pytest.mark.parametrize(
    ("precision", "dtype", "tolerances"), [("f64", torch.float64, (1e-10, 1e-10)), ("f32", torch.float32, (2e-3, 1e-5))]
)
def test_golden_scores(reference, task, precision, dtype, tolerances):
    values, model = reference
    model.to(dtype)
    ids = torch.from_numpy(values[f"{task}_ids"])
    taus = values["taus"].tolist()
    last = score_heads(model, ids, taus=taus)
    hops = score_heads(model, ids, torch.from_numpy(values[f"{task}_hop_queries"]), taus)
    assert last.dtype == torch.float64
    for k, tolerance in enumerate(tolerances):
        np.testing.assert_allclose(
            last[:, k], values[f"{task}_last_{precision}"][:, k], rtol=0, atol=tolerance, err_msg=f"tau {taus[k]}"
        )
        np.testing.assert_allclose(
            hops[:, :, k], values[f"{task}_hops_{precision}"][:, :, k], rtol=0, atol=tolerance, equal_nan=True
        )


def logit_row(layer, hidden, n, head, n_heads, rotary_dims, theta, present, scale):
    """One head's logits of the query at n over positions 0 … n: LayerNorm, projections, RoPE, in loops."""
    norm = layer.ln_1
    centred = hidden - hidden.mean(-1, keepdims=True)
    normed = centred / np.sqrt(centred.var(-1, keepdims=True) + norm.eps)
    normed = normed * norm.weight.detach().numpy() + norm.bias.detach().numpy()
    size = hidden.shape[-1] // n_heads
    rows = slice(head * size, (head + 1) * size)
    query = layer.attn.q_proj.weight.detach().numpy()[rows] @ normed[n]
    logits = []
    for p in range(n + 1):
        key = layer.attn.k_proj.weight.detach().numpy()[rows] @ normed[p]
        logit = query[rotary_dims:] @ key[rotary_dims:]
        for plane, angle in enumerate(theta):
            if present[plane]:
                pair = slice(2 * plane, 2 * plane + 2)
                turn = [
                    np.array([[np.cos(t * angle), -np.sin(t * angle)], [np.sin(t * angle), np.cos(t * angle)]])
                    for t in (n, p)
                ]
                logit += (turn[0] @ query[pair]) @ (turn[1] @ key[pair])
        logits.append(scale * logit)
    return np.array(logits)


def softmax(logits):
    e = np.exp(logits - logits.max())
    return e / e.sum()


def direction(logits):
    """Unit vector along the attention on two keys: the row's normaliser drops out, so it never underflows."""
    pair = np.exp(logits - logits.max())
    return pair / np.linalg.norm(pair)


def oracle(model, ids, n, tau):
    """layer × head × (positional, symbolic, own mass), swapping positions of the layer's input one pair at a time."""
    table = model.rotary
    out = np.zeros((model.spec.n_layers, model.spec.n_heads, 3))
    for state in model.layers(ids[None]):
        hidden = state.hidden[0].detach().numpy()
        for head in range(model.spec.n_heads):
            arguments = (
                n, head, model.spec.n_heads, 2 * model.spec.n_frequencies, table.theta[state.layer, head].numpy(),
                table.present[state.layer, head].numpy(), float(table.logit_scale[state.layer, head]),
            )  # fmt: skip
            layer = model.blocks[state.layer]
            row = logit_row(layer, hidden, *arguments)
            base = softmax(row)
            terms = []
            for i in range(n):
                for j in range(i + 1, n):
                    swapped = hidden.copy()
                    swapped[[i, j]] = hidden[[j, i]]
                    after = direction(logit_row(layer, swapped, *arguments)[[i, j]])
                    before = direction(row[[i, j]])
                    terms.append((abs(base[i] - base[j]), after @ before, after @ before[::-1]))
            gap, pos, sym = np.array(terms).T
            weight = np.exp((gap - gap.max()) / tau)
            weight /= weight.sum()
            out[state.layer, head] = weight @ pos, weight @ sym, base[n]
    return out


def build(scale, **options):
    torch.manual_seed(7)
    spec = ModelSpec(**({"n_layers": 2, "n_heads": 2, "width": 32, "initial_std": 0.3, "dropout": 0.0} | options))
    model = GPTJ(spec, 40).double().eval()
    with torch.no_grad():
        for layer in model.blocks:
            layer.ln_1.weight.normal_(1, 0.3)
            layer.ln_1.bias.normal_(0, 0.3)
            layer.attn.q_proj.weight.mul_(scale)
    return model, torch.randint(1, 40, (2, 9))


@pytest.mark.parametrize(
    ("scale", "options"),
    [
        (1.0, {}),
        (30.0, {}),  # extreme: attention on one key, the rest down to e^-300
        (0.01, {"n_heads": 1}),
        (1.0, {"rotary_dims": 8}),  # plain dimensions beside the planes
        (1.0, {"rotary_dims": 0}),
        (3.0, {"frequencies_rotating": "1-3"}),
        (3.0, {"frequencies_present": [2, 5], "frequencies_rotating": [2]}),
        (1.0, {"nope_from_layer": 1}),
        (3.0, {"plane_frequencies": [3]}),  # one frequency in all planes
        (3.0, {"plane_frequencies": [0, 2, 2], "rotary_dims": 12}),
    ],
)
def test_scores_equal_swapping_the_layers_input(scale, options):
    model, ids = build(scale, **options)
    tau = 1e-2
    for n in (3, 8):
        details = head_details(model, ids, torch.full((2,), n), (tau,))
        with torch.no_grad():
            expected = np.stack([oracle(model, row, n, tau) for row in ids])
        np.testing.assert_allclose(details.scores[:, 0], expected[..., :2], rtol=0, atol=1e-9)
        np.testing.assert_allclose(details.own_mass, expected[..., 2], rtol=0, atol=1e-9)


def test_tables_of_angles_are_data():
    """Frozen everywhere, nothing depends on position, and a head is symbolic to the last digit."""
    model, ids = build(2.0)
    everything = range(1, model.spec.n_frequencies + 1)
    frozen = model.rotary.frozen(everything)
    scores = score_heads(model, ids, taus=TAUS, rotary=frozen)
    np.testing.assert_allclose(scores[..., 1], 1, rtol=0, atol=1e-12)
    assert bool((score_heads(model, ids, taus=TAUS)[..., 1] < 1 - 1e-6).any())
    own = score_heads(model, ids, rotary=model.rotary.removed(everything))
    np.testing.assert_allclose(own, 1, rtol=0, atol=1e-12)  # no plane, no logit: uniform
    # a query at its first layer sees the change; the table handed over wins over the model's
    model.rotary = frozen
    torch.testing.assert_close(score_heads(model, ids, taus=TAUS), scores)


def test_a_hand_built_positional_head_and_a_self_attending_one():
    """Keys alike, queries fixed: only the offset counts. With a huge key on the query's own token: own mass 1."""
    model, _ = build(1.0, n_layers=1, n_heads=1)
    ids = torch.arange(1, 10)[None]
    with torch.no_grad():
        model.blocks[0].ln_1.weight.zero_()  # every token is the bias
        model.blocks[0].ln_1.bias.fill_(1.0)
    positional = score_heads(model, ids, taus=TAUS)
    np.testing.assert_allclose(positional[..., 0], 1, rtol=0, atol=1e-12)

    model, _ = build(1.0, n_layers=1, n_heads=1, width=8)
    with torch.no_grad():
        layer = model.blocks[0]
        layer.ln_1.weight.fill_(1.0)
        layer.ln_1.bias.zero_()
        model.transformer.wte.weight[:] = torch.tensor([1.0, -1, 0, 0, 0, 0, 0, 0])
        model.transformer.wte.weight[9] = torch.tensor([0, 0, 0, 0, 0, 0, 1.0, -1])
        for projection in (layer.attn.q_proj, layer.attn.k_proj):
            projection.weight.copy_(20 * torch.eye(8))
    details = head_details(model, ids)
    np.testing.assert_allclose(details.own_mass, 1, atol=1e-12)
    np.testing.assert_allclose(details.entropy, 0, atol=1e-9)
    np.testing.assert_allclose(details.negligible_mass, 1, atol=1e-12)


def test_queries_of_every_shape_agree(monkeypatch):
    model, ids = build(1.0)
    ids = torch.cat([ids, ids.flip(1), ids.roll(1, 1)])
    queries = torch.tensor([[8, 5, 3], [8, -1, -1], [8, 2, -1], [8, 7, 6], [-1, -1, 4], [8, 3, -1]])
    whole = head_details(model, ids, queries, TAUS)
    assert whole.scores.shape == (6, 3, 3, 2, 2, 2)
    for row in range(6):
        for column in range(3):
            n = int(queries[row, column])
            for name, part in whole._asdict().items():
                if n < 0:
                    assert bool(part[row, column].isnan().all())
                else:
                    one = head_details(model, ids[row : row + 1], torch.tensor([n]), TAUS)
                    torch.testing.assert_close(part[row, column], getattr(one, name)[0], rtol=0, atol=1e-11)
    torch.testing.assert_close(score_heads(model, ids), score_heads(model, ids, torch.full((6,), 8)), rtol=0, atol=0)
    monkeypatch.setattr("ops.scores.heads._KEYS_PER_BLOCK", 1)
    monkeypatch.setattr("ops.scores.heads._HIDDEN_PER_PASS", 9 * 32 * 2)
    for a, b in zip(whole, head_details(model, ids, queries, TAUS), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-11, equal_nan=True)
    assert score_heads(model, ids[:0]).shape == (0, 2, 2, 2, 2)


def test_dropout_and_training_mode_do_not_touch_scores():
    model, ids = build(1.0, dropout=0.5)
    calm = score_heads(model, ids)
    torch.testing.assert_close(score_heads(model.train(), ids), calm, rtol=0, atol=0)
    assert model.training


@pytest.mark.parametrize("queries", [torch.tensor([1, 8]), torch.tensor([8, 9]), torch.tensor([8, -1])])
def test_impossible_queries_are_named(queries):
    model, ids = build(1.0)
    with pytest.raises(ValueError, match="two keys"):
        score_heads(model, ids, queries)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"taus": ()}, "one or more positive numbers"),
        ({"ids": torch.tensor([[0, 1, 2, -1]])}, "ids go from -1 to 2"),
        ({"ids": torch.tensor([[0, 1, 2, 10**6]])}, "ids go from 0 to 1000000; the model's vocabulary has"),
    ],
)
def test_wrong_values_are_one_sentence(arguments, words):
    model, ids = build(1.0)
    with pytest.raises(ValueError, match=words):
        score_heads(model, **{"ids": ids, **arguments})


WRONG_TYPES = """
import torch
from ops.model.gptj import GPTJ
from ops.scores.heads import score_heads
from ops.spec.model import ModelSpec

model, ids = GPTJ(ModelSpec(n_layers=1, width=8), 7), torch.zeros(1, 6, dtype=torch.int64)
for wrong in ({"queries": [5]}, {"queries": 5}, {"queries": "first"}, {"taus": 1e-2}, {"ids": [[0, 1, 2]]}):
    try:
        score_heads(model, **{"ids": ids, **wrong})
    except ValueError as error:
        print(error)
"""


def test_wrong_types_are_one_sentence():
    """In a process of its own, as a user's: here the annotations are checked, there they are not."""
    said = subprocess.run([sys.executable, "-c", WRONG_TYPES], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [
        'queries must be "last" or a tensor of positions, not [5]',
        'queries must be "last" or a tensor of positions, not 5',
        "queries must be \"last\" or positions, not 'first'",
        "taus must be a list of one or more positive numbers, not 0.01",
        "ids must be a tensor of integers, input × position, not list",
    ]


def test_weights_that_are_not_finite_are_refused():
    model, ids = build(1.0)
    with torch.no_grad():
        model.blocks[1].attn.k_proj.weight[0, 0] = torch.nan
    with pytest.raises(ValueError, match="not finite"):
        score_heads(model, ids)


@pytest.mark.parametrize(
    ("scale", "options"),
    [
        (1.0, {}),
        (6.0, {"n_heads": 1, "rotary_dims": 16, "frequencies_rotating": "1-3"}),
        (3.0, {"frequencies_present": [2, 5], "nope_from_layer": 1}),
        (3.0, {"plane_frequencies": [2, 2, 5]}),
        (300.0, {}),  # attention on one key: the others' weights underflow
    ],
)
def test_brute_force_is_the_oracle_and_the_closed_form(scale, options):
    model, ids = build(scale, **options)
    slow = brute_force_scores(model, ids, TAUS)
    for b, row in enumerate(ids):
        for k, tau in enumerate(TAUS):
            with torch.no_grad():
                expected = oracle(model, row, len(row) - 1, tau)[..., :2]
            np.testing.assert_allclose(slow[b, k], expected, rtol=0, atol=1e-9)
    assert brute_force_error(model, ids, TAUS) < 1e-9
    assert brute_force_error(model, ids, TAUS, eps=1e-8) < 1e-9


def test_brute_force_in_chunks_is_the_same(monkeypatch):
    model, ids = build(3.0)
    whole = brute_force_scores(model, ids, TAUS)
    monkeypatch.setattr(brute_force, "_HIDDEN_PER_CHUNK", 1_000)  # 3 of the 28 swaps
    torch.testing.assert_close(brute_force_scores(model, ids, TAUS), whole, rtol=0, atol=1e-12)


def test_brute_force_finds_a_wrong_formula(monkeypatch):
    model, ids = build(3.0)
    right = brute_force.score_heads

    def wrong(*arguments, **named):
        return right(*arguments, **named).pow(1.0001)

    monkeypatch.setattr(brute_force, "score_heads", wrong)
    assert brute_force_error(model.float(), ids, TAUS) > 1e-6


def test_brute_force_needs_two_keys():
    model, ids = build(1.0)
    with pytest.raises(ValueError, match="two keys before the query, and the inputs have 2 tokens"):
        brute_force_scores(model, ids[:, :2])
