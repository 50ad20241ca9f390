"""Draws that published runs rest on, written down once: code may move, they may not."""

import hashlib

import numpy as np
import pytest
import torch

from ops.length.lengthening import lengthen, move_answers
from ops.length.mixed_lengths import MixedLengths
from ops.mechanism.value_patching import donors
from ops.spec.mixed_lengths import MixedLengthsSpec
from ops.tasks.letter import LetterTaskSpec
from ops.tasks.letter_matched import LetterMatchedTaskSpec
from ops.tasks.number import NumberTaskSpec
from ops.tasks.shortcuts import shortcut_accuracy
from ops.tasks.task import task_of

SMALL = {"target_window": 5, "pre_target_window": 6, "hops": (1, 3)}
LETTER_WORDS, LETTER_KINDS = "0c16df3af78c2bdd", "6b1d75b4c04f2586"
# of: generate, lengthen, move_answers, mixed prefixes, donors, ideal hop, vocabulary, kinds of tokens, shortcuts
DRAWN = [
    (NumberTaskSpec(), "bfbb7e27ba5feb94 bf3725a022e80132 e21c1ac3bcfbfe66 ba1b3ed3da81004c 01382d996fef6f05 "
     "4c03196d10fb5036 0fe7ae047031304b 26f91568c5330a0b 26f53401f62b8c40"),
    (NumberTaskSpec(**SMALL), "2a4af7acbca0b0c5 d98e6465e4a2598c 220d8c4eb28714b4 b3b4016767213a8e 3ae607ae368b0f62 "
     "68f864bf37e06216 ae1cedb3dc431c51 599349e35ff2b09f ccd951486a8ceba1"),
    (LetterTaskSpec(), "4016abba66b16591 75ba36e2be78d2b7 926f9bf863c6237c fb58ea31bcbbb663 bffc0a40da625ace "
     f"0e49990d8367fff9 {LETTER_WORDS} {LETTER_KINDS} c408abe99cc54f04"),
    (LetterTaskSpec(**SMALL), "c1dcff1f4dd8ac00 788d0e7d28aa29f9 8322d0382785626c 7437176d576b5532 28b9891d6a9f6ff4 "
     f"6f2fcbe788c6fb6a {LETTER_WORDS} {LETTER_KINDS} e40675f0e8ff62cb"),
    (LetterMatchedTaskSpec(), "441f59bef1cc7ba1 de48999a8b4fdb95 9b2bed145fc631cf 15943d5e2629c163 63a9a1d264afee99 "
     "0d9bc87d34786408 87b1f3fecb2d4ae6 c241f961c38cae9f 431c906e16a91c1a"),
    (LetterMatchedTaskSpec(**SMALL), "aa6dc4140f044921 2f6454aa4eec6b62 80be091a17f2aa5a c8f81de48fe0c10e "
     "cdc676cb08a31c53 4045b42ab12ea057 95ed356925da6237 41d70fcda21d1656 88097b62bb0bc74b"),
]  # fmt: skip


def digest(*parts) -> str:
    found = hashlib.sha256()
    for part in parts:
        tensor = isinstance(part, torch.Tensor)
        found.update(part.to(torch.int64).contiguous().numpy().tobytes() if tensor else str(part).encode())
    return found.hexdigest()[:16]


@pytest.mark.parametrize(("spec", "expected"), DRAWN, ids=lambda part: getattr(part, "name", ""))
def test_what_a_seed_draws(spec, expected):
    task = task_of(spec)
    drawn = task.generate(3000, seed=7)
    longer = lengthen(spec, 60, n_prefixes=3, n_sequences=40, seed=3)
    mixed = MixedLengths(spec, drawn, MixedLengthsSpec(shortest=20, longest=64), 4)
    assert [
        digest(*drawn),
        digest(*longer),
        digest(*move_answers(spec, longer, 50, 5)),
        digest(mixed.prefixes(3, np.arange(50))),
        digest(donors(drawn, spec, torch.Generator().manual_seed(2))),
        digest(*task.mechanism.ideal_hop(drawn.ids)),
        digest(list(task.vocabulary)),
        digest(list(task.mechanism.token_kinds)),
        digest(shortcut_accuracy(spec, drawn).to_dicts()),
    ] == expected.split()
