"""Which headers a unit sees: every way that directives, folders and links bring one in."""

from __future__ import annotations

import os

from tests.campaign.cells import any_cell
from tests.campaign.scenario import scenario
from tests.campaign.world import World


@scenario("a header is added and included")
def added(w: World) -> None:
    w.write(w.header("tile_smem_loader"), "tile_smem_loader")
    w.include('#include "contrib_ops/cuda/bert/cutlass_fmha/tile_smem_loader.h"')
    w.look()
    w.update()
    w.edit("tile_smem_loader")
    w.age(w.header("tile_smem_loader"))
    w.look()
    w.update()


@scenario("a header is renamed")
def renamed(w: World) -> None:
    w.header("kernel_forward").rename(w.header("kernel_forward_new"))
    w.replace(w.header("fmha_launch_template"), "cutlass_fmha/kernel_forward.h", "cutlass_fmha/kernel_forward_new.h")
    w.edit("kernel_forward_new")
    w.look()
    w.update()


@scenario("a header is deleted while still included, then put back")
def deleted(w: World) -> None:
    header = w.header("kernel_forward")
    with w.same_time(header):
        kept = w.swap(header, header.unlink)
        w.look()
        w.update()
        header.write_bytes(kept)
    w.look()
    w.update()


@scenario("a header is deleted while still included, and put back edited and old")
def deleted_and_edited(w: World) -> None:
    header = w.header("kernel_forward")
    kept = w.swap(header, header.unlink)
    w.update()
    header.write_bytes(kept)
    w.edit(header)
    w.age(header)
    w.update()


@scenario("an include is removed from a header, which is edited later")
def include_removed(w: World) -> None:
    extra = w.write(w.place.fmha / "extra.h", "extra")
    w.include('#include "contrib_ops/cuda/bert/cutlass_fmha/extra.h"')
    w.adopt()
    w.replace(w.header("kernel_forward"), '#include "contrib_ops/cuda/bert/cutlass_fmha/extra.h"', "")
    w.update()
    w.edit(extra)
    w.look()
    w.update()


@scenario("a new header shadows the old one earlier on the include path", quick=True)
def shadowing(w: World) -> None:
    shadow = w.place.fmha / "contrib_ops/cuda/bert/cutlass_fmha/kernel_forward.h"
    shadow.parent.mkdir(parents=True)
    shadow.write_text(w.header("kernel_forward").read_text())
    w.edit(shadow, by=6)
    w.age(shadow)
    w.look()
    w.update()


@scenario("a shadowing header is removed again")
def shadow_removed(w: World) -> None:
    shadow = w.place.fmha / "contrib_ops/cuda/bert/cutlass_fmha/kernel_forward.h"
    shadow.parent.mkdir(parents=True)
    shadow.write_text(w.header("kernel_forward").read_text())
    w.edit(shadow, by=6)
    w.adopt()
    shadow.unlink()
    w.look()
    w.update()


@scenario("a header in the build directory shadows one of a folder behind it")
def shadowing_in_build_dir(w: World) -> None:
    header = w.write(w.place.root / "onnxruntime/core/tuning.h", "tuning")
    w.include('#include <core/tuning.h>')
    w.adopt()
    shadow = w.write(w.place.build_dir / "core/tuning.h", "tuning", revision=4)
    w.age(shadow)
    w.look()
    w.update()
    del header


@scenario("a header behind a computed include is edited")
def computed(w: World) -> None:
    tiles = w.write(w.place.fmha / "tiles_a.h", "tiles")
    w.include('#define TILES_(x) <contrib_ops/cuda/bert/cutlass_fmha/tiles_##x.h>\n#define TILES(x) TILES_(x)\n'
              "#define VARIANT a\n#include TILES(VARIANT)")
    w.adopt()
    w.edit(tiles)
    w.age(tiles)
    w.look()
    w.update()


@scenario("the macro of a computed include names another header")
def computed_elsewhere(w: World) -> None:
    w.write(w.place.fmha / "tiles_a.h", "tiles")
    other = w.write(w.place.fmha / "tiles_b.h", "tiles", revision=5)
    w.age(other)
    w.write(w.place.fmha / "variant.h", "variant", '#define TILES "tiles_a.h"')
    w.include('#include "variant.h"\n#include TILES')
    w.adopt()
    w.replace(w.place.fmha / "variant.h", "tiles_a.h", "tiles_b.h")
    w.age(w.place.fmha / "variant.h")
    w.look()
    w.update()


@scenario("the macro of a computed include stands on the command line")
def computed_by_option(w: World) -> None:
    tiles = w.write(w.place.fmha / "tiles_a.h", "tiles")
    w.in_cmake("target_compile_definitions(${onnxruntime_providers_cuda_target} PRIVATE "
               '"TILES=<contrib_ops/cuda/bert/cutlass_fmha/tiles_a.h>")\n'
               "foreach(target IN LISTS provider_parts)\n  target_compile_definitions(${target} PRIVATE "
               '"TILES=<contrib_ops/cuda/bert/cutlass_fmha/tiles_a.h>")\nendforeach()')
    w.include("#ifdef TILES\n#include TILES\n#endif")
    w.reconfigure()
    w.adopt()
    w.edit(tiles)
    w.age(tiles)
    w.look()
    w.update()


@scenario("a header that `__has_include` looks for appears, then changes")
def has_include(w: World) -> None:
    w.include('#if __has_include("optional_tiles.h")\n#include "optional_tiles.h"\n#endif')
    w.adopt()
    optional = w.write(w.place.fmha / "optional_tiles.h", "optional_tiles")
    w.age(optional)
    w.look()
    w.update()
    w.edit(optional)
    w.age(optional)
    w.look()
    w.update()
    optional.unlink()
    w.look()
    w.update()


@scenario("a header that `__has_include` only asks for appears")
def has_include_only(w: World) -> None:
    w.include('#if __has_include("marker.h")\n#define MARKED 2\n#else\n#define MARKED 1\n#endif\n'
              '#include "core/providers/cuda/unit_record.h"\nMINIORT_WATCHED_HEADER(marked, MARKED)')
    w.adopt()
    (w.place.fmha / "marker.h").write_text("\n")
    w.age(w.place.fmha / "marker.h")
    w.look()
    w.update()


@scenario("a header under a taken `#if` is edited")
def under_if(w: World) -> None:
    wide = w.write(w.place.fmha / "wide.h", "wide")
    w.include("#if defined(USE_CUDA) && USE_CUDA + 0 >= 1 && !defined(__NO_SUCH__)\n#  include \"wide.h\"\n#endif")
    w.adopt()
    w.edit(wide)
    w.age(wide)
    w.update()


@scenario("a header under an `#if` that is never taken is edited", undecidable=any_cell,
          reason="every `#if` counts as taken: telling which is needs the preprocessor. Such an edit recompiles the "
                 "units once, needlessly, and is fresh afterwards")
def under_false_if(w: World) -> None:
    never = w.write(w.place.fmha / "never.h", "never")
    w.include('#if 0\n#include "never.h"\n#endif')
    w.adopt()
    w.edit(never)
    w.look()
    w.update()


@scenario("a macro of one header turns on an include of another")
def switched_on(w: World) -> None:
    w.write(w.place.fmha / "sparse.h", "sparse")
    switch = w.place.fmha / "switch.h"
    switch.write_text("#define SPARSE 0\n")
    w.include('#include "switch.h"\n#if SPARSE\n#include "sparse.h"\n#endif')
    w.adopt()
    switch.write_text("#define SPARSE 1\n")
    w.age(switch)
    w.look()
    w.update()


@scenario("a unit includes another unit, which is edited")
def unit_in_unit(w: World) -> None:
    inner = w.write(w.place.fmha / "fmha_inner.cu", "fmha_inner")
    w.include('#include "fmha_inner.cu"', w.unit("fmha_sm80"))
    w.adopt()
    w.edit(inner)
    w.age(inner)
    w.look()
    w.update()


@scenario("a header in a folder with a peculiar name is edited")
def peculiar_names(w: World) -> None:
    # CMake writes a colon into make's records as it is: make stops at it, whoever started the build.
    names = ("sp ace", "do$lar", "ha#sh", *(() if w.cell.is_make else ("co:lon",)))
    headers = [w.write(w.place.fmha / name / f"tiles{number}.h", f"tiles{number}") for number, name in enumerate(names)]
    w.include("\n".join(f'#include "{path.parent.name}/{path.name}"' for path in headers))
    w.adopt()
    for header in headers:
        w.edit(header)
        w.age(header)
        w.update()


@scenario("`#line` names a file that does not exist")
def line_directive(w: World) -> None:
    with w.header("kernel_forward").open("a") as file:
        file.write('#line 1 "nowhere.h"\n')
    w.adopt()
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    w.look()
    w.update()


@scenario("a header that is reached through a linked folder is edited")
def linked_folder(w: World) -> None:
    tiles = w.write(w.place.beside / "tiles" / "tiles.h", "tiles")
    (w.place.fmha / "tiles").symlink_to(tiles.parent)
    w.include('#include "tiles/tiles.h"')
    w.adopt()
    w.edit(tiles)
    w.age(tiles)
    w.look()
    w.update()


@scenario("a linked folder is pointed elsewhere")
def folder_repointed(w: World) -> None:
    first = w.write(w.place.beside / "tiles1" / "tiles.h", "tiles")
    second = w.write(w.place.beside / "tiles2" / "tiles.h", "tiles", revision=3)
    w.age(second)
    link = w.place.fmha / "tiles"
    link.symlink_to(first.parent)
    w.include('#include "tiles/tiles.h"')
    w.adopt()
    link.unlink()
    link.symlink_to(second.parent)
    os.utime(link, (1e9, 1e9), follow_symlinks=False)
    w.look()
    w.update()
