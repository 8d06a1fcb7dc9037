"""The known causes of a gap, each in one line with its mend. Knows no build directory; both are filled in."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

__all__ = ["CAUSES", "Cause", "Places", "told"]


@dataclass(frozen=True)
class Places:
    """What the texts are filled in with."""

    build_dir: str
    cmake_dir: str
    target: str
    language: str
    sources: tuple[str, ...]
    header: str
    detail: str
    rebuild: str


@dataclass(frozen=True)
class Cause:
    """One cause: what is the matter, and the command or setting that mends it."""

    text: str
    mend: str


_RECOMPILE = "touch {sources} && {build}"

CAUSES: dict[str, Cause] = {
    "no-depfile-flag": Cause(
        "the compile line asks for no depfile (no -MD): CMAKE_DEPFILE_FLAGS_{language} is empty",
        "leave CMAKE_DEPFILE_FLAGS_{language} to CMake, then: {configure} && {rebuild}"),
    "system-headers": Cause(
        "-MMD leaves out what an -isystem folder brings in",
        "-MD instead of -MMD in CMAKE_DEPFILE_FLAGS_{language} (or a folder that is not SYSTEM), then: {configure}"
        " && {rebuild}"),
    "records-deleted": Cause(
        "the object is there, but no record of its headers and no depfile: deleted, or never taken over",
        _RECOMPILE),
    "depfile-unusable": Cause(
        "the depfile beside the object is empty, cut or no depfile; the build tool passes over it in silence",
        _RECOMPILE),
    "depfile-not-read": Cause(
        "the compiler wrote a depfile, but the build files never read it",
        "configure again with this CMake: {configure}"),
    "launcher": Cause(
        "{detail} put the object there without a depfile",
        "{configure} -DCMAKE_{language}_COMPILER_LAUNCHER= && {rebuild}"),
    "not-compiled": Cause("not compiled yet; the next build compiles it and records its headers", "{build}"),
    "make-stops": Cause("{detail}", "{configure}"),
    "new-include": Cause("included since the last compile; the next build compiles the unit and records it", "{build}"),
    "not-opened": Cause(
        "the compiler did not open it (a condition leaves it out), or the record is not whole",
        "doit audit compiler=1 asks the compiler"),
    "shadowed": Cause("another file of this name: {detail}; the record is of the other one", "{rebuild}"),
    "old-mtime": Cause("its content is another than the compiled one, under a time that is not newer", "{rebuild}"),
    "inode-changed": Cause(
        "replaced since the compile (or its mode or owner changed), under a time that is not newer", "{rebuild}"),
    "link-repointed": Cause("the link was set anew since the compile, to a file that is not newer", "{rebuild}"),
    "edited-while-compiling": Cause("written while the object was being compiled", "{rebuild}"),
    "copied": Cause(
        "this build directory is a copy: its objects are newer than an edit that they do not hold", "touch {header}"),
    "tool-disagrees": Cause(
        "recorded, but the build tool itself would not recompile (a name that it cannot read, say)", "{rebuild}"),
    "not-folded": Cause(
        "its headers lie in a depfile that an ordinary build takes over first; `make {target}/fast` and"
        " `make -f build.make` do not", "{build}"),
    "test-target": Cause("{detail} does not depend on {target}: building it alone leaves the provider as it is",
                         "{build}"),
    "post-build-copy": Cause("{detail}", "cmake -E copy_if_different {sources} {header}"),
    "unresolved-include": Cause("a computed include that was not understood: {detail}",
                                "doit audit compiler=1 asks the compiler"),
    "closure-fault": Cause("the compiler opens it, the closure lacks it: {detail}", "please report this"),
    "closure-surplus": Cause("in the closure, but not opened by the compiler: {detail}", "nothing, a superset is safe"),
    "compiler-failed": Cause("the compiler could not be asked: {detail}", "{build}"),
    "not-asked": Cause("{detail}", "nothing, the records alone were read"),
}


def told(kind: str, places: Places) -> tuple[str, str]:
    """The cause and its mend as text for these places."""
    build = shlex.join(["cmake", "--build", places.build_dir, "--target", places.target])
    configure = shlex.join(["cmake", "-S", places.cmake_dir, "-B", places.build_dir])
    fill = {"build": build, "configure": configure, "rebuild": places.rebuild, "target": places.target,
            "language": places.language, "sources": shlex.join(places.sources), "header": shlex.quote(places.header),
            "detail": places.detail}
    cause = CAUSES[kind]
    return cause.text.format(**fill), cause.mend.format(**fill)
