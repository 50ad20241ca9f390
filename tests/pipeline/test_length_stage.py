"""The stage on trained checkpoints, end to end: tables, checks, and one figure over them."""

import duckdb

from ops.tasks.registry import parse_study

LENGTH = """
  length:
    lengths: [17, 20, 60]
    n_prefixes: 3
    n_sequences: 12
    n_head_sequences: 4
    inference: [{name: log_n}, {name: position_interpolation}, {name: yarn}]
    n_inference_sequences: 6
    active: {lengths: [17, 40], n_prefixes: 2, n_sequences: 4}
    every: 2
"""


def test_lengths_of_a_tiny_study(run, tiny_yaml, tmp_path):
    study = parse_study(tiny_yaml.replace("experiments:", LENGTH.strip("\n") + "\nexperiments:", 1), "tiny.yaml")
    ran = run(study)
    assert ran.success
    with duckdb.connect(str(tmp_path / "store" / "warehouse.duckdb"), read_only=True) as connection:
        counts = connection.sql(
            "SELECT experiment, step, lengthening, inference, count(*) FROM length_accuracy GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        for experiment in ("tiny_letter", "tiny_number"):
            assert [row[1:] for row in counts if row[0] == experiment] == [
                (0, "inert", "none", 9),
                (2, "inert", "none", 9),
                (4, "active", "none", 6),
                (4, "inert", "log_n", 9),
                (4, "inert", "none", 9),
                (4, "inert", "position_interpolation", 9),
                (4, "inert", "yarn", 9),
            ]
        heads = connection.sql("SELECT count(*) FROM length_heads").fetchall()
        assert heads == [(2 * 2 * 3 * 2,)]  # experiments × layers × lengths × query kinds
        assert connection.sql("SELECT count(*) FROM length_summary").fetchall() == [(2 * 5,)]
