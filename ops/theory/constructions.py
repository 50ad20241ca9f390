"""The ideal hop as one attention head with one RoPE plane, runnable (arXiv 2605.31558 Thm 3.1, App. F).

Each task says what its head is (`ops.tasks.task.Construction`): Index for the number task, Retrieval for tasks of
pairs. No activation; rotation and attention are those of the trained model. Tokens are one-hot rows, which layers may
mix, so the heads can be chained; a position's token is its largest coordinate. Everything is float64.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from ops.model.gptj import attention_weights
from ops.model.rope import rotate
from ops.scores.closed_form import swap_scores
from ops.spec.task import TaskSpec
from ops.tasks.task import Head, task_of
from ops.theory.ideal import apply_hop

_NUMBERS_PER_CHUNK = 2**22


@dataclass(frozen=True)
class Construction:
    """A task's head at angle θ (radians a position) and sharpness β. Build one with `construct`."""

    task: TaskSpec
    theta: float
    beta: float
    head: Head

    def forward(self, x: Float[Tensor, "n position vocabulary"]) -> Float[Tensor, "n position vocabulary"]:
        """The head's output at every position."""
        positions = torch.arange(x.shape[1])
        angle = torch.tensor([self.theta], dtype=torch.float64)
        query = self.beta * rotate(x @ self.head.query, positions, angle)
        key = rotate(x @ self.head.key + self.head.key_bias, positions, angle)
        attended = attention_weights(query[:, None], key[:, None])[:, 0] @ (x * self.head.value)
        return x + attended if self.head.residual else attended

    def embed(self, ids: Int[Tensor, "n position"]) -> Float[Tensor, "n position vocabulary"]:
        """One-hot rows."""
        return one_hot(ids, len(self.head.value)).to(torch.float64)

    def run(self, ids: Int[Tensor, "n position"], times: int = 1) -> Int[Tensor, "n position"]:
        """The token that every position holds after `times` of these layers, nothing between them."""
        chunk = max(1, _NUMBERS_PER_CHUNK // (ids.shape[1] * len(self.head.value)))
        held = []
        for part in ids.split(chunk):
            x = self.embed(part)
            for _ in range(times):
                x = self.forward(x)
            held.append(x.argmax(-1))
        return torch.cat(held) if held else ids

    def exact(self, ids: Int[Tensor, "n position"]) -> Bool[Tensor, "n position"]:
        """Where one application holds the ideal function's token; also true where the function is not defined."""
        return (self.run(ids) == apply_hop(ids, self.task).ids) | ~defined(ids, self.task)

    def placed_logits(
        self, ids: Int[Tensor, "n position"]
    ) -> tuple[Float[Tensor, "n place content"], Float[Tensor, "n"]]:
        """The last query's logit on every earlier content at every earlier place, and on itself."""
        x = self.embed(ids)
        last = ids.shape[1] - 1
        angle = torch.tensor([self.theta], dtype=torch.float64)
        query = self.beta * rotate((x @ self.head.query)[:, -1:], torch.tensor([last]), angle)
        key = x @ self.head.key + self.head.key_bias
        places = torch.arange(last)
        everywhere = rotate(key[:, :last, None].expand(-1, -1, last, -1), places, angle)
        own = rotate(key[:, -1:], torch.tensor([last]), angle)
        return torch.einsum("nqx,nspx->nps", query, everywhere), (query * own).sum((1, 2))

    def scores(self, ids: Int[Tensor, "n position"], tau: float = 1e-4) -> tuple[float, float]:
        """Positional and symbolic score of the last query (arXiv 2511.11579 §3), mean over inputs."""
        scores = swap_scores(*self.placed_logits(ids), taus=(tau,)).scores[:, 0].mean(0)
        return float(scores[0]), float(scores[1])


def construct(task: TaskSpec, theta: float, beta: float) -> Construction:
    """The task's head. Raises ValueError if the task has no construction."""
    return Construction(task, theta, beta, task_of(task).construction.head(theta))


def letter_angle(n_letters: int) -> float:
    """ω: the angle between neighbouring letters, 2π / |alphabet|."""
    return 2 * math.pi / n_letters


def defined(ids: Int[Tensor, "n position"], task: TaskSpec) -> Bool[Tensor, "n position"]:
    """Where the input is valid: the function names one position to look at."""
    return task_of(task).construction.defined(ids)


def lemma_beta(discrepancy: float, n_others: int, tolerance: float) -> float:
    """A β at which the target gets at least 1 − tolerance of the attention, whatever the other keys hold.

    If each of `n_others` keys lies at least `discrepancy` below the target, they get at most n e^(−β Δ) times its
    weight. Source: the argument of arXiv 2605.31558, Lemma F.1. Raises ValueError unless Δ > 0 and 0 < tolerance < 1.
    """
    if not (discrepancy > 0 and 0 < tolerance < 1 and n_others >= 1):
        raise ValueError(
            f"no β separates {n_others} keys at a discrepancy of {discrepancy} with tolerance {tolerance}: "
            "the discrepancy must be positive, the tolerance between 0 and 1, and there must be other keys"
        )
    return max(0.0, math.log(n_others * (1 - tolerance) / tolerance)) / discrepancy


def smallest_beta(worst_gaps: Float[Tensor, "input key"], relative: float = 1e-12) -> float:
    """The infimum of the β at which the target outweighs all other keys together, by bisection.

    `worst_gaps`: target's logit (at β = 1) minus each other key's, a row a worst input (`index_worst_gaps`,
    `retrieval_worst_gaps`); +inf where there is no key. On these rows all other keys can hold one other token, so
    "outweighs together" is what exactness needs, and no less will do.
    Raises ValueError if a gap is not positive: then no β works.
    """
    if not bool((worst_gaps > 0).all()):
        raise ValueError("another key lies at or above the target: no β makes the construction exact")

    def works(beta: float) -> bool:
        return bool(((-beta * worst_gaps).exp().sum(-1) < 1).all())

    low, high = 0.0, 1.0
    while not works(high):
        low, high = high, 2 * high
    while high - low > relative * high:
        middle = (low + high) / 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


def index_worst_gaps(n: int, theta: float) -> Float[Tensor, "n n"]:
    """Target minus other logits at β = 1, a row a pointer i = 1 … n, n keys before the query and the query itself.

    The integer itself weighs 1 and the letter copied twice its attention, so the letter wins iff it gets over half.
    """
    away = (torch.arange(n + 1) - torch.arange(1, n + 1)[:, None]).to(torch.float64)
    return _without_target(1 - (away * theta).cos(), torch.arange(1, n + 1))


def retrieval_worst_gaps(n: int, theta: float, omega: float) -> Float[Tensor, "row n"]:
    """As `index_worst_gaps`, a row a target distance 0 … n; every other key holds the letter whose angle is nearest."""
    distance = torch.arange(n + 1, dtype=torch.float64)
    return _without_target((distance * theta).cos()[:, None] - (omega - distance * theta).cos(), torch.arange(n + 1))


def _without_target(gaps: Tensor, target: Tensor) -> Tensor:
    others = torch.ones_like(gaps, dtype=torch.bool)
    others[torch.arange(len(gaps)), target] = False
    return gaps[others].reshape(len(gaps), -1)
