"""The cheap rules of the fuzz: sources are edited, artifacts and state are damaged, in any order."""

from __future__ import annotations

import shutil
from pathlib import Path

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.fuzz.checks import FaultError, Judge
from tests.fuzz.edits import EXTRAS, MOMENTS, STYLES, Editor, set_time
from tests.fuzz.sources import CONFIGURED
from tests.fuzz.world import POOL, World

__all__ = ["FILES", "PERCENT", "Changes"]

UNITS = ("fmha_sm50", "fmha_sm80", "memory_efficient_attention", "attention_impl", "bert/attention.cc")
PERCENT = st.integers(0, 100)
FILES = st.sampled_from(POOL)
NAMES = st.sampled_from(EXTRAS)


class Changes(RuleBasedStateMachine):
    """The cheap rules: sources, artifacts and state change, nothing is built."""

    world: World
    faults: list[str]

    def __init__(self) -> None:
        super().__init__()
        self.trace = self.world.trace = []
        self.changes = 0  # steps since something ran
        self.edits = Editor(self.world)
        self.judge = Judge(self.world, self.edits.remember_built)
        self.world.figures.sequences += 1

    def step(self, text: str) -> None:
        """Count and write down."""
        self.trace.append(text)
        self.world.figures.steps += 1
        self.world.figures.rules[text.partition("(")[0]] += 1

    def hold(self, faults: list[str]) -> None:
        """Nothing of this may have happened."""
        if faults:
            text = "\n".join((*faults, f"{self.world.variant}, after:", *(f"  {line}" for line in self.trace)))
            self.faults.append(text)
            raise FaultError(text)

    def check(self, *arguments: str) -> str:
        """The verdict of `status`, or of the command that is given, held against the model."""
        document, faults = self.judge.status(*arguments)
        self.trace.append(f"-> {document.get('verdict')}")
        self.hold(faults)
        return str(document["verdict"])

    @initialize(number=st.integers(0, 3))
    def begin(self, number: int) -> None:
        number %= len(self.world.variants)
        self.step(f"begin({self.world.variants[number]})")
        self.world.reset(number)
        if (verdict := self.check()) != "fresh":
            self.hold([f"false alarm: {verdict} after a copy of all was put back in its place"])

    # -- sources ---------------------------------------------------------------------------------------------

    def file(self, name: str) -> Path:
        return self.world.path(name)

    @rule(name=FILES)
    def edit(self, name: str) -> None:
        self.step(f"edit({name})")
        self.edits.edit(self.file(name))

    @rule(name=FILES)
    def edit_comment(self, name: str) -> None:
        self.step(f"comment({name})")
        self.edits.comment(self.file(name))

    @rule(name=FILES)
    def edit_disguised(self, name: str) -> None:
        self.step(f"disguised({name})")
        self.edits.disguised(self.file(name))

    @rule(name=FILES)
    def break_a_file(self, name: str) -> None:
        self.step(f"break({name})")
        self.edits.break_it(self.file(name))

    @rule(name=FILES, back=st.integers(0, 5))
    def revert(self, name: str, back: int) -> None:
        self.step(f"revert({name}, {back})")
        self.edits.revert(self.file(name), back)

    @rule()
    def restore_built(self) -> None:
        self.step("restore_built()")
        self.edits.restore_built()

    @rule()
    def mend(self) -> None:
        self.step("mend()")
        self.edits.mend()

    @rule(name=FILES, moment=st.sampled_from(MOMENTS))
    def set_time_of_a_file(self, name: str, moment: str) -> None:
        self.step(f"set_time({name}, {moment})")
        # Ninja refuses to build at all where CMake reads a file from the future.
        moment = "now" if name == CONFIGURED and moment == "ahead" else moment
        set_time(self.file(name), moment)

    @rule(name=FILES)
    def replace_by_link(self, name: str) -> None:
        self.step(f"replace_by_link({name})")
        self.edits.replace_by_link(self.file(name))

    @rule(name=NAMES)
    def add_a_header(self, name: str) -> None:
        self.step(f"add({name})")
        self.edits.add(name)

    @rule(name=NAMES, includer=FILES, style=st.sampled_from(STYLES))
    def include_a_header(self, name: str, includer: str, style: str) -> None:
        self.step(f"include({name}, {includer}, {style})")
        self.edits.include(name, self.file(includer), style)

    @rule(name=NAMES, includer=FILES)
    def drop_an_include(self, name: str, includer: str) -> None:
        self.step(f"drop_include({name}, {includer})")
        self.edits.drop_include(name, self.file(includer))

    @rule(name=NAMES, with_includes=st.booleans())
    def delete_a_header(self, name: str, with_includes: bool) -> None:
        self.step(f"delete({name}, {with_includes})")
        self.edits.delete(name, with_includes)

    @rule(old=NAMES, new=NAMES)
    def rename_a_header(self, old: str, new: str) -> None:
        self.step(f"rename({old}, {new})")
        self.edits.rename(old, new)

    @rule()
    def shadow_a_header(self) -> None:
        self.step("shadow()")
        self.edits.shadow()

    @rule()
    def change_the_environment(self) -> None:
        self.step("CPATH()")
        folder = {"CPATH": str(self.world.folder / "empty")}
        self.world.environment = {} if self.world.environment else folder

    # -- artifacts and state ---------------------------------------------------------------------------------

    @rule(name=st.sampled_from(UNITS))
    def delete_an_object(self, name: str) -> None:
        self.step(f"delete_object({name})")
        self.world.units()[name].object.unlink(missing_ok=True)

    @rule(name=st.sampled_from(UNITS), other=st.sampled_from(UNITS), keep_times=st.booleans())
    def replace_an_object(self, name: str, other: str, keep_times: bool) -> None:
        self.step(f"replace_object({name}, {other}, {keep_times})")
        units = self.world.units()
        if units[other].object.exists() and name != other:
            (shutil.copy2 if keep_times else shutil.copyfile)(units[other].object, units[name].object)
            self.world.model.put_there(name, self.world.artifacts())

    @rule(name=st.sampled_from(UNITS), keep_times=st.booleans())
    def put_back_a_saved_object(self, name: str, keep_times: bool) -> None:
        self.step(f"put_back_object({name}, {keep_times})")
        self.world.put_back(self.world.units()[name].object, keep_times)

    @rule(name=st.sampled_from(UNITS), moment=st.sampled_from(MOMENTS))
    def set_time_of_an_object(self, name: str, moment: str) -> None:
        self.step(f"set_time_of_object({name}, {moment})")
        if (path := self.world.units()[name].object).exists():
            set_time(path, moment)

    @rule(what=st.sampled_from(("delete", "cut", "saved", "saved with times", *MOMENTS)))
    def change_the_provider(self, what: str) -> None:
        self.step(f"provider({what})")
        provider = self.world.provider
        if what.startswith("saved"):
            self.world.put_back(provider, what.endswith("times"))
        elif provider.exists():
            if what == "delete":
                provider.unlink()
            elif what == "cut":
                provider.write_bytes(provider.read_bytes()[:5000])
            else:
                set_time(provider, what)

    @rule()
    def save_the_artifacts(self) -> None:
        self.step("save()")
        self.world.save()

    @rule(garbage=st.sampled_from((b"", b"no database", b"SQLite format 3\0" + b"\xff" * 4096)))
    def corrupt_the_database(self, garbage: bytes) -> None:
        self.step(f"corrupt_database({garbage[:15]!r})")
        if self.world.state.is_dir():
            (self.world.state / "doit.sqlite3").write_bytes(garbage)

    @rule(name=st.sampled_from((*UNITS, "link", "generated")),
          how=st.sampled_from(("delete", "empty", "cut", "flip", "old")))
    def corrupt_a_receipt(self, name: str, how: str) -> None:
        self.step(f"corrupt_receipt({name}, {how})")
        if path := self.world.receipt(name):
            self.world.corrupt(path, how)
            if name in ("link", "generated"):
                self.world.model.linked = None  # no claim on the whole
            else:
                self.world.model.proven.pop(name, None)

    @rule(command=st.sampled_from((("forget",), ("reset-dep",), ("forget", "build"))))
    def tamper_with_doits_state(self, command: tuple[str, ...]) -> None:
        self.step(f"doit({' '.join(command)})")
        self.world.doit(*command)
