"""The closed form against 60-digit arithmetic, the authors' function, a naive swap, and laws of any scores."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.scores.blocks import block_swap_scores
from ops.scores.closed_form import swap_scores

TAUS = (1e-4, 1e-2, 1.0)


@pytest.fixture(scope="module")
def cases(golden):
    with np.load(golden / "score_cases.npz") as stored:
        return dict(stored)


def scored(cases, eps=0.0):
    for k, n in enumerate(cases["n"]):
        logits = torch.from_numpy(cases["A"][k, :n, :n])
        yield k, swap_scores(logits, torch.tensor(cases["own"][k]), cases["taus"].tolist(), eps)


def test_scores_equal_sixty_digit_arithmetic(cases):
    for k, result in scored(cases):
        np.testing.assert_allclose(result.scores, cases["scores_exact"][k], rtol=0, atol=1e-10, err_msg=f"case {k}")


def test_clamp_reproduces_the_authors_scores(cases):
    for k, result in scored(cases, eps=1e-8):
        np.testing.assert_allclose(
            result.scores, cases["scores_authors_f64"][k], rtol=0, atol=1e-10, err_msg=f"case {k}"
        )


def test_negligible_mass_is_the_mass_the_authors_clamp(cases):
    for k, result in scored(cases):
        np.testing.assert_allclose(result.negligible_mass, cases["alpha_mass_clamped"][k], rtol=0, atol=1e-10)


def naive(logits, own, tau):
    """Softmax the row, swap, softmax again: plain NumPy in linear space."""
    n = len(logits)

    def attention(contents):
        row = np.append([logits[p, contents[p]] for p in range(n)], own)
        e = np.exp(row - row.max())
        return e / e.sum()

    base = attention(range(n))
    gaps, pos, sym = [], [], []
    for i in range(n):
        for j in range(i + 1, n):
            order = list(range(n))
            order[i], order[j] = j, i
            after = attention(order)[[i, j]]
            before = base[[i, j]]
            size = np.linalg.norm(after) * np.linalg.norm(before)
            gaps.append(abs(before[0] - before[1]))
            pos.append(after @ before / size)
            sym.append(after @ before[::-1] / size)
    weight = np.exp((np.array(gaps) - max(gaps)) / tau)
    weight /= weight.sum()
    return np.array([weight @ pos, weight @ sym]), base


matrices = st.integers(2, 7).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(-20, 20), min_size=n * n, max_size=n * n).map(
            lambda x: torch.tensor(x, dtype=torch.float64).reshape(n, n)
        ),
        st.floats(-20, 20),
    )
)


@settings(max_examples=60, deadline=None)
@given(matrices)
def test_closed_form_equals_swapping(case):
    logits, own = case
    result = swap_scores(logits, torch.tensor(own, dtype=torch.float64), TAUS)
    for k, tau in enumerate(TAUS):
        expected, base = naive(logits.numpy(), own, tau)
        np.testing.assert_allclose(result.scores[k], expected, rtol=0, atol=1e-8 if tau == 1e-4 else 1e-10)
    assert result.own_mass.item() == pytest.approx(base[-1], abs=1e-12)
    inside = base[base > 0]
    assert result.entropy.item() == pytest.approx(-(inside * np.log(inside)).sum(), abs=1e-12)


wide = st.integers(2, 6).flatmap(
    lambda n: st.lists(st.floats(-1e6, 1e6), min_size=n * n + 1, max_size=n * n + 1).map(
        lambda x: (torch.tensor(x[1:], dtype=torch.float64).reshape(n, n), torch.tensor(x[0], dtype=torch.float64))
    )
)


@settings(max_examples=80, deadline=None)
@given(wide)
def test_bounds_hold_for_any_finite_logits(case):
    result = swap_scores(*case, TAUS)
    assert bool(((result.scores >= 0) & (result.scores <= 1)).all())
    assert bool((result.scores.sum(-1) >= 1 - 1e-12).all())
    for mass in (result.own_mass, result.negligible_mass):
        assert bool(((mass >= 0) & (mass <= 1 + 1e-12)).all())
    n = len(case[0])
    assert 0 <= result.entropy.item() <= np.log(n + 1) + 1e-9
    clamped = swap_scores(*case, TAUS, eps=1e-8).scores
    assert bool((clamped <= result.scores + 1e-12).all())


@settings(max_examples=40, deadline=None)
@given(matrices, st.floats(-50, 50), st.randoms(use_true_random=False))
def test_a_constant_and_the_order_of_keys_do_not_matter(case, constant, random):
    logits, own = case[0], torch.tensor(case[1], dtype=torch.float64)
    base = swap_scores(logits, own, (1e-2, 1.0))
    moved = swap_scores(logits + constant, own + constant, (1e-2, 1.0))
    order = list(range(len(logits)))
    random.shuffle(order)
    permuted = swap_scores(logits[order][:, order], own, (1e-2, 1.0))
    for other in (moved, permuted):
        torch.testing.assert_close(other.scores, base.scores, rtol=0, atol=1e-9)
        torch.testing.assert_close(other.entropy, base.entropy, rtol=0, atol=1e-9)


def test_a_large_tau_weighs_swaps_equally_and_a_small_one_picks_the_largest_gap():
    torch.manual_seed(0)
    logits, own = 3 * torch.randn(5, 5, dtype=torch.float64), torch.tensor(0.3, dtype=torch.float64)
    first, second = torch.triu_indices(5, 5, 1)
    each = []
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        pair = logits[[i, j]][:, [i, j]]  # the score of a pair alone is the cosine itself
        each.append(swap_scores(pair, own, (1.0,)).scores[0])
    each = torch.stack(each)
    row = torch.cat([logits.diagonal(), own[None]]).softmax(0)
    gap = (row[first] - row[second]).abs()
    scores = swap_scores(logits, own, (1e9, 1e-9)).scores
    torch.testing.assert_close(scores[0], each.mean(0), rtol=0, atol=1e-9)
    torch.testing.assert_close(scores[1], each[gap.argmax()], rtol=0, atol=1e-9)


def test_canonical_heads():
    torch.manual_seed(1)
    bias = 4 * torch.randn(6, dtype=torch.float64)
    zero = torch.zeros((), dtype=torch.float64)
    positional = swap_scores(bias[:, None].expand(6, 6), zero, TAUS).scores
    symbolic = swap_scores(bias[None].expand(6, 6), zero, TAUS).scores
    one = torch.ones(3, dtype=torch.float64)
    torch.testing.assert_close(positional[:, 0], one, rtol=0, atol=1e-12)
    torch.testing.assert_close(symbolic[:, 1], one, rtol=0, atol=1e-12)
    torch.testing.assert_close(positional, symbolic.flip(-1), rtol=0, atol=1e-12)
    uniform = swap_scores(torch.zeros(6, 6, dtype=torch.float64), zero, TAUS)
    torch.testing.assert_close(uniform.scores, torch.ones(3, 2, dtype=torch.float64), rtol=0, atol=1e-12)
    assert uniform.entropy.item() == pytest.approx(np.log(7))
    reflexive = swap_scores(bias[:, None].expand(6, 6), zero + 60, TAUS)
    assert reflexive.own_mass.item() == pytest.approx(1)
    torch.testing.assert_close(reflexive.negligible_mass, one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dominant", [40.0, 80.0, 700.0, 1e5])
def test_a_row_held_by_one_key_has_no_cancellation(dominant):
    """After its content leaves, the small logits are all there is: v' is not negligible, though 1 − D_i is 0."""
    logits = torch.zeros(4, 4, dtype=torch.float64)
    logits[0, 0] = dominant
    result = swap_scores(logits, torch.tensor(0.0, dtype=torch.float64), (1e-4,))
    assert result.negligible_mass.item() < 1e-12
    # x saturates (t = 1) and y = 0, so both cosines are 1 / √2
    torch.testing.assert_close(result.scores[0], torch.full((2,), 0.5**0.5, dtype=torch.float64), rtol=0, atol=1e-8)


def test_batches_equal_single_queries():
    torch.manual_seed(2)
    logits, own = 30 * torch.randn(3, 2, 5, 5, dtype=torch.float64), 30 * torch.randn(3, 2, dtype=torch.float64)
    for eps in (0.0, 1e-8, 0.9):
        whole = swap_scores(logits, own, TAUS, eps)
        for i in range(3):
            for j in range(2):
                for a, b in zip(whole, swap_scores(logits[i, j], own[i, j], TAUS, eps), strict=True):
                    torch.testing.assert_close(a[i, j], b, rtol=0, atol=1e-13)
    assert swap_scores(logits[:0], own[:0], TAUS).scores.shape == (0, 2, 3, 2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"logits": torch.zeros(1, 1)}, "two keys"),
        ({"logits": torch.zeros(3, 2)}, "position × content"),
        ({"logits": torch.full((3, 3), torch.nan)}, "not finite"),
        ({"logits": torch.full((3, 3), -torch.inf)}, "not finite"),
        ({"own_logit": torch.tensor(torch.inf)}, "not finite"),
        ({"taus": (0.0,)}, "positive"),
        ({"taus": ()}, "positive"),
        ({"eps": -1.0}, "eps"),
    ],
)
def test_wrong_arguments_are_named(change, says):
    arguments = {"logits": torch.zeros(3, 3), "own_logit": torch.tensor(0.0), "taus": (1.0,)} | change
    with pytest.raises(ValueError, match=says):
        swap_scores(**arguments)


def test_blocks_of_one_token_are_single_positions():
    torch.manual_seed(3)
    logits = 5 * torch.randn(2, 6, 6, dtype=torch.float64)
    own = torch.randn(2, dtype=torch.float64)
    attention = torch.cat([logits.diagonal(dim1=1, dim2=2), own[:, None]], 1).softmax(1)[:, :-1]
    torch.testing.assert_close(
        block_swap_scores(logits, attention, TAUS), swap_scores(logits, own, TAUS).scores, rtol=0, atol=1e-12
    )


def test_blocks_equal_swapping_their_tokens():
    """Two-token blocks: swap the tokens' logits, softmax again, take block means."""
    rng = np.random.default_rng(4)
    m, size = 4, 2
    full = rng.normal(size=(m, size, m, size)) * 3  # [block, place, content block, content]; only place == content
    rest = rng.normal(size=3)
    inner = np.einsum("iajb->ijab", full)[:, :, range(size), range(size)]  # [place block, content block, token]

    def means(contents):
        e = np.exp(np.concatenate([inner[i, contents[i]] for i in range(m)] + [rest]))
        return (e / e.sum())[: m * size].reshape(m, size).mean(1)

    base, tau = means(range(m)), 1e-2
    terms = []
    for i in range(m):
        for j in range(i + 1, m):
            order = list(range(m))
            order[i], order[j] = j, i
            v, after = base[[i, j]], means(order)[[i, j]]
            norm = np.linalg.norm(v) * np.linalg.norm(after)
            terms.append((abs(v[0] - v[1]), after @ v / norm, after @ v[::-1] / norm))
    gap, pos, sym = np.array(terms).T
    weight = np.exp((gap - gap.max()) / tau)
    expected = np.array([weight @ pos, weight @ sym]) / weight.sum()
    mass = torch.from_numpy(np.log(np.exp(inner).sum(-1)))
    np.testing.assert_allclose(block_swap_scores(mass, torch.from_numpy(base), (tau,))[0], expected, atol=1e-12)


def test_unseen_blocks_are_left_out():
    torch.manual_seed(5)
    mass, means = torch.randn(4, 4, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    mass[:2], means[:2] = -torch.inf, 0
    assert bool(block_swap_scores(mass, means, TAUS).isfinite().all())
    mass[:] = -torch.inf
    assert bool(block_swap_scores(mass, 0 * means, TAUS).isnan().all())
    with pytest.raises(ValueError, match="infinity"):
        block_swap_scores(mass + torch.nan, means)
