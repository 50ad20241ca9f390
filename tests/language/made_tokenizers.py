"""Small fast tokenizers of two families, trained on the prompts' own words."""

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from ops.language_models.prompt_words import NAMES, TEXT, THINGS, WORDS


def made_tokenizer(kind: str, bos: bool):
    """A small tokenizer of one of two families: byte BPE with the blank in front, or blanks as tokens of their own."""
    tokenizer = Tokenizer(models.BPE())
    if kind == "byte":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s|[a-zA-Z]+|[^\sa-zA-Z]"), "isolated")
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words = [" " + " ".join(words) for words in (NAMES, THINGS, WORDS)]
    tokenizer.train_from_iterator(
        [TEXT, *words * 3, " likes likes The facts are: Question: What does like? Answer:"], trainer
    )
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
        )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
