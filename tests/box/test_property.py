"""Thousands of random build folders: whatever is in them, disk_clean removes what rule 8 allows and nothing else.

The generator knows what it planted; the oracle is a listing of everything by inode, before and after. A folder
is allowed to go if nothing was planted that forbids it; everything else must be there, untouched.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tasks.box.mounts import read_mounts
from tasks.box.processes import Processes, _Seen
from tasks.box.remove import KeptError, remove
from tasks.box.tally import ASIDE_PREFIX
from tests.box.world import NOBODY, World, age_all, bind, tmpfs

# Each checkout has four to six random trees among its build folders.
CHECKOUTS, BATCHES = 440, 4
# Mounts are made in some of them only: they cost the kernel milliseconds.
MOUNTED = 0.1


@dataclass
class Plan:
    """What was planted in one world. `held` is used by a process, `late` happens during the removal."""

    allowed: set[Path] = field(default_factory=set)
    held: list[Path] = field(default_factory=list)
    late: dict[Path, Callable[[Path], None]] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()


def _somewhere(folder: Path, dice: random.Random) -> Path:
    return dice.choice([path for path in (folder, *folder.rglob("*")) if path.is_dir() and not path.is_symlink()])


def _forbid(world: World, folder: Path, plan: Plan, dice: random.Random, stack: contextlib.ExitStack,
            outside: Path) -> None:
    """Plant one thing because of which the folder must stay."""
    kinds = ["young", "object", "no cache", "other cache", "copied", "link out", "held", "git", "note", "fresh", "fifo"]
    if os.geteuid() == 0:
        kinds += ["owner", "file owner"]
        if dice.random() < MOUNTED:
            kinds = ["bind", "tmpfs", "mount point"]
    kind, place, old = dice.choice(kinds), _somewhere(folder, dice), True
    if kind == "young":
        old = False
    elif kind == "no cache":
        (folder / "CMakeCache.txt").unlink()
    elif kind in ("other cache", "copied"):
        cache = folder / "CMakeCache.txt"
        entry = "CMAKE_HOME_DIRECTORY:INTERNAL=" if kind == "other cache" else "CMAKE_CACHEFILE_DIR:INTERNAL="
        cache.write_text(cache.read_text().replace(entry, f"{entry}/elsewhere"))
    elif kind == "link out":
        (place / "out").symlink_to(dice.choice([outside, outside / "gold", world.root / "cmake", world.configured]))
    elif kind == "held":
        plan.held.append(place)
    elif kind == "git":
        (folder / ".git").mkdir()
    elif kind == "note":
        (folder / "note.md").touch()
    elif kind == "fifo":
        os.mkfifo(place / "fifo")
    elif kind == "owner":
        os.chown(folder, NOBODY, NOBODY)
    elif kind == "file owner":
        os.chown(dice.choice([path for path in folder.rglob("*") if not path.is_symlink()]), NOBODY, NOBODY)
    elif kind == "bind":
        stack.enter_context(bind(outside, place / "mounted"))
    elif kind == "tmpfs":
        (stack.enter_context(tmpfs(place / "mounted")) / "gold").touch()
    elif kind == "mount point":
        stack.enter_context(bind(folder, folder))
    age_all(folder, dice.uniform(31, 400) if old else dice.uniform(0, 29))
    if kind == "object":
        (folder / "CMakeFiles/provider.dir/late.o").touch()
    elif kind == "fresh":
        (folder / "fresh.txt").touch()


def _harmless(folder: Path, dice: random.Random, outside: Path) -> None:
    """Things that a stale folder may hold."""
    for number in range(dice.randrange(4)):
        place = _somewhere(folder, dice)
        kind = dice.choice(["file", "folder", "link", "dangling", "hard link", "deps", "read-only"])
        name = f"{kind} {number}"
        if kind == "file":
            (place / f"{name}.o").write_bytes(b"z" * dice.randrange(9000))
        elif kind == "folder":
            (place / name).mkdir()
        elif kind == "link":
            (place / name).symlink_to(folder / "CMakeFiles")
        elif kind == "dangling":
            (place / name).symlink_to("gone")
        elif kind == "hard link":
            # Each its own: the age of one folder would be that of all.
            shared = outside / f"shared {len(os.listdir(outside))}"
            shared.touch()
            os.link(shared, place / name)
        elif kind == "deps":
            (folder / "_deps/cutlass-src/.git").mkdir(parents=True, exist_ok=True)
        else:
            (place / name).mkdir()
            (place / name).chmod(0o555)


def _late(dice: random.Random, outside: Path) -> Callable[[Path], None]:
    """Something that happens between the first look and the deletion, and because of which the folder must stay."""
    return dice.choice([
        lambda path: (path / "CMakeFiles/late.o").touch(),
        lambda path: (path / "CMakeCache.txt").unlink(),
        lambda path: os.mkfifo(path / "late"),
        lambda path: _swap(path, outside),
    ])


def _swap(path: Path, outside: Path) -> None:
    """The folder goes elsewhere and a link takes its place."""
    if ASIDE_PREFIX not in str(path):
        os.rename(path, outside / "swapped")
        path.symlink_to(outside / "swapped")
    else:
        (path / "CMakeFiles/late.o").touch()


def _build(world: World, plan: Plan, dice: random.Random, stack: contextlib.ExitStack, outside: Path) -> int:
    """Returns how many trees there are."""
    names = dice.sample(["Linux/Debug", "Linux/Old", "a", "deep/er/Release", "Linux/Mini Size", "b/Linux/Debug"],
                        dice.randrange(4, 7))
    for name in names:
        folder = world.add(name, 0)
        _harmless(folder, dice, outside)
        age_all(folder, dice.uniform(31, 400))
        fate = dice.random()
        if fate < 0.6:
            _forbid(world, folder, plan, dice, stack, outside)
        elif fate < 0.75:
            plan.late[folder] = _late(dice, outside)
        else:
            plan.allowed.add(folder)
    if dice.random() < 0.2:
        (world.root / "build/link").symlink_to(dice.choice([outside, world.configured, world.root]))
    if dice.random() < 0.1:
        plan.hidden, plan.allowed = ("make (process 7, bob)",), set()
    return len(names)


def _listing(place: Path, leave_out: set[Path]) -> set[tuple[str, int]]:
    """(name, inode) of every file and folder; of what lies in `leave_out` nothing."""
    found = set()
    for folder, folders, files in os.walk(place):
        folders[:] = [name for name in folders if Path(folder, name) not in leave_out]
        found |= {(path := os.path.join(folder, name), os.lstat(path).st_ino) for name in (*folders, *files)}
    return found


def _inodes(listing: set[tuple[str, int]]) -> set[int]:
    return {inode for _, inode in listing}


def _clean(world: World, plan: Plan) -> None:
    """What the task does, with a made-up process table."""
    moment: dict[str, object] = {}

    def see() -> Processes:
        seen = tuple(_Seen(1, "make", "root", {str(path): "works in"}, ()) for path in plan.held)
        act, path, at = moment.get("act"), moment.get("path"), moment.get("at")
        moment["looks"] = looks = int(moment.get("looks", 0)) + 1  # type: ignore[call-overload]
        if act is not None and looks == at:
            aside = list(path.parent.glob(f"{ASIDE_PREFIX}*/{path.name}"))  # type: ignore[attr-defined]
            act(aside[0] if aside else path)  # type: ignore[operator]
        return Processes(seen, plan.hidden, read_mounts())

    box = world.look(see)
    for folder in box.stale:
        # At the first look, before the move: the walk after the move must find it.
        moment = {"act": plan.late.get(folder.path), "path": folder.path, "at": 1}
        with contextlib.suppress(KeptError):
            remove(folder, box, see)


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A folder of a file system in memory, where one may be mounted: thousands of small folders take seconds there."""
    if os.geteuid() == 0:
        with tmpfs(tmp_path / "memory", "size=200m") as folder:
            yield folder
    else:
        # Without root the trees have neither mounts nor other owners.
        yield tmp_path


@pytest.mark.parametrize("batch", range(BATCHES))
def test_only_what_is_allowed_is_removed_and_all_of_it(in_memory: Path, batch: int) -> None:
    trees = 0
    for number in range(CHECKOUTS // BATCHES):
        seed = batch * 1_000_000 + number
        dice, plan, base = random.Random(seed), Plan(), in_memory / str(number)
        outside = base / "outside"
        outside.mkdir(parents=True)
        (outside / "gold").write_text("gold")
        world = World(base / "ort")
        with contextlib.ExitStack() as stack:
            trees += _build(world, plan, dice, stack, outside)
            before = _listing(base, plan.allowed)
            _clean(world, plan)
            after = _listing(base, set())
            gone = {path for path in plan.allowed if not path.exists()}
            lost = {path for path, inode in before if inode not in _inodes(after)}
            # Those that happen late may move or remove a file themselves: the cache is theirs.
            lost = {path for path in lost if not (Path(path).parent in plan.late and path.endswith("CMakeCache.txt"))}
            assert not lost, f"seed {seed}: {sorted(lost)[:5]} were removed"
            assert gone == plan.allowed, f"seed {seed}: {plan.allowed - gone} stayed"
            assert not [path for path, _ in after if ASIDE_PREFIX in path], f"seed {seed}: something is left aside"
            assert (outside / "gold").read_text() == "gold"
        shutil.rmtree(base)
    assert trees >= 2000 / BATCHES
