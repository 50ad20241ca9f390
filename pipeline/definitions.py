"""What Dagster loads: assets with their checks, jobs, resources, merged."""

import dagster as dg

from pipeline.factory import build_assets
from pipeline.jobs import build_jobs
from pipeline.resources import RESOURCES
from pipeline.studies import StudyError, loaded_studies


class NotLoaded(StudyError, dg.DagsterError):
    """A StudyError as Dagster shows it without wrapping it in an error of its own, which its pages would begin with."""


try:
    studies = loaded_studies()
except StudyError as error:
    raise NotLoaded(str(error)) from None

defs = dg.Definitions(assets=build_assets(studies), jobs=build_jobs(studies), resources=RESOURCES)
