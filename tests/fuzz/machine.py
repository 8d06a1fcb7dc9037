"""The rules of the fuzz that run something: judge, build, kill, edit meanwhile; each checks what it ran."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import hypothesis.strategies as st
from hypothesis.stateful import precondition, rule

from tests.fuzz.changes import FILES, PERCENT, Changes
from tests.fuzz.doit_fork import ForkedDoit
from tests.fuzz.model import Artifacts
from tests.fuzz.world import VARIANTS, Variant, World, kill
from tests.support import Run, run

__all__ = ["machine_class"]

# A rebuild of four units takes about this long, in seconds; what is drawn is a percentage of it.
_REBUILD_S = 0.9

# What runs something takes a hundred times as long as what changes something, and finds little where little has
# changed: so that about a quarter of the steps run.
_CHANGES_BETWEEN = 2
after_changes = precondition(lambda machine: machine.changes >= _CHANGES_BETWEEN)


class _Machine(Changes):
    """All rules."""

    def step(self, text: str) -> None:
        super().step(text)
        self.changes += 1

    def ran(self, text: str) -> None:
        """A step that runs something."""
        super().step(text)
        self.changes = 0

    @after_changes
    @rule()
    def status(self) -> None:
        self.ran("status()")
        self.check()

    @after_changes
    @rule()
    def verify_without_building(self) -> None:
        self.ran("verify -s()")
        self.check("-s", "verify")

    @after_changes
    @rule()
    def rebuild(self) -> None:
        self.ran("rebuild()")
        self.hold(self.judge.rebuild())

    @after_changes
    @rule()
    def mend_and_rebuild(self) -> None:
        self.ran("mend_and_rebuild()")
        self.edits.mend()
        self.hold(self.judge.rebuild())

    @after_changes
    @rule()
    def build_by_hand(self) -> None:
        self.ran("hand()")
        before = self.world.artifacts()
        self.world.hand_build().wait(timeout=120)
        self.learn(before, quiet=True)
        self.check()

    # -- while something runs --------------------------------------------------------------------------------

    def learn(self, before: Artifacts, quiet: bool) -> None:
        """Objects may have been written."""
        self.world.model.compiled(before, self.world.artifacts(), self.world.seen(), quiet)

    def begin_rebuild(self, *arguments: str) -> tuple[Artifacts, ForkedDoit]:
        before = self.world.artifacts()
        self.world.model.begun(self.world.units(), before)
        self.world.figures.commands["rebuild_fmha"] += 1
        return before, self.world.start("rebuild_fmha", *arguments)

    def wait_for_the_build(self, process: ForkedDoit, percent: int) -> None:
        """A moment in the build that `process` runs; its end, where it builds nothing."""
        while process.poll() is None and not self.world.build_processes():
            time.sleep(0.005)
        end = time.monotonic() + _REBUILD_S * percent / 100
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)

    @after_changes
    @rule(name=FILES, needed=st.booleans(), percent=PERCENT)
    def edit_during_a_rebuild(self, name: str, needed: bool, percent: int) -> None:
        self.ran(f"edit_during({name}, {needed}, {percent})")
        if needed:
            self.edits.edit(self.file(name))
        before, process = self.begin_rebuild()
        self.wait_for_the_build(process, percent)
        self.edits.edit(self.file(name))
        self.whole(process.wait())
        self.learn(before, quiet=False)
        self.check()

    @after_changes
    @rule(name=FILES, needed=st.booleans(), percent=st.integers(0, 60), pause=PERCENT)
    def edit_and_undo_during_a_rebuild(self, name: str, needed: bool, percent: int, pause: int) -> None:
        """As `git stash; git stash pop` does; the times are put back too."""
        self.ran(f"undo_during({name}, {needed}, {percent}, {pause})")
        path = self.file(name)
        if needed:
            self.edits.edit(path)
        stat, text = path.stat(), path.read_text()
        before, process = self.begin_rebuild()
        self.wait_for_the_build(process, percent)
        self.edits.edit(path)
        time.sleep(_REBUILD_S * pause / 100)
        path.write_text(text)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        done = self.whole(process.wait())
        self.learn(before, quiet=False)
        verdict = self.check()
        # Where all was compiled and proved before it was put back, the objects hold the edit: not fresh any more.
        if done.status == 0 and verdict != "fresh" and self.is_right():
            self.hold([f"false alarm: {verdict} after a rebuild that succeeded, the content is the same"])

    @after_changes
    @rule(name=FILES, percent=PERCENT)
    def edit_during_a_build_by_hand(self, name: str, percent: int) -> None:
        self.ran(f"edit_during_hand({name}, {percent})")
        before = self.world.artifacts()
        process = self.world.hand_build()
        time.sleep(_REBUILD_S * percent / 100)
        self.edits.edit(self.file(name))
        process.wait(timeout=120)
        self.learn(before, quiet=False)
        self.check()

    def whole(self, done: Run) -> Run:
        """A run that ended: never with a traceback."""
        assert "Traceback" not in done.text, done.text
        return done

    @after_changes
    @rule(percent=PERCENT, whole_tree=st.booleans(), then=st.sampled_from(("wait", "rebuild", "edit")), name=FILES,
          needed=st.booleans())
    def kill_a_rebuild(self, percent: int, whole_tree: bool, then: str, name: str, needed: bool) -> None:
        self.ran(f"kill({percent}, {whole_tree}, {then}, {name}, {needed})")
        if needed:
            self.edits.edit(self.file(name))
        idle = self.world.model.must_be_fresh(self.world.units(), self.world.seen(), self.world.artifacts())
        before, process = self.begin_rebuild()
        time.sleep((0.1 + _REBUILD_S) * percent / 100)
        kill(process, self.world, whole_tree)
        document = self.world.judge()  # a build may still run: no more than this can be said
        if document["verdict"] == "fresh" and not idle and not self.is_right():
            self.hold(["false green while the build of a killed run goes on"])
        if then == "edit":
            self.edits.edit(self.file(name))
        if then != "wait":
            done = self.whole(self.world.start("rebuild_fmha", "wait=1").wait())
            compiles = all(unit.compiles for unit in self.world.units().values())
            if compiles and done.status != 0:
                self.hold([f"rebuild_fmha wait=1 failed after a kill:\n{done.text}"])
            # What the build of the killed run left half-written is written anew by the second run.
            self.learn(before, quiet=then == "rebuild" and done.status == 0)
            if (verdict := self.check()) != "fresh" and compiles:
                self.hold([f"{verdict} after a rebuild that succeeded"])
            return
        self.world.wait_for_orphans()
        self.learn(before, quiet=not whole_tree)
        self.check()

    def is_right(self) -> bool:
        """Whether the provider says of itself what the sources say now."""
        built = self.world.built()
        return built is not None and all(built.get(name) == unit.revisions
                                         for name, unit in self.world.units().items() if unit.watched)

    @after_changes
    @rule()
    def two_rebuilds_at_once(self) -> None:
        self.ran("two()")
        before, process = self.begin_rebuild("wait=1")
        second = self.world.start("rebuild_fmha", "wait=1", log="second")
        ended = [self.whole(one.wait()) for one in (process, second)]
        self.learn(before, quiet=True)
        if all(unit.compiles for unit in self.world.units().values()) and any(done.status for done in ended):
            self.hold([f"one of two rebuilds failed:\n{ended[0].text}\n{ended[1].text}"])
        self.check()

    # -- build directories -----------------------------------------------------------------------------------

    @after_changes
    @rule()
    def copy_the_build_directory(self) -> None:
        self.ran("copy()")
        copy = self.world.build_dir.with_name("Copied")
        run(["cp", "-a", self.world.build_dir, copy], self.world.folder)
        document = self.world.judge("-s", "verify", build_dir=copy)
        shutil.rmtree(copy)
        if document.get("verdict") == "fresh":
            self.hold(["false green: a copied build directory is fresh"])
        self.check()

    @after_changes
    @rule()
    def put_a_copy_in_the_place_of_the_build_directory(self) -> None:
        self.ran("restore_build_directory()")
        aside: Path = self.world.build_dir.with_name("Aside")
        self.world.build_dir.rename(aside)
        run(["cp", "-a", aside, self.world.build_dir], self.world.folder)
        shutil.rmtree(aside)
        self.world.model.forget()
        self.check()

    @after_changes
    @rule(variant=st.sampled_from(VARIANTS))
    def switch_the_generator(self, variant: Variant) -> None:
        self.ran(f"configure({variant})")
        self.world.configure(variant)
        self.world.bring_oracle()
        self.world.model.forget()
        if self.check() == "fresh":
            self.hold(["false green: an empty build directory is fresh"])

    def teardown(self) -> None:
        """Every sequence can be ended well."""
        if self.trace:
            self.world.wait_for_orphans()


def machine_class(world: World, faults: list[str]) -> type[_Machine]:
    """The state machine, bound to a world; what goes wrong is added to `faults`, with the steps that led to it."""
    return type("Fuzz", (_Machine,), {"world": world, "faults": faults})
