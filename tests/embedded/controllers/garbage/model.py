"""What must be left of a world of owned objects, found without any collector: names and who they say owns them."""

from random import Random

GHOST = "ghost"  # an owner that never was


class Model:
    def __init__(self, owners: dict[str, set[str]]) -> None:
        self.owners = {name: set(named) for name, named in owners.items()}
        self.settle()

    def delete(self, name: str, propagation: str) -> None:
        self.owners.pop(name)
        if propagation == "Orphan":
            for named in self.owners.values():
                named.discard(name)
        self.settle()

    def settle(self) -> None:
        """Remove whoever has owners of which none is left, until nobody is removed; forget owners that are gone."""
        while gone := [name for name, named in self.owners.items() if named and not named & self.owners.keys()]:
            for name in gone:
                del self.owners[name]
        for named in self.owners.values():
            named.intersection_update(self.owners)


def random_owners(chance: Random, count: int) -> dict[str, set[str]]:
    """Trees, shared dependents, circles, ghosts and hermits, as chance will have it."""
    names = [f"o{number}" for number in range(count)]
    candidates = [*names, GHOST]
    return {name: set(chance.sample(candidates, chance.choice([0, 0, 1, 1, 1, 2, 3]))) for name in names}
