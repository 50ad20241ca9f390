"""What was declared and what was published."""

from ops.tables.table import COUNT, INTEGER, INTEGERS, REAL, TEXT, TEXTS, table

ORDER = 100

ROOM_TABLES = (
    table(
        "experiments",
        "One row an experiment and seed that was declared.",
        "task study n_layers n_heads width sequence_length hops frequencies n_parameters spec key",
        study=(TEXT, "", "study that declares the experiment, e.g. quick or paper"),
        n_layers=(INTEGER, "layers", "number of layers"),
        n_heads=(INTEGER, "heads", "number of attention heads a layer"),
        width=(INTEGER, "dimensions", "dimensions of the residual stream"),
        sequence_length=(INTEGER, "tokens", "tokens a sequence, the query included"),
        hops=(INTEGERS, "hops", "hop classes of the task"),
        frequencies=(INTEGERS, "", "frequency IDs (planes) that rotate, from 1"),
        n_parameters=(COUNT, "parameters", "number of trained parameters"),
        spec=(TEXT, "JSON", "the whole experiment as canonical JSON"),
        key="key of its newest stage that all its results depend on: the trained checkpoints",
    ),
    table(
        "artifacts",
        "One row a published artifact: what was computed, where, how long it took, and from what.",
        "stage key bytes wall_s created_at device torch_version git_revision inputs",
        stage=(TEXT, "", "stage that computed it, e.g. head_scores"),
        bytes=(COUNT, "bytes", "size of its files"),
        wall_s=(REAL, "s", "time it took to compute"),
        created_at=(TEXT, "ISO 8601, UTC", "when it was published"),
        device=(TEXT, "", "device that computed it"),
        torch_version=(TEXT, "", "version of torch that computed it"),
        git_revision=(TEXT, "", "git revision of the project; NULL outside a repository"),
        inputs=(TEXTS, "", "keys of the artifacts it was computed from"),
    ),
)
