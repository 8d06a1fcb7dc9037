"""What each node of a growing graph reaches, as bit sets: every node is followed once for all roots.

Files that include each other in a circle reach the same, so the graph's strongly connected
components (Tarjan) are finished innermost first, and what a finished one reaches is joined, never
walked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

__all__ = ["Reach", "bits"]


def bits(mask: int) -> Iterator[int]:
    """The numbers of the set bits, from the lowest."""
    # A search in text: arithmetic would copy the whole number for each bit.
    digits = f"{mask:b}"[::-1]
    number = digits.find("1")
    while number >= 0:
        yield number
        number = digits.find("1", number + 1)


class Reach:
    """Bit sets of reachable nodes, the node itself among them. `edges` must answer the same each time."""

    def __init__(self, edges: Callable[[int], Sequence[int]]) -> None:
        self._edges = edges
        self._done: dict[int, int] = {}

    def of(self, root: int) -> int:
        """The nodes that `root` reaches."""
        if root not in self._done:
            self._finish(root)
        return self._done[root]

    def _finish(self, root: int) -> None:
        order: dict[int, int] = {root: 0}
        low: dict[int, int] = {root: 0}
        reached: dict[int, int] = {root: 1 << root}
        component: list[int] = [root]
        walk: list[tuple[int, Iterator[int]]] = [(root, iter(self._edges(root)))]
        while walk:
            node, targets = walk[-1]
            for target in targets:
                if (known := self._done.get(target)) is not None:
                    reached[node] |= known
                elif target in order:
                    low[node] = min(low[node], order[target])
                else:
                    order[target] = low[target] = len(order)
                    reached[target] = 1 << target
                    component.append(target)
                    walk.append((target, iter(self._edges(target))))
                    break
            else:
                walk.pop()
                if walk:
                    above = walk[-1][0]
                    low[above] = min(low[above], low[node])
                    reached[above] |= reached[node]
                if low[node] == order[node]:
                    members = component[component.index(node):] if component[-1] != node else [node]
                    del component[-len(members):]
                    self._done.update(dict.fromkeys(members, reached[node]))
