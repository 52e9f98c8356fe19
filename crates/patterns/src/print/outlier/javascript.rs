//! Outlier arrays in JavaScript.

use crate::languages::javascript::{Flavor, capital};
use crate::languages::literals::filled;
use crate::print::outlier::Printed;
use crate::rule::ShapeCode;

pub(super) fn code(printed: &Printed<'_>, flavor: &Flavor) -> ShapeCode {
    let outlier = printed.outlier;
    let name: String = [&*outlier.host.collection, &*outlier.field].map(capital).concat();
    let is_shell = flavor.wait.is_empty();
    let mut words = printed.words(&flavor.style);
    words.extend([
        ("name", name.clone()),
        ("function", flavor.function.to_owned()),
        ("wait", flavor.wait.to_owned()),
        ("option", flavor.option.to_owned()),
        ("arrow", if is_shell { "() =>" } else { "async () =>" }.to_owned()),
        ("size", if is_shell { "bsonsize" } else { "require(\"mongodb\").BSON.calculateObjectSize" }.to_owned()),
    ]);
    let there = if is_shell { SHELL_LISTS } else { DRIVER_LISTS };
    let fit = if outlier.keep_bytes.is_some() { FIT_BYTES } else { FIT };
    let direct = match (outlier.keep_bytes, outlier.unique) {
        (Some(_), _) => "",
        (None, false) => DIRECT,
        (None, true) => DIRECT_UNIQUE,
    };
    let unique = if outlier.unique { UNIQUE } else { "" };
    let template = TEMPLATE.replace("‹there›", there).replace("‹fit›", fit);
    let template = template.replace("‹direct›", direct).replace("‹unique›", unique);
    let functions = printed.verbs().map(|verb| format!("{verb}{name}")).to_vec();
    ShapeCode { helpers: String::new(), functions, text: filled(&template, &words) }
}

const SHELL_LISTS: &str = "  \
  const there = database.getCollectionNames().includes(‹view›);
";

const DRIVER_LISTS: &str = "  \
  const there = (await database.listCollections({ name: ‹view› }).toArray()).length > 0;
";

const FIT: &str = "\
const fit‹name› = (items) => Math.min(items.length, ‹keep›);
";

const FIT_BYTES: &str = "\
const fit‹name› = (items) => {
  let [fits, bytes] = [0, 0];
  while (fits < Math.min(items.length, ‹keep›) && (bytes += ‹size›({ \"\": items[fits] }) - 1) <= ‹keep_bytes›) fits++;
  return fits;
};
";

const DIRECT: &str = "  \
  // Most documents have no overflow, and room.
  const room = { _id, ‹flag›: { $exists: false }, ‹count›: { $lte: ‹keep› - items.length } };
  const push = { $push: { ‹field›: { $each: items } }, $inc: { ‹count›: items.length } };
  if ((‹wait›collection(‹host›).updateOne(room, push)).matchedCount > 0) return;
";

const DIRECT_UNIQUE: &str = "  \
  // Most documents have no overflow, and room.
  const room = { _id, ‹flag›: { $exists: false }, ‹count›: { $lte: ‹keep› - 1 }, ‹field›: { $nin: items } };
  const push = { $push: { ‹field›: { $each: items } }, $inc: { ‹count›: 1 } };
  if (items.length === 1 && (‹wait›collection(‹host›).updateOne(room, push)).matchedCount > 0) return;
";

const UNIQUE: &str = "  \
  const different = { $size: { $setUnion: [\"$\" + ‹field›] } };
  const repeated = [{ $match: { _id, $expr: { $ne: [{ $size: \"$\" + ‹field› }, different] } } }];
  const twice = (‹wait›collection(‹host›).aggregate(repeated‹option›).toArray()).length
    + (‹wait›collection(‹overflow›).countDocuments({ ‹owner›: _id, ‹item›: { $in: embedded } }‹option›));
  if (twice > 0) throw new Error(`an item of ${_id} is there twice`);
";

const TEMPLATE: &str = r#"‹function› create‹name›() {
‹there›  if (!there) ‹wait›database.createCollection(‹view›, { viewOn: ‹host›, pipeline: ‹pipeline› });
}
// What all writes below go through: `items` are embedded as far as they fit, `overflow` others are in ‹overflow› already.
‹function› settle‹name›(session, _id, items, overflow) {
  const fits = fit‹name›(items);
  const more = items.slice(fits).map((item, place) => ({ ‹owner›: _id, ‹item›: item, index: fits + place }));
  if (more.length > 0) ‹wait›collection(‹overflow›).insertMany(more‹option›);
  const embedded = items.slice(0, fits);
  overflow += more.length;
  const set = { ‹field›: embedded, ‹count›: embedded.length + overflow };
  const change = overflow > 0 ? { $set: { ...set, ‹flag›: true } } : { $set: set, $unset: { ‹flag›: "" } };
  ‹wait›collection(‹host›).updateOne({ _id }, change‹option›);
‹unique›}
‹fit›// The document with its whole array.
‹function› insert‹name›(document) {
  ‹wait›transaction(‹arrow› {
    const items = document[‹field›];
    const first = Array.isArray(items) ? { ‹field›: [] } : {};
    const { insertedId } = ‹wait›collection(‹host›).insertOne({ ...document, ...first, ‹count›: 0 }‹option›);
    if (Array.isArray(items)) ‹wait›settle‹name›(session, insertedId, items, 0);
  });
}
‹function› push‹name›(_id, items) {
‹direct›  ‹wait›transaction(‹arrow› {
    const host = ‹wait›collection(‹host›).findOne({ _id }‹option›);
    if (!host) return;
    const embedded = host[‹field›] ?? [];
    if (!host[‹flag›]) return ‹wait›settle‹name›(session, _id, [...embedded, ...items], 0);
    const [last] = ‹wait›collection(‹overflow›).find({ ‹owner›: _id }‹option›).sort({ index: -1 }).limit(1).toArray();
    const next = last ? last.index + 1 : embedded.length;
    const more = items.map((item, place) => ({ ‹owner›: _id, ‹item›: item, index: next + place }));
    if (more.length > 0) ‹wait›collection(‹overflow›).insertMany(more‹option›);
    ‹wait›settle‹name›(session, _id, embedded, host[‹count›] - embedded.length + more.length);
  });
}
‹function› pull‹name›(_id, items) {
  ‹wait›transaction(‹arrow› {
    const host = ‹wait›collection(‹host›).findOne({ _id }‹option›);
    if (!host || !Array.isArray(host[‹field›])) return;
    ‹wait›collection(‹host›).updateOne({ _id }, { $pullAll: { ‹field›: items } }‹option›);
    const embedded = (‹wait›collection(‹host›).findOne({ _id }‹option›))[‹field›];
    let overflow = host[‹count›] - host[‹field›].length;
    if (overflow > 0) {
      overflow -= (‹wait›collection(‹overflow›).deleteMany({ ‹owner›: _id, ‹item›: { $in: items } }‹option›)).deletedCount;
    }
    // The first ones of the overflow come back.
    const room = ‹keep› - embedded.length;
    const first = overflow > 0 && room > 0 ? ‹wait›collection(‹overflow›).find({ ‹owner›: _id }‹option›).sort({ index: 1 }).limit(room).toArray() : [];
    let back = 0;
    while (back < first.length && fit‹name›([...embedded, first[back][‹item›]]) > embedded.length) embedded.push(first[back++][‹item›]);
    const taken = first.slice(0, back).map((row) => row._id);
    if (back > 0) ‹wait›collection(‹overflow›).deleteMany({ _id: { $in: taken } }‹option›);
    ‹wait›settle‹name›(session, _id, embedded, overflow - back);
  });
}
// The whole array becomes another one.
‹function› set‹name›(_id, items) {
  ‹wait›transaction(‹arrow› {
    if (!(‹wait›collection(‹host›).findOne({ _id }‹option›))) return;
    ‹wait›collection(‹overflow›).deleteMany({ ‹owner›: _id }‹option›);
    ‹wait›settle‹name›(session, _id, items, 0);
  });
}
‹function› delete‹name›(_id) {
  ‹wait›transaction(‹arrow› {
    ‹wait›collection(‹host›).deleteOne({ _id }‹option›);
    ‹wait›collection(‹overflow›).deleteMany({ ‹owner›: _id }‹option›);
  });
}
// So many items, from this index on.
‹function› page‹name›(_id, from, limit) {
  return ‹wait›collection(‹view›).find({ ‹owner›: _id, index: { $gte: from } }).sort({ index: 1 }).limit(limit).toArray();
}
// Once, for the documents that are there.
‹function› divide‹name›() {
  const undivided = [{ $match: { ‹count›: { $exists: false } } }, { $project: { _id: 1 } }];
  for (const { _id } of ‹wait›collection(‹host›).aggregate(undivided).toArray()) {
    ‹wait›transaction(‹arrow› {
      const host = ‹wait›collection(‹host›).findOne({ _id, ‹count›: { $exists: false } }‹option›);
      if (host && Array.isArray(host[‹field›])) ‹wait›settle‹name›(session, _id, host[‹field›], 0);
      else if (host) ‹wait›collection(‹host›).updateOne({ _id }, { $set: { ‹count›: 0 } }‹option›);
    });
  }
}
"#;
