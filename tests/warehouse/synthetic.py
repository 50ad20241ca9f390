"""Made-up results with the shape of real ones: two studies, both tasks, several seeds. No model is run."""

import numpy as np
import polars as pl

TAUS = (1e-4, 1e-2)
STUDIES = {
    # study: layers, width, hops, steps, every, seeds
    "quick": (6, 64, (1, 2), 1_000, 50, (0, 1)),
    "paper": (12, 128, (1, 2, 3, 4), 6_750, 250, (0, 1, 2)),
}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def results(studies=("quick", "paper"), tasks=("number", "letter"), paper_every=250, seed=0) -> dict[str, pl.DataFrame]:
    """The foundation's tables as frames; plausible learning curves with noise that differs by seed."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[dict]] = {
        name: []
        for name in (
            "experiments", "training_log", "accuracy", "head_scores", "frequency_use", "shortcut_accuracy",
        )
    }  # fmt: skip
    for study in studies:
        n_layers, width, hops, steps, every, seeds = STUDIES[study]
        every = paper_every if study == "paper" else every
        for task in tasks:
            for s in seeds:
                run = {"experiment": f"{study}_{task}", "seed": s}
                _one_run(rng, rows, run, study, task, n_layers, width, hops, steps, every)
    return {name: pl.DataFrame(records, infer_schema_length=None) for name, records in rows.items() if records}


def _one_run(rng, rows, run, study, task, n_layers, width, hops, steps, every):
    half = width // 2
    rows["experiments"].append(
        run
        | {
            "task": task, "study": study, "n_layers": n_layers, "n_heads": 1, "width": width, "sequence_length": 17,
            "hops": list(hops), "frequencies": list(range(1, half + 1)), "n_parameters": 12 * n_layers * width * width,
            "spec": f'{{"study":"{study}","task":{{"name":"{task}"}}}}', "key": "0" * 64,
        }
    )  # fmt: skip
    onset = 0.3 * steps * (1 + 0.05 * rng.standard_normal())
    gap = 0.06 * steps if task == "number" else 0.005 * steps
    checkpoints = sorted({*range(0, steps + 1, every), steps})
    for step in range(0, steps + 1, 10):
        loss = 4.8 * (1 - sigmoid((step - onset) / (0.06 * steps))) + 0.01 + 0.02 * abs(rng.standard_normal())
        rows["training_log"].append(
            run | {"step": step, "loss": loss, "learning_rate": 1e-4, "steps_per_s": 20.0, "grad_norm": 1.0}
        )
    for step in checkpoints:
        by_hop = []
        for h in hops:
            rise = sigmoid((step - onset - gap * (h - 1)) / (0.02 * steps))
            by_hop.append(float(np.clip(rise + 0.003 * rng.standard_normal(), 0, 1)) if rise < 0.999 else 1.0)
        for hop, value in [(None, float(np.mean(by_hop))), *zip(hops, by_hop, strict=True)]:
            rows["accuracy"].append(
                run | {"step": step, "split": "test", "hop": hop, "accuracy": value, "loss": 5 * (1 - value), "n": 600}
            )
    for name, value in (("query integer alone", 0.17), ("unique left letter", 0.91 if task == "letter" else 0.06)):
        for hop in (None, *hops):
            rows["shortcut_accuracy"].append(
                run
                | {
                    "task": task,
                    "shortcut": name,
                    "hop": hop,
                    "accuracy": min(1.0, value * (1 + 0.1 * (hop or 0))),
                    "n": 2_400,
                }
            )
    for layer in range(n_layers):
        _one_layer(rng, rows, run, task, layer, n_layers, half, steps, checkpoints)


def _one_layer(rng, rows, run, task, layer, n_layers, half, steps, checkpoints):
    share = layer / n_layers
    if task == "number":
        kind = "positional" if 0 < share < 0.4 else "symbolic" if share >= 0.5 else "mixed"
    else:
        kind = "mixed" if layer == 0 else "symbolic"
    start = (0.2 + 0.2 * rng.random()) * steps
    target = {"positional": (1.0, 0.02), "symbolic": (0.02, 1.0), "mixed": (0.75, 0.7)}[kind]
    centre = {"positional": 2.0, "symbolic": 0.6 * half, "mixed": 0.3 * half}[kind]
    ids = np.arange(1, half + 1)
    for step in checkpoints:
        done = sigmoid((step - start) / (0.03 * steps))
        entropy = 2.8 * (1 - 0.9 * done) + 0.02 * rng.standard_normal()
        for query in ("last", "hop"):
            for tau in TAUS:
                pos, sym = (1 - (1 - t) * done - 0.01 * rng.random() for t in target)
                rows["head_scores"].append(
                    run
                    | {
                        "step": step, "layer": layer, "head": 0, "query": query, "tau": tau, "positional_score": pos,
                        "symbolic_score": sym, "entropy": entropy, "own_mass": 0.05, "negligible_mass": 0.0, "n": 1_200,
                    }
                )  # fmt: skip
        use = 0.1 + done * 8 * np.exp(-0.5 * ((ids - centre) / (0.5 + 0.15 * centre)) ** 2) + 0.05 * rng.random(half)
        for i, u in zip(ids.tolist(), use.tolist(), strict=True):
            rows["frequency_use"].append(
                run
                | {
                    "step": step, "layer": layer, "head": 0, "frequency_id": i, "theta": 10_000 ** (-(i - 1) / half),
                    "mean": u, "q25": 0.8 * u, "q50": u, "q75": 1.2 * u,
                }
            )  # fmt: skip
