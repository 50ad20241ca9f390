"""`python -m warehouse.verify`: check every file of every artifact of the store at $ROPEWALK_STORE (or ./store)."""

import logging
import sys

from warehouse.store import Store, StoreError


def main() -> int:
    """Verify, quarantine what is damaged, remove what dead writers left. The exit code is 1 if any was damaged."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    try:
        store = Store.from_environment()
        damaged = store.verify()
        left = store.clean()
        sound = list(store.artifacts())
    except StoreError as error:
        print(error, file=sys.stderr)
        return 1
    n_bytes = sum(artifact.n_bytes for artifact in sound)
    print(
        f"{store.root}: {len(sound)} artifacts sound ({n_bytes / 1e6:.1f} MB), {len(damaged)} quarantined, "
        f"{len(left)} left-overs removed"
    )
    return 1 if damaged else 0


if __name__ == "__main__":
    sys.exit(main())
