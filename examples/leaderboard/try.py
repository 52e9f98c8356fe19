"""A leader board that is always right: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys

from pymongo import MongoClient

shop = MongoClient(sys.argv[1]).shop


def show(what, board, **others):
    game = shop.games.find_one({"_id": "chess"})
    found = [(entry["player"], entry["score"]) for entry in game["leaders"]]
    print(f"{what}: {found}, {({name: game[name] for name in others})}")
    assert found == board, f"expected {board}"
    assert {name: game[name] for name in others} == others, f"expected {others}"


show("the board", [("bob", 70), ("eve", 60), ("ann", 50)], record=70, champion="bob", players=3)
shop.scores.insert_one({"_id": 4, "gameId": "chess", "player": "ann", "score": 70})
show("a tie: the earlier score stands first", [("bob", 70), ("ann", 70), ("eve", 60)], champion="bob", players=3)
shop.scores.insert_one({"_id": 5, "gameId": "chess", "player": "zoe", "score": 10})
show("one that is not among them", [("bob", 70), ("ann", 70), ("eve", 60)], players=4)
shop.scores.delete_one({"_id": 2})
show("the champion's score was a cheat", [("ann", 70), ("eve", 60), ("ann", 50)], record=70, champion="ann", players=3)
shop.scores.update_one({"_id": 5}, {"$inc": {"score": 90}})
show("a new record", [("zoe", 100), ("ann", 70), ("eve", 60)], record=100, champion="zoe")
