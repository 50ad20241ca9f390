"""Run as a script: publish in child processes that are killed, or whose disk fails, at the n-th system call.

    store_driver.py kill|once|from <store> <source folder> <error number>

`kill`: SIGKILL before call 1, 2, … (so after the one before it) until a publish gets through. `once`, `from`: the call
fails with the error number, alone or with all later ones. After every attempt this process checks the store. Prints a
JSON summary.
"""

import json
import os
import signal
import sys
from pathlib import Path

from warehouse.store import Artifact, Store, StoreError

CALLS = ("open", "write", "fsync", "mkdir", "rename", "replace", "symlink", "unlink", "rmdir")
THROUGH, REFUSED, OTHER = 2, 3, 4  # how a child ends: published in spite of the error, StoreError, anything else
EARLIER = "e" * 64
MANIFEST = {"spec": {}, "inputs": {}, "provenance": {}, "summary": {}}
REAL = {name: getattr(os, name) for name in CALLS}
os.fsync = REAL["fsync"] = lambda descriptor: None  # counted, not done: SIGKILL loses nothing that was written


def intercept(act) -> None:
    """Call `act(n, name, call)` in place of the n-th call that changes or syncs files; n counts from 1."""
    count = 0

    def replacement(name):
        def call(*arguments, **keywords):
            nonlocal count
            count += 1
            return act(count, name, lambda: REAL[name](*arguments, **keywords))

        return call

    for name in CALLS:
        setattr(os, name, replacement(name))


def copy_of(source: Path):
    """A `write` that copies a folder in small pieces, so that a kill or an error can fall within a file."""

    def write(folder: Path) -> None:
        for path in sorted(source.iterdir()):
            content = path.read_bytes()
            descriptor = os.open(folder / path.name, os.O_WRONLY | os.O_CREAT, 0o644)
            for start in range(0, len(content), len(content) // 2 + 1):
                os.write(descriptor, content[start : start + len(content) // 2 + 1])
            os.close(descriptor)

    return write


def attempt(store: Store, key: str, source: Path) -> None:
    """One publish of `source` through a work folder, exposed as a folder and, file by file, as copies."""
    with store.building("stage", key) as folder:
        if not (folder / "resume").exists():
            REAL["mkdir"](folder / "resume")
        artifact = store.get("stage", key) or store.publish("stage", key, copy_of(source), **MANIFEST)
    expose_all(store, artifact)


def expose_all(store: Store, artifact: Artifact) -> None:
    store.expose(artifact, "report")
    for name in artifact.files:
        store.expose(artifact, name)


def in_child(store: Store, key: str, source: Path, act) -> tuple[int, str]:
    """(how the child ended: 0, the exit code, or minus the signal; what it said)."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        said, code, reached = "", 0, []
        intercept(lambda n, name, call: act(n, name, call, reached))
        try:
            attempt(store, key, source)
            code = THROUGH if reached else 0
        except StoreError as error:
            said, code = str(error), REFUSED
        except BaseException as error:  # noqa: BLE001 (the parent fails on it)
            said, code = repr(error), OTHER
        REAL["write"](send, said.encode()[:4000])
        os._exit(code)
    os.close(send)
    with os.fdopen(receive) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}


def check_store(store: Store, key: str, source: Path, earlier: Path) -> str:
    """Whatever happened: an artifact is whole or absent, and what is exposed is the old or the new, whole."""
    good = content(source)
    artifact = store.get("stage", key)
    assert artifact is None or content(artifact.path) == good
    assert [a.key for a in store.artifacts("all")] == sorted({EARLIER, *([key] if artifact else [])})
    assert not (store.root / "quarantine").exists(), "a killed publish left something that looked like a result"
    assert content(store.root / "report") in (content(earlier), good)
    for name in good:
        assert (store.root / name).read_bytes() in ((earlier / name).read_bytes(), good[name])
    if artifact is None:
        assert content(store.root / "report") == content(earlier)
    return "after" if artifact else "before"


def main(mode: str, root: str, source: str, number: str) -> None:
    store, new, old = Store(root), Path(source) / "new", Path(source) / "old"
    exposed = store.publish("stage", EARLIER, copy_of(old), **MANIFEST)
    expose_all(store, exposed)
    ends: dict[str, int] = {"before": 0, "after": 0}
    names: set[str] = set()
    sentences: set[str] = set()
    n, code = 0, None
    while code != 0:
        n += 1
        key = f"{n:012x}" + "0" * 52

        def act(count, name, call, reached, n=n):
            if count == n and mode == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if (count == n and mode == "once") or (count >= n and mode == "from"):
                reached.append(count)
                raise OSError(int(number), os.strerror(int(number)), f"<{name}>")
            return call()

        code, said = in_child(store, key, new, act)
        assert code in ((0, -signal.SIGKILL) if mode == "kill" else (0, THROUGH, REFUSED)), (n, code, said)
        assert "\n" not in said
        names.add(said[said.rfind("<") + 1 : said.rfind(">")])
        sentences.add(said.partition(": ")[0].replace(key[:12], "<key>").replace(str(store.root), "<store>"))
        ends[check_store(store, key, new, old)] += 1
        if code != 0:
            store.clean()
            assert not list(store.root.glob("**/.partial-*"))
            assert in_child(store, key, new, lambda count, name, call, reached: call()) == (0, "")
            assert check_store(store, key, new, old) == "after"
        expose_all(store, exposed)
        os.rename(store.root / "artifacts" / "stage" / key, Path(source) / f"{mode}-{n}-{os.getpid()}")
        assert n < 500
    assert not list(store.root.glob("work/*/[!.]*")), "work of a published key was left behind"
    print(json.dumps({"attempts": n, "ends": ends, "calls": sorted(names), "sentences": sorted(sentences)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
