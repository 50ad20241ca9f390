"""Tables of a trained model's mechanism."""

from ops.tables.table import INTEGER, REAL, TEXT, TRUTH, table

ORDER = 500

ROOM_TABLES = (
    table(
        "information_flow",
        "One row a flow, example, layer and position: where the position attends most and what it holds after "
        "the layer (arXiv 2605.31558 §3.2). Layer -1 is the input.",
        "step flow example hop layer position link attends_to weight holds_token ideal_attends_to agrees",
        flow=(TEXT, "", "model (read from its attention) or ideal (the task's function layer by layer)"),
        hop="hop class of the example",
        layer="layer, from 0; -1 = the input itself",
        link=(INTEGER, "", "place on the hop chain: 0 = last token, hop = target; NULL off the chain"),
        attends_to=(INTEGER, "", "position that gets the most attention"),
        weight=(REAL, "attention mass", "attention that attends_to gets, mean over heads"),
        holds_token=(TEXT, "", "token whose content the position holds after this layer, as text"),
        ideal_attends_to=(
            INTEGER,
            "",
            "position that the task's function would look at, given what positions hold so far",
        ),
        agrees=(
            TRUTH,
            "",
            "whether positions holding the token that the ideal looks at get over half of the attention",
        ),
    ),
    table(
        "flow_agreement",
        "One row a checkpoint and layer: how far its information flow is ideal (arXiv 2605.31558 §3.2).",
        "step layer agreement answer_held n",
        agreement=(REAL, "share", "share of the chain's asking positions at which the flow is the ideal one"),
        answer_held=(REAL, "share", "share of inputs whose last token holds the answer after the layer"),
    ),
    table(
        "value_patching",
        "One row a hop class, layer and edge of the chain: what the model answers when that reader gets the "
        "value of an input with another answer.",
        "step hop layer reader_link read_link follows keeps logit_shift n",
        hop="hop class of the inputs",
        layer="layer that is patched; NULL = all layers at once",
        reader_link=(INTEGER, "", "place on the hop chain of the position that reads"),
        read_link=(INTEGER, "", "place on the hop chain of the position read; NULL = one off the chain"),
        follows=(REAL, "share", "share of inputs that answer with the patched-in token"),
        keeps=(REAL, "share", "share of inputs that still answer with their own token"),
        logit_shift=(REAL, "logit", "how far the patch moves the patched-in token's logit minus their own token's"),
        n="number of inputs, all answered rightly without the patch",
    ),
    table(
        "qk_plane",
        "One row an example, layer, head, position and role: query or key in the RoPE plane that the head uses "
        "most, before rotation (arXiv 2605.31558 Fig. 4B).",
        "step example layer head position role frequency_id theta x y token token_kind points_back",
        position="position of the query or key in the sequence",
        token="token at the position, as text",
        token_kind=(TEXT, "", "integer or letter; letter-digit or letter-letter"),
        points_back=(INTEGER, "positions", "how far back the token points; NULL if nowhere"),
    ),
    table(
        "exclusion",
        "One row a layer and head: variance of the last query's logits beside the bound by its positional and "
        "symbolic deviations (arXiv 2511.11579 Thm 1), exact over all permutations.",
        "step layer head variance bound within_share tightest sampled_bound sampled_error n",
        variance=(REAL, "", "variance of the logits over the keys, averaged over inputs"),
        bound="upper bound that the theorem gives, averaged over inputs",
        within_share=(REAL, "share", "share of inputs whose variance is within the bound"),
        tightest=(REAL, "", "largest variance / bound over inputs"),
        sampled_bound=(REAL, "logit^2", "the bound estimated from random permutations, mean over inputs"),
        sampled_error=(REAL, "logit^2", "standard error of sampled_bound"),
        n="number of inputs",
    ),
    table(
        "score_variants",
        "One row a layer, head, tau and variant of the scores of arXiv 2511.11579 §3, on the same inputs, last query.",
        "step layer head variant tau positional_score symbolic_score n",
        variant=(TEXT, "", "what is compared (weights or logits) over which changes (swaps or permutations)"),
        n="number of inputs",
    ),
)
