"""What Dagster loads: assets with their checks, jobs, resources, merged."""

import dagster as dg

from pipeline.factory import build_assets
from pipeline.jobs import build_jobs
from pipeline.resources import RESOURCES
from pipeline.studies import declared_studies

studies = declared_studies()

defs = dg.Definitions(assets=build_assets(studies), jobs=build_jobs(studies), resources=RESOURCES)
