"""The letter task: its spec, and generate, solve, vocabulary and vocabulary_size once they are asked for."""

from typing import TYPE_CHECKING

from ops.tasks.functions import functions, when_asked
from ops.tasks.letter.spec import LetterTaskSpec

__all__ = ["LetterTaskSpec", "generate", "solve", "vocabulary", "vocabulary_size"]

if TYPE_CHECKING:
    generate, solve, vocabulary, vocabulary_size = functions(LetterTaskSpec)

__getattr__ = when_asked(__name__, LetterTaskSpec)
