// The Node.js driver against a server: what an application does, each step asserted.
import assert from 'node:assert/strict';
import { MongoClient, Decimal128, Long } from 'mongodb';

const client = await MongoClient.connect(process.argv[2], { serverSelectionTimeoutMS: 5000 });
const db = client.db('client_check_node');
await db.dropDatabase();

async function crud() {
  const c = db.collection('things');
  await c.insertOne({ _id: 1, name: 'one', price: Decimal128.fromString('9.90'), big: Long.fromString('9007199254740993') });
  const many = await c.insertMany(Array.from({ length: 300 }, (_, i) => ({ n: i, group: i % 4 })));
  assert.equal(many.insertedCount, 300);
  assert.equal(await c.countDocuments({ group: 1 }), 75);
  assert.deepEqual((await c.find({ n: { $in: [3, 1, 2] } }).sort({ n: 1 }).project({ _id: 0, n: 1 }).toArray()), [{ n: 1 }, { n: 2 }, { n: 3 }]);
  let seen = 0;
  for await (const _ of c.find({ n: { $exists: true } }).batchSize(20)) seen++;
  assert.equal(seen, 300);
  assert.equal((await c.updateMany({ group: 2 }, { $mul: { n: 2 } })).modifiedCount, 75);
  assert.equal((await c.updateOne({ name: 'none' }, { $set: { x: 1 } }, { upsert: true })).upsertedCount, 1);
  const after = await c.findOneAndUpdate({ _id: 1 }, [{ $set: { total: { $add: [1, 2] } } }], { returnDocument: 'after' });
  assert.equal(after.total, 3);
  assert.equal((await c.deleteMany({ group: 3 })).deletedCount, 75);
  assert.deepEqual((await c.distinct('group')).sort(), [0, 1, 2]);
}

async function aggregation() {
  const rows = await db.collection('things').aggregate([
    { $match: { group: { $exists: true } } },
    { $group: { _id: '$group', n: { $sum: 1 }, max: { $max: '$n' } } },
    { $sort: { _id: 1 } },
    { $facet: { all: [{ $limit: 10 }], count: [{ $count: 'n' }] } },
  ]).toArray();
  assert.equal(rows[0].count[0].n, 3);
  assert.deepEqual(rows[0].all.map((r) => r._id), [0, 1, 2]);
}

async function indexes() {
  const c = db.collection('things');
  await c.createIndex({ name: 1 }, { unique: true, sparse: true });
  await assert.rejects(c.insertOne({ name: 'one' }), { code: 11000 });
  const names = (await c.indexes()).map((i) => i.name);
  assert.deepEqual(names, ['_id_', 'name_1']);
}

async function transaction() {
  const c = db.collection('accounts');
  await c.insertMany([{ _id: 'a', v: 5 }, { _id: 'b', v: 5 }]);
  await client.withSession((session) => session.withTransaction(async () => {
    await c.updateOne({ _id: 'a' }, { $inc: { v: -5 } }, { session });
    await c.updateOne({ _id: 'b' }, { $inc: { v: 5 } }, { session });
  }));
  assert.equal((await c.findOne({ _id: 'b' })).v, 10);
  const session = client.startSession();
  session.startTransaction();
  await c.insertOne({ _id: 'gone' }, { session });
  await session.abortTransaction();
  await session.endSession();
  assert.equal(await c.findOne({ _id: 'gone' }), null);
}

async function bulk() {
  const result = await db.collection('bulk').bulkWrite([
    { insertOne: { document: { _id: 1 } } }, { updateOne: { filter: { _id: 1 }, update: { $set: { a: 1 } } } },
    { replaceOne: { filter: { _id: 2 }, replacement: { b: 1 }, upsert: true } }, { deleteOne: { filter: { _id: 1 } } }]);
  assert.deepEqual([result.insertedCount, result.modifiedCount, result.upsertedCount, result.deletedCount], [1, 1, 1, 1]);
}

async function errors() {
  await assert.rejects(db.command({ nonsense: 1 }), { code: 59, codeName: 'CommandNotFound' });
  await assert.rejects(db.collection('x').aggregate([{ $nonsense: 1 }]).toArray(), { code: 40324 });
}

for (const step of [crud, aggregation, indexes, transaction, bulk, errors]) {
  await step();
  console.log(`node ${step.name}: ok`);
}
await db.dropDatabase();
await client.close();
