"""What a person asks of `python -m pipeline.run`: a study, some of its experiments and seeds, or only to be told."""

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from assets.stage import Replicate
from ops.spec.study import StudySpec, more_seeds
from pipeline.plans import replicates
from pipeline.studies import MORE_SEEDS, StudyError, declared_studies, loaded_studies, narrowed

RESULTS = "results"


class Asked(NamedTuple):
    """The job's name (a study's, that with `_more_seeds`, or `results`), experiments, seeds (none named: all)."""

    job: str
    only: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def study(self) -> str:
        """The name of the study; "" where the job is `results`."""
        return "" if self.job == RESULTS else self.job.removesuffix(MORE_SEEDS)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which every process of the run loads what was asked for and nothing else."""
        named = {"ROPEWALK_ONLY": ",".join(self.only), "ROPEWALK_SEEDS": ",".join(self.seeds)}
        return named | ({"ROPEWALK_STUDIES": self.study} if self.study else {})

    def studies(self) -> tuple[StudySpec, ...]:
        """The study as it will be loaded; none for `results`. Raises StudyError, also on a faulty file of those."""
        if not self.study:
            loaded_studies()  # what the report is over: a faulty file is told here, in one sentence
            return ()
        found = declared_studies(wanted=(self.study,))
        if self.job != self.study and not any(more_seeds(each) for each in found[0].experiments):
            raise StudyError(f"the study {self.study!r} has no more_seeds; run {self.study}")
        return narrowed(found, self.only, self.seeds) if self.only or self.seeds else found

    def replicates(self) -> list[Replicate]:
        """What the job computes. Raises StudyError like `studies`."""
        everything = replicates(self.studies())
        return [each for each in everything if self.job != self.study or each.seed in each.experiment.seeds]


def parse(arguments: Sequence[str]) -> Asked:
    """What the words of a command line ask; exits with 2 and one sentence where they ask for nothing that there is."""
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.run",
        description="Run one study and end with a table; what is in the store is not computed again.",
    )
    parser.add_argument("study", help="a study's name, that with _more_seeds, or results (the report from the store)")
    parser.add_argument("--only", action="append", default=[], metavar="EXPERIMENT", help="this experiment; repeatable")
    parser.add_argument("--seeds", default="", metavar="0,1", help="these seeds, also of more_seeds")
    parser.add_argument("--dry-run", action="store_true", help="say what would be computed and what is there; no more")
    found = parser.parse_args(arguments)
    seeds = tuple(seed.strip() for seed in found.seeds.split(",") if seed.strip())
    only = tuple(name.strip() for names in found.only for name in names.split(",") if name.strip())
    if found.study == RESULTS and (only or seeds):
        parser.error("results takes no experiments or seeds: the report is over all that the store holds")
    if seeds and found.study.endswith(MORE_SEEDS):
        parser.error(f"name the seeds and leave {MORE_SEEDS} out")
    return Asked(found.study, only, seeds, found.dry_run)
