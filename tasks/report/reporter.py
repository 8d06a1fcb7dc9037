"""doit's reporter for this project: one line a task, errors without a class name, stdout kept for JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from doit.reporter import ConsoleReporter

if TYPE_CHECKING:
    from doit.exceptions import BaseFail
    from doit.task import Task

__all__ = ["Reporter", "reporter_class"]


class Reporter(ConsoleReporter):  # type: ignore[misc]
    """Tells `selected` what was asked for, and `ended` when doit stopped, whatever it came to."""

    selected: Callable[[Sequence[str]], None]
    ended: Callable[[], None]

    def __init__(self, outstream: TextIO, options: Mapping[str, Any]) -> None:
        super().__init__(sys.stderr if "--json" in sys.argv else outstream, options)

    def initialize(self, tasks: Mapping[str, Task], selected_tasks: Sequence[str]) -> None:  # noqa: ARG002
        """Called before anything runs."""
        type(self).selected(selected_tasks)

    def execute_task(self, task: Task) -> None:
        """Called when a task's action begins; flushed, since the action's own output follows."""
        super().execute_task(task)
        self.outstream.flush()

    def add_failure(self, task: Task, fail: BaseFail) -> None:
        """Called when a task failed. It is told last: a verdict of forty lines would push it off the screen."""
        if fail.report:
            self.failures.append({"task": task, "exception": fail})

    def _write_failure(self, result: Mapping[str, Any]) -> None:
        failure: BaseFail = result["exception"]
        if failure.get_name() == "UnmetDependency":
            return  # the task below has told its reason
        from tasks.report.wrap import fitted

        text = f"{result['task'].name}: {failure.get_msg().strip()}"
        self.write("".join(f"{fitted(line, self.outstream)}\n" for line in text.split("\n")))
        self.outstream.flush()

    def complete_run(self) -> None:
        """Called last."""
        try:
            type(self).ended()
        finally:
            for failure in self.failures:
                self._write_failure(failure)
            for message in self.runtime_errors:
                self.write(f"{message}\n")
            self.outstream.flush()


def reporter_class(selected: Callable[[Sequence[str]], None], ended: Callable[[], None]) -> type[Reporter]:
    """A reporter for one run. doit makes the instance itself, from a class."""
    return type("Reporter", (Reporter,), {"selected": staticmethod(selected), "ended": staticmethod(ended)})
