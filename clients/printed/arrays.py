"""Random writes of arrays that overflow, and the arrays that they must lead to."""

import random

# The collection, its array, the names in its overflow.
ARRAYS = [
    ("users", "followers", "userId", "followerId", "followerCount"),
    ("books", "readers", "parent", "value", "readersCount"),
    ("clubs", "members", "parent", "value", "membersCount"),
]
# Arrays from before.
THERE = [{"_id": 8, "followers": list(range(9))}, {"_id": 9, "followers": [1]}, {"_id": 10, "name": "none"}]


def some(choice, kind, number, known):
    """Items; where none may be there twice, new ones."""
    items = [choice.randrange(9) for _ in range(choice.randrange(1, 6))]
    if kind == "books":
        return [{"id": item, "name": "x" * choice.randrange(30)} for item in items]
    if kind == "clubs":
        return [100 * number + place for place, _ in enumerate(items)]
    return items


def acts(seed, model):
    """Yields the writes, and keeps `model` as what each array is afterwards: a dict by collection and `_id`."""
    choice = random.Random(seed)
    model.update({("users", host["_id"]): list(host.get("followers", [])) for host in THERE})
    yield "divide", "usersFollowers", []
    for number in range(120):
        kind, array, *_ = choice.choice(ARRAYS)
        name, _id = kind + array.capitalize(), choice.randrange(5)
        known = model.get((kind, _id))
        items = some(choice, kind, number, known)
        verb = choice.choice(["push", "push", "push", "pull", "pull", "set", "delete"]) if known is not None else "insert"
        if verb == "insert":
            model[kind, _id] = items
            yield verb, name, [{"_id": _id, "name": f"n{number}", array: items}]
        elif verb == "push":
            model[kind, _id] = known + items
            yield verb, name, [_id, items]
        elif verb == "set":
            model[kind, _id] = items
            yield verb, name, [_id, items]
        elif verb == "delete" and choice.randrange(3) == 0:
            del model[kind, _id]
            yield verb, name, [_id]
        elif known:
            gone = choice.sample(known, min(len(known), 2)) + items[:1]
            model[kind, _id] = [item for item in known if item not in gone]
            yield "pull", name, [_id, gone]


def compare(db, model):
    """All items of each array in their order, and the counts."""
    for kind, array, owner, item, count in ARRAYS:
        wanted = {_id: items for (collection, _id), items in model.items() if collection == kind}
        found = {host["_id"]: [] for host in db[kind].find()}
        for row in db[f"{kind}.{array}"].find(sort=[(owner, 1), ("index", 1)]):
            found[row[owner]].append(row[item])
        assert found == wanted, (kind, found, wanted)
        counts = {host["_id"]: host[count] for host in db[kind].find()}
        assert counts == {_id: len(items) for _id, items in wanted.items()}, counts
