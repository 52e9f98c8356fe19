//! Outlier arrays in Python.

use crate::languages::literals::filled;
use crate::languages::python::STYLE;
use crate::print::outlier::Printed;
use crate::print::python::snake;
use crate::rule::ShapeCode;

pub(super) fn code(printed: &Printed<'_>) -> ShapeCode {
    let outlier = printed.outlier;
    let name = [&*outlier.host.collection, &*outlier.field].map(snake).join("_");
    let mut words = printed.words(&STYLE);
    words.push(("name", name.clone()));
    let fit = if outlier.keep_bytes.is_some() { FIT_BYTES } else { FIT };
    let direct = match (outlier.keep_bytes, outlier.unique) {
        (Some(_), _) => "",
        (None, false) => DIRECT,
        (None, true) => DIRECT_UNIQUE,
    };
    let unique = if outlier.unique { UNIQUE } else { "" };
    let template = TEMPLATE.replace("‹fit›", fit).replace("‹direct›", direct).replace("‹unique›", unique);
    let functions = printed.verbs().map(|verb| format!("{verb}_{name}")).to_vec();
    ShapeCode { helpers: String::new(), functions, text: filled(&template, &words) }
}

const FIT: &str = "\
def fit_‹name›(items):
    return min(len(items), ‹keep›)
";

const FIT_BYTES: &str = "\
def fit_‹name›(items):
    from bson import encode

    size = 0
    for fits, item in enumerate(items[:‹keep›]):
        size += len(encode({\"\": item})) - 1
        if size > ‹keep_bytes›:
            return fits
    return min(len(items), ‹keep›)
";

const DIRECT: &str = "    \
    # Most documents have no overflow, and room.
    room = {\"_id\": _id, ‹flag›: {\"$exists\": False}, ‹count›: {\"$lte\": ‹keep› - len(items)}}
    push = {\"$push\": {‹field›: {\"$each\": items}}, \"$inc\": {‹count›: len(items)}}
    if db[‹host›].update_one(room, push).matched_count:
        return

";

const DIRECT_UNIQUE: &str = "    \
    # Most documents have no overflow, and room.
    room = {\"_id\": _id, ‹flag›: {\"$exists\": False}, ‹count›: {\"$lte\": ‹keep› - 1}, ‹field›: {\"$nin\": items}}
    push = {\"$push\": {‹field›: {\"$each\": items}}, \"$inc\": {‹count›: 1}}
    if len(items) == 1 and db[‹host›].update_one(room, push).matched_count:
        return

";

const UNIQUE: &str = "    \
    different = {\"$size\": {\"$setUnion\": [\"$\" + ‹field›]}}
    repeated = {\"_id\": _id, \"$expr\": {\"$ne\": [{\"$size\": \"$\" + ‹field›}, different]}}
    twice = {‹owner›: _id, ‹item›: {\"$in\": embedded}}
    if db[‹host›].find_one(repeated, session=session) or db[‹overflow›].find_one(twice, session=session):
        raise ValueError(f\"an item of {_id} is there twice\")
";

const TEMPLATE: &str = r#"def create_‹name›():
    if ‹view› not in db.list_collection_names():
        db.create_collection(‹view›, viewOn=‹host›, pipeline=‹pipeline›)


# What all writes below go through: `items` are embedded as far as they fit, `overflow` others are in ‹overflow› already.
def settle_‹name›(session, _id, items, overflow):
    fits = fit_‹name›(items)
    more = [{‹owner›: _id, ‹item›: item, "index": fits + place} for place, item in enumerate(items[fits:])]
    if more:
        db[‹overflow›].insert_many(more, session=session)
    embedded = items[:fits]
    overflow += len(more)
    values = {‹field›: embedded, ‹count›: len(embedded) + overflow}
    change = {"$set": {**values, ‹flag›: True}} if overflow else {"$set": values, "$unset": {‹flag›: ""}}
    db[‹host›].update_one({"_id": _id}, change, session=session)
‹unique›

‹fit›

# The document with its whole array.
def insert_‹name›(document):
    def steps(session):
        items = document.get(‹field›)
        first = {‹field›: []} if isinstance(items, list) else {}
        _id = db[‹host›].insert_one({**document, **first, ‹count›: 0}, session=session).inserted_id
        if isinstance(items, list):
            settle_‹name›(session, _id, items, 0)

    transaction(steps)


def push_‹name›(_id, items):
‹direct›    def steps(session):
        host = db[‹host›].find_one({"_id": _id}, session=session)
        if host is None:
            return
        embedded = host.get(‹field›) or []
        if not host.get(‹flag›):
            return settle_‹name›(session, _id, embedded + items, 0)
        last = db[‹overflow›].find_one({‹owner›: _id}, sort=[("index", -1)], session=session)
        start = last["index"] + 1 if last else len(embedded)
        more = [{‹owner›: _id, ‹item›: item, "index": start + place} for place, item in enumerate(items)]
        if more:
            db[‹overflow›].insert_many(more, session=session)
        settle_‹name›(session, _id, embedded, host[‹count›] - len(embedded) + len(more))

    transaction(steps)


def pull_‹name›(_id, items):
    def steps(session):
        host = db[‹host›].find_one({"_id": _id}, session=session)
        if host is None or not isinstance(host.get(‹field›), list):
            return
        db[‹host›].update_one({"_id": _id}, {"$pullAll": {‹field›: items}}, session=session)
        embedded = db[‹host›].find_one({"_id": _id}, session=session)[‹field›]
        overflow = host[‹count›] - len(host[‹field›])
        if overflow:
            gone = {‹owner›: _id, ‹item›: {"$in": items}}
            overflow -= db[‹overflow›].delete_many(gone, session=session).deleted_count
        # The first ones of the overflow come back.
        room, taken = ‹keep› - len(embedded), []
        if overflow and room > 0:
            for row in db[‹overflow›].find({‹owner›: _id}, sort=[("index", 1)], limit=room, session=session):
                if fit_‹name›([*embedded, row[‹item›]]) <= len(embedded):
                    break
                embedded.append(row[‹item›])
                taken.append(row["_id"])
        if taken:
            db[‹overflow›].delete_many({"_id": {"$in": taken}}, session=session)
        settle_‹name›(session, _id, embedded, overflow - len(taken))

    transaction(steps)


# The whole array becomes another one.
def set_‹name›(_id, items):
    def steps(session):
        if db[‹host›].find_one({"_id": _id}, session=session) is None:
            return
        db[‹overflow›].delete_many({‹owner›: _id}, session=session)
        settle_‹name›(session, _id, items, 0)

    transaction(steps)


def delete_‹name›(_id):
    def steps(session):
        db[‹host›].delete_one({"_id": _id}, session=session)
        db[‹overflow›].delete_many({‹owner›: _id}, session=session)

    transaction(steps)


# So many items, from this index on.
def page_‹name›(_id, start, limit):
    return list(db[‹view›].find({‹owner›: _id, "index": {"$gte": start}}, sort=[("index", 1)], limit=limit))


# Once, for the documents that are there.
def divide_‹name›():
    def one(_id):
        def steps(session):
            host = db[‹host›].find_one({"_id": _id, ‹count›: {"$exists": False}}, session=session)
            if host and isinstance(host.get(‹field›), list):
                settle_‹name›(session, _id, host[‹field›], 0)
            elif host:
                db[‹host›].update_one({"_id": _id}, {"$set": {‹count›: 0}}, session=session)

        transaction(steps)

    for host in list(db[‹host›].find({‹count›: {"$exists": False}}, {"_id": 1})):
        one(host["_id"])
"#;
