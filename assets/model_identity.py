"""Which model a spec's source is on this machine; digests of large files are remembered in the store."""

from collections.abc import Callable

from ops.language_models.digests import full_digests
from ops.language_models.identity import identity, is_pinned
from ops.spec.language_models import SourceSpec
from warehouse.digests import RememberedDigests
from warehouse.store import Store


def model_identity(spec: SourceSpec) -> str:
    """A digest of every file that decides, as `ops.language_models.identity` says; asked whenever keys are planned."""
    remembered = RememberedDigests(Store.from_environment().root / "digests", full_digests)
    return identity(spec.source, spec.revision, remembered)


def warn_of_unpinned(spec: SourceSpec, log: Callable[[str], None]) -> None:
    """Say that a hub name without a commit is one model to the store, whatever the hub has under it later."""
    if not is_pinned(spec.source, spec.revision):
        log(f"{spec.source}: revision is not a commit; what changes on the hub is not seen, pin the commit")
