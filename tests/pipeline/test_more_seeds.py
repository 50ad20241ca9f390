"""`more_seeds`: assets that a study's own job leaves out, and the job that has them too."""

import dagster as dg
import pytest

from ops.spec.study import SpecError
from ops.tasks.registry import parse_study
from pipeline.factory import build_assets
from pipeline.jobs import build_jobs
from pipeline.resources import RESOURCES
from pipeline.studies import StudyError, declared_studies

TEXT = """
study: pair
description: two experiments
defaults: {seeds: [0], more_seeds: [3, 5]}
experiments:
  one: {task: {name: number}}
  two: {task: {name: letter}, more_seeds: []}
"""


def seeds_of_jobs(study):
    """Job name → the (experiment, seed) pairs that it computes."""
    definitions = dg.Definitions(assets=build_assets([study]), jobs=build_jobs([study]), resources=RESOURCES)
    jobs = definitions.get_repository_def().get_all_jobs()
    return {
        job.name: {
            (key.path[0], key.path[1].rpartition("_s")[2])
            for key in job.asset_layer.executable_asset_keys & job.asset_layer.selected_asset_keys
            if len(key.path) == 2
        }
        for job in jobs
        if not job.name.startswith("__")
    }


def test_the_job_of_the_study_leaves_them_out():
    jobs = seeds_of_jobs(parse_study(TEXT, "pair.yaml"))
    assert jobs["pair"] == {("one", "0"), ("two", "0")}
    assert jobs["pair_more_seeds"] == {("one", "0"), ("one", "3"), ("one", "5"), ("two", "0")}
    assert jobs["results"] == set()


def test_no_second_job_without_them():
    assert set(seeds_of_jobs(parse_study(TEXT.replace("[3, 5]", "[]"), "pair.yaml"))) == {"pair", "results"}


def test_the_paper_can_be_run_on_three_seeds():
    paper = next(study for study in declared_studies() if study.study == "paper")
    assert {seed for name, seed in seeds_of_jobs(paper)["paper_more_seeds"] if name == "paper_number"} == {
        "0",
        "1",
        "2",
    }


def test_a_seed_twice_is_refused():
    with pytest.raises(SpecError, match="seeds must not repeat, neither in seeds nor in more_seeds"):
        parse_study(TEXT.replace("[3, 5]", "[3, 0]"), "pair.yaml")


def test_a_study_may_not_take_the_second_jobs_name(tmp_path):
    (tmp_path / "pair.yaml").write_text(TEXT.replace("study: pair", "study: pair_more_seeds"))
    with pytest.raises(StudyError, match="pipeline's own name"):
        declared_studies([tmp_path])
