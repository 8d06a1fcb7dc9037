from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import Tree

GENERATORS = ["Unix Makefiles", "Ninja"]


@pytest.fixture(scope="session")
def built_trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tree]:
    """Trees by generator, built once: host compiler only, and the build system knows nothing of the headers."""
    trees: dict[str, Tree] = {}
    folder = tmp_path_factory.mktemp("trees")
    for generator in GENERATORS:
        name = generator.split()[-1].lower()
        tree = Tree(folder / name, generator, ["MINIORT_HOST_ONLY=ON", "MINIORT_DEPFILE_GAP=ON"])
        tree.configure()
        done = tree.make()
        assert done.status == 0, done.text
        trees[generator] = tree
    return trees


@pytest.fixture(params=GENERATORS)
def tree(request: pytest.FixtureRequest, built_trees: dict[str, Tree]) -> Iterator[Tree]:
    """A fresh tree of each generator."""
    tree = built_trees[request.param]
    tree.pristine()
    return tree


@pytest.fixture
def make_tree(built_trees: dict[str, Tree]) -> Tree:
    """A fresh tree of the Makefile generator, for what no generator changes."""
    tree = built_trees["Unix Makefiles"]
    tree.pristine()
    return tree
