"""Tables of language models: their heads, and what they answer when prompted."""

from ops.tables.table import COUNT, INTEGER, REAL, TEXT, TRUTH, table

ORDER = 1000

ROOM_TABLES = (
    table(
        "lm_head_scores",
        "One row a language model, prompt set, null kind, layer, head and tau: scores over blocks of tokens, "
        "averaged over prompts (arXiv 2511.11579 §4).",
        "model prompts null_kind layer head tau positional_score symbolic_score own_mass sink_mass layer_type n",
        own_mass="attention of the query to its own position, mean over prompts; NULL for random logits",
        sink_mass=(REAL, "attention mass", "attention to position 0, mean over prompts; NULL for random logits"),
        layer_type=(TEXT, "", "attention of the layer: full or sliding"),
        n="number of prompts on which the head has a score",
    ),
    table(
        "lm_prompt_scores",
        "One row a language model, prompt set, null kind, prompt, layer, head and tau: what lm_head_scores averages.",
        "model prompts null_kind prompt layer head tau positional_score symbolic_score answered",
        prompt=(INTEGER, "", "number of the prompt within its set, from 0"),
        answered=(TRUTH, "", "whether the model's first guess is the prompt's answer; NULL if it has none"),
    ),
    table(
        "lm_frequency_scores",
        "One row a language model, prompt set, null kind, layer, head and frequency ID: scores of the RoPE plane "
        "alone, averaged over prompts.",
        "model prompts null_kind layer head frequency_id theta positional_score symbolic_score logit_variance_share",
        positional_score="positional score of the plane alone, in [0, 1]; NULL where the plane is zero",
        symbolic_score="symbolic score of the plane alone, in [0, 1]; NULL where the plane is zero",
        logit_variance_share=(REAL, "share", "share of the head's logit variance that the plane carries"),
    ),
    table(
        "lm_verification",
        "One row a language model, prompt set, verified layer, head and tau: closed form beside brute force.",
        "model prompts layer head tau positional_score symbolic_score brute_positional brute_symbolic score_error",
        brute_positional=(REAL, "", "positional score by brute force"),
        brute_symbolic=(REAL, "", "symbolic score by brute force"),
        score_error=(REAL, "", "larger distance of the two scores from brute force"),
    ),
    table(
        "lm_length_accuracy",
        "One row a prompted language model, task, length and run (arXiv 2605.31558 §3.7).",
        "model task length run accuracy n screened",
        length="target window of the prompt, in tokens of the task",
        n="number of prompts",
        screened=(TRUTH, "", "whether the letter accuracy at 16 reached the spec's screening"),
    ),
    table(
        "lm_answers",
        "One row a prompted language model, task, length, run and question: what it replied.",
        "model task length run question expected answer raw finish_reason prompt_tokens completion_tokens",
        length="target window of the prompt, in tokens of the task",
        question=(INTEGER, "", "number of the question within its run, from 0"),
        expected=(TEXT, "", "the right answer"),
        answer=(TEXT, "", "answer read strictly from the raw text; NULL if it is not one symbol"),
        raw=(TEXT, "", "what the model replied, as it came; empty if it said nothing"),
        finish_reason=(TEXT, "", "why it stopped: stop, length (cut off), refusal, unknown, or as the server says"),
        prompt_tokens=(COUNT, "tokens", "tokens of the prompt that were counted; NULL if they were not"),
        completion_tokens=(COUNT, "tokens", "tokens of the reply, reasoning included; NULL if not counted"),
    ),
)
