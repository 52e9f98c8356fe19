"""One world for each pattern: whole data from a seed, with few heavy units among many light ones, the rule, and the read that it is
about, by hand and with the rule."""

from datetime import datetime, timedelta
from random import Random

START = datetime(2025, 1, 1)
WORDS = "amber birch cedar delta ember fjord grove haven iris juniper knoll lilac maple north ocean pine quartz river slate thorn".split()


def text(chance, least, most):
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(least, most)))


def heavy(chance, most):
    """How many children a parent has: few, but some parents have very many."""
    return min(most, int(chance.paretovariate(1.1)))


class World:
    rules = ""
    indexes = {}

    def data(self, chance, scale):
        raise NotImplementedError

    def reads(self, chance, sample):
        """Pairs of lists of commands: on the data as it is, and with the rule."""
        return [], []


class ExtendedReference(World):
    rules = "orders:\n    extended_reference:\n      customer: { from: customers, by: customerId, fields: [name, address] }"

    def data(self, chance, scale):
        customers = [
            {"_id": n, "name": text(chance, 1, 3), "address": {"street": text(chance, 1, 6), "zip": f"{chance.randrange(10**5):05}"},
             "about": text(chance, 5, 60)}
            for n in range(scale)
        ]
        orders, number = [], 0
        for customer in customers:
            for _ in range(heavy(chance, 400)):
                orders.append({"_id": number, "customerId": customer["_id"], "total": chance.random() * 100, "note": text(chance, 0, 12)})
                number += 1
        return {"customers": customers, "orders": orders}

    def read(self, doc):
        first = {"find": "orders", "filter": {"_id": doc["_id"]}, "limit": 1}
        return [first, {"find": "customers", "filter": {"_id": doc["customerId"]}, "limit": 1}], [first]

    host = "orders"


class Computed(World):
    rules = (
        "products:\n    computed:\n      reviewCount: { count: reviews, by: productId }\n"
        "      rating: { avg: stars, from: reviews, by: productId }"
    )
    indexes = {"reviews": "productId"}
    host = "products"

    def data(self, chance, scale):
        products, reviews = [], []
        for n in range(scale):
            products.append({"_id": n, "title": text(chance, 2, 9), "price": chance.randrange(10_000)})
            for _ in range(heavy(chance, 2_000)):
                reviews.append({"_id": len(reviews), "productId": n, "stars": chance.randint(1, 5), "text": text(chance, 3, 40)})
        return {"products": products, "reviews": reviews}

    def read(self, doc):
        first = {"find": "products", "filter": {"_id": doc["_id"]}, "limit": 1}
        group = {"_id": None, "n": {"$sum": 1}}
        count = {"aggregate": "reviews", "pipeline": [{"$match": {"productId": doc["_id"]}}, {"$group": group}], "cursor": {}}
        return [first, count], [first]


class Subset(Computed):
    rules = "products:\n    subset:\n      recent: { from: reviews, by: productId, sort: { _id: -1 }, keep: 5, fields: [stars, text] }"

    def read(self, doc):
        first = {"find": "products", "filter": {"_id": doc["_id"]}, "limit": 1}
        newest = {"find": "reviews", "filter": {"productId": doc["_id"]}, "sort": {"_id": -1}, "limit": 5}
        return [first, newest], [first]


class Lift(World):
    rules = (
        "products:\n    subset:\n"
        "      reviews: { from: productReviews, by: productId, sort: { date: -1 }, keep: 3, fields: [stars, date], lift: reviews }"
    )
    host = "products"

    def data(self, chance, scale):
        def review(n):
            return {"_id": n, "stars": chance.randint(1, 5), "text": text(chance, 3, 40), "date": START + timedelta(hours=n)}

        number, products = 0, []
        for n in range(scale):
            count = heavy(chance, 2_000)
            products.append({"_id": n, "title": text(chance, 2, 9), "reviews": [review(number + at) for at in range(count)]})
            number += count
        return {"products": products}

    def read(self, doc):
        first = {"find": "products", "filter": {"_id": doc["_id"]}, "limit": 1}
        return [first], [first]


class Bucket(World):
    rules = "readings:\n    bucket: { time: ts, by: [sensorId], every: day }"
    host = "readings"

    def data(self, chance, scale):
        readings = []
        for sensor in range(scale):
            for n in range(20 * heavy(chance, 300)):
                at = START + timedelta(minutes=15 * n + chance.randrange(10))
                readings.append({"_id": len(readings), "sensorId": sensor, "ts": at, "temp": round(chance.gauss(20, 4), 1)})
        return {"readings": readings}

    indexes = {"readings": ["sensorId", "ts"]}

    def read(self, doc):
        filter = {"sensorId": doc["sensorId"], "ts": {"$gte": doc["ts"]}}
        find = {"find": "readings", "filter": filter, "sort": {"ts": 1}, "limit": 100, "batchSize": 100}
        return [find], [find]


class FieldNames(World):
    rules = (
        "events:\n    bucket:\n      time: date\n      by: [key]\n      every: quarter\n      slot: day\n"
        "      sum: { approved: a, pending: p }\n      layout: field_names\n      bucket_id: packed"
    ).replace("[key]", "[{ field: key, as: hex }]")
    host = "events"

    def data(self, chance, scale):
        events = []
        for user in range(scale):
            for _ in range(8 * heavy(chance, 300)):
                status = "approved" if chance.random() < 0.8 else "pending"
                events.append({"_id": len(events), "key": f"{user:064X}", "date": START + timedelta(days=chance.randrange(700)), status: 1})
        return {"events": events}

    indexes = {"events": ["key", "date"]}

    def read(self, doc):
        filter = {"key": doc["key"], "date": {"$gte": doc["date"]}}
        find = {"find": "events", "filter": filter, "sort": {"date": 1}, "limit": 100, "batchSize": 100}
        return [find], [find]


class Outlier(World):
    rules = "books:\n    outlier:\n      readers: { keep: 50, overflow: bookReaders, owner: bookId, item: reader }"
    host = "books"

    def data(self, chance, scale):
        def readers():
            return [chance.randrange(10**9) for _ in range(2_000 if chance.random() < 0.01 else chance.randint(0, 40))]

        return {"books": [{"_id": n, "title": text(chance, 2, 9), "readers": readers()} for n in range(scale)]}

    def read(self, doc):
        first = {"find": "books", "filter": {"_id": doc["_id"]}, "limit": 1}
        return [first], [first]


class Polymorphic(World):
    rules = (
        "products:\n    polymorphic:\n      discriminator: type\n      kinds:\n        book: { required: [isbn], indexes: [{ key: { isbn: 1 } }] }\n"
        "        tool: { required: [brand] }"
    )
    host = "products"
    indexes = {"products": "type"}

    def data(self, chance, scale):
        def product(n):
            own = {"type": "book", "isbn": f"{chance.randrange(10**12):013}"} if chance.random() < 0.7 else {"type": "tool", "brand": text(chance, 1, 2)}
            return {"_id": n, **own, "title": text(chance, 2, 30)}

        return {"products": [product(n) for n in range(scale)]}

    def read(self, doc):
        find = {"find": "products", "filter": {"type": doc["type"]}, "limit": 20}
        return [find], [find]


class Versions(World):
    rules = (
        "users:\n    versions:\n      field: schemaVersion\n      steps:\n"
        "        - { nest: { phone: { into: phone.number, with: { phone.countryCode: \"+1\" } } } }\n"
        "        - { split: { name: { into: [firstName, lastName], on: \" \" } } }\n      migrate: { background: true }"
    )
    host = "users"

    def data(self, chance, scale):
        def user(n):
            return {"_id": n, "name": f"{chance.choice(WORDS)} {text(chance, 1, 2)}", "phone": f"{chance.randrange(10**7):07}", "about": text(chance, 0, 40)}

        return {"users": [user(n) for n in range(scale)]}

    def read(self, doc):
        first = {"find": "users", "filter": {"_id": doc["_id"]}, "limit": 1}
        return [first], [first]


class Rollup(World):
    rules = (
        "days:\n    computed:\n      revenue: { sum: amount, from: sales, by: { $dateTrunc: { date: $date, unit: day } }, create: true }\n"
        "      sales: { count: sales, by: { $dateTrunc: { date: $date, unit: day } }, create: true }"
    )
    host = "sales"

    def data(self, chance, scale):
        def sale(n):
            return {"_id": n, "date": START + timedelta(minutes=chance.randrange(60 * 24 * 300)), "amount": chance.randrange(1, 500)}

        return {"sales": [sale(n) for n in range(scale)]}

    def read(self, doc):
        group = {"_id": {"$dateTrunc": {"date": "$date", "unit": "day"}}, "n": {"$sum": "$amount"}}
        by_hand = {"aggregate": "sales", "pipeline": [{"$group": group}, {"$sort": {"_id": 1}}, {"$limit": 20}], "cursor": {}}
        return [by_hand], [{"find": "days", "sort": {"_id": 1}, "limit": 20}]


class Stack(Bucket):
    """A count and a window of a bucketed collection's readings, and a copy of the sensor in each."""

    rules = (
        "readings:\n    bucket: { time: ts, by: [sensorId], every: day }\n  sensors:\n    computed:\n"
        "      readings: { count: readings, by: sensorId }\n      hottest: { max: temp, from: readings, by: sensorId }"
    )

    def data(self, chance, scale):
        data = super().data(chance, scale)
        return {"sensors": [{"_id": n, "place": text(chance, 2, 5)} for n in range(scale)], **data}


WORLDS = {
    "bucket": (Bucket(), 400),
    "computed": (Computed(), 6_000),
    "extended_reference": (ExtendedReference(), 6_000),
    "field_names": (FieldNames(), 600),
    "lift": (Lift(), 6_000),
    "outlier": (Outlier(), 12_000),
    "polymorphic": (Polymorphic(), 30_000),
    "rollup": (Rollup(), 40_000),
    "stack": (Stack(), 300),
    "subset": (Subset(), 6_000),
    "versions": (Versions(), 30_000),
}


def world(name, scale, seed):
    made, full = WORLDS[name]
    return made, made.data(Random(seed), max(50, int(full * scale)))
