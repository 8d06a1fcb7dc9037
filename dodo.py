"""From an edit of a CUTLASS fused-MHA header to a test result that can be believed.

    units --> object:<unit> --> build --> rebuild_fmha --> verify --> test_mea

Each task proves one piece of that line; `doit status` shows how far the proof reaches now.
"""

import os
from pathlib import Path

from doit import create_after, get_initial_workdir

from tasks import startup
from tasks.steps import Proved, each_unit, look, step, verdict

session = startup.begin(Path(__file__).resolve().parent, Path(get_initial_workdir()), os.environ)
DOIT_CONFIG = startup.doit_config(session)


def task_units():
    return step(session, startup.action("rebuild", "find_units"), "find the units that reach a watched header")


@create_after(executed="units")
def task_object():
    yield from each_unit(session, startup.action("rebuild", "force_unit"), "recompile one unit, unless proved")


def task_build():
    return step(session, startup.action("rebuild", "build_units"), "run the user's build, write receipts",
                task_dep=["object"], uptodate=[Proved(session)])


def task_rebuild_fmha():
    return verdict(session, startup.action("rebuild", "rebuild_fmha"),
                   "make the objects hold the edit: recompile exactly what it reaches", after="build")


def task_verify():
    return verdict(session, startup.action("verify", "verify"),
                   "build, then prove that objects and provider hold the edit (-s verify: no build)",
                   after="rebuild_fmha")


def task_test_mea():
    return verdict(session, startup.action("test_mea", "test_mea"),
                   "run the memory-efficient attention tests on the proved provider", after="verify")


def task_status():
    return look(session, startup.action("status", "status"), "where do I stand? (never builds)")


def task_why():
    return look(session, startup.action("why", "why"), "why would UNIT be recompiled, or not? (why [--json] UNIT)",
                pos_arg="units")


def task_audit():
    return look(session, startup.action("audit", "audit"), "what does the build system know of the watched headers?")


def task_kernels():
    return look(session, startup.action("kernels", "kernels"), "which kernels are in the objects and the provider?")


def task_flips():
    return look(session, startup.action("flips", "flips"), "which test results changed, and with which provider?")


def task_disk():
    return look(session, startup.action("disk", "disk"), "what fills the disk?")


def task_disk_clean():
    return look(session, startup.action("disk_clean", "disk_clean"), "remove build folders that are clearly stale")


def task_demo():
    return step(session, startup.action("demo", "demo"), "show it on a copy of the miniature checkout")
