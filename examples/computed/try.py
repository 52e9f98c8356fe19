"""Numbers that stay true: run with the address of a server that declares pleach.yaml (examples/run does)."""

import sys

from pymongo import MongoClient
from pymongo.errors import WriteError

shop = MongoClient(sys.argv[1]).shop


def show(what, expected, _id="tea"):
    product = shop.products.find_one(_id)
    value = {field: product.get(field) for field in expected}
    print(f"{what}: {value}")
    assert value == expected, f"expected {expected}"


show("from the start", {"reviewCount": 2, "avgRating": 4.5, "totalRevenue": 18, "margin": 4})
show("without children", {"reviewCount": 0, "avgRating": None, "totalRevenue": 0, "margin": 5}, "cup")

shop.reviews.insert_one({"productId": "tea", "rating": 3})
show("another review", {"reviewCount": 3, "avgRating": 4.0})

shop.reviews.update_one({"_id": 2}, {"$set": {"productId": "cup"}})
show("a review moves away", {"reviewCount": 2, "avgRating": 3.5})
show("… to the other product", {"reviewCount": 1, "avgRating": 5.0}, "cup")

shop.sales.update_one({"_id": 2}, {"$set": {"status": "paid"}})
show("an open sale is paid", {"totalRevenue": 27})

shop.products.update_one({"_id": "tea"}, {"$set": {"price": 10}})
show("a new price", {"margin": 5})

shop.reviews.delete_many({"productId": "tea"})
show("all reviews deleted", {"reviewCount": 0, "avgRating": None})

try:
    shop.products.update_one({"_id": "tea"}, {"$inc": {"reviewCount": 1}})
    raise SystemExit("a kept field was written")
except WriteError as error:
    print(f"refused: {error.details['errmsg']}")
    assert error.code == 66
