"""What only a real MongoDB behind the server can show, through PyMongo: a transaction, a change stream, a retry."""

import sys
import uuid

import pymongo
import pymongo.errors

NAME = "proxy-check-" + uuid.uuid4().hex[:8]
client = pymongo.MongoClient(sys.argv[1], serverSelectionTimeoutMS=10_000, appname=NAME)
db = client["proxy_" + uuid.uuid4().hex[:8]]


def check(what, got, expected):
    if got != expected:
        sys.exit(f"{what}: got {got!r}, expected {expected!r}")


try:
    things = db.create_collection("things")
    check("the server looks like a mongos", client.is_mongos, True)

    # A transaction, kept and given up, with the driver's own retry loop.
    with client.start_session() as session:
        session.with_transaction(lambda s: things.insert_many([{"_id": 1}, {"_id": 2}], session=s))
        session.start_transaction()
        things.delete_many({}, session=session)
        check("inside", things.count_documents({}, session=session), 0)
        check("outside", things.count_documents({}), 2)
        session.abort_transaction()
    check("after the abort", things.count_documents({}), 2)

    # A change stream, and one that goes on where another stopped.
    with things.watch(max_await_time_ms=500) as stream:
        things.update_one({"_id": 1}, {"$set": {"x": 1}})
        change = stream.next()
        check("the change", (change["operationType"], change["documentKey"]), ("update", {"_id": 1}))
        token = stream.resume_token
    things.insert_one({"_id": 3})
    with things.watch(resume_after=token, max_await_time_ms=500) as stream:
        check("the change after it", stream.next()["documentKey"], {"_id": 3})

    # The real server's connection breaks under a write: the driver is told to try again, and there is one effect. The fail
    # point is for this program only: its name passes through too.
    def fail_once(**how):
        data = {"failCommands": ["update"], "appName": NAME, **how}
        client.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=data)

    try:
        fail_once(closeConnection=True)
        things.update_one({"_id": 1}, {"$inc": {"n": 1}})
        fail_once(errorCode=11602, errorLabels=["RetryableWriteError"])
        things.update_one({"_id": 1}, {"$inc": {"n": 1}})
        check("the effect of two writes that were sent twice", things.find_one({"_id": 1})["n"], 2)
    except pymongo.errors.OperationFailure as error:
        if error.code != 59:
            raise
        print("proxy: retries skipped: the server has no fail points (enableTestCommands)")

    # A read that may go to a secondary, a snapshot read, and a cursor in many batches.
    secondary = things.with_options(read_preference=pymongo.ReadPreference.SECONDARY_PREFERRED)
    check("secondaryPreferred", secondary.count_documents({}), 3)
    with client.start_session(snapshot=True) as snapshot:
        check("snapshot", len(list(things.find({}, session=snapshot))), 3)
    things.insert_many([{"_id": 100 + n} for n in range(1000)])
    check("batches", sum(1 for _ in things.find({}, batch_size=37)), 1003)
finally:
    client.drop_database(db.name)
print("proxy: a transaction, a change stream and a retry passed")
