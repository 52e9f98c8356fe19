// What the Node driver shows of Pleach's refusals: Pleach's own words, never a text of the driver's.
import assert from 'node:assert/strict';
import { MongoClient } from 'mongodb';

const client = new MongoClient(process.argv[2]);
await client.connect();
const db = client.db('client_check_refusals');
await db.dropDatabase();
await db.command({
  pleach: 'apply',
  declaration: {
    database: 'client_check_refusals',
    collections: {
      orders: { extended_reference: { customer: { from: 'customers', by: 'customerId', fields: ['name'], when_deleted: 'reject' } } },
      events: { bucket: { into: 'event_hours', time: 'at', by: [{ field: 'key', as: 'hex' }], every: 'hour', at_most: 10 } },
    },
  },
});
const [customers, orders, events, hours] = ['customers', 'orders', 'events', 'event_hours'].map((name) => db.collection(name));
await customers.insertMany([{ _id: 1, name: 'Ada' }, { _id: 2, name: 'Bob' }]);
await orders.insertMany([{ _id: 1, customerId: 1 }, { _id: 2, customerId: 1 }]);
await events.insertOne({ _id: 1, key: 'AB', at: new Date() });

async function refused(what, code, words, run) {
  await assert.rejects(run, (error) => {
    const told = `${what}: ${error.code} ${error.message}`;
    assert.equal(error.code, code, told);
    assert.match(error.message, words, told);
    assert.doesNotMatch(error.message, /retryable writes/, told);
    return true;
  });
  console.log(`node refusals, ${what}: ok`);
}

const rejects = /2 documents of orders refer to the document of customers/;
await refused('deleteOne', 96, rejects, customers.deleteOne({ _id: 1 }));
await refused('deleteMany', 96, rejects, customers.deleteMany({ name: 'Ada' }));
await refused('findOneAndDelete', 96, rejects, customers.findOneAndDelete({ _id: 1 }));
await refused('bulkWrite', 96, rejects, customers.bulkWrite([{ deleteOne: { filter: { _id: 1 } } }]));
await refused('in a transaction', 96, rejects, client.withSession((session) =>
  session.withTransaction(() => customers.deleteOne({ _id: 1 }, { session }))));
await refused('drop of a source', 96, /is read by rule orders\.customer/, customers.drop());
await refused('drop of a host', 96, /is kept up by rule orders\.customer/, orders.drop());
await refused('rename', 96, /is read by rule orders\.customer/, customers.rename('clients'));
await refused('$out', 96, /is read by rule orders\.customer/, orders.aggregate([{ $out: 'customers' }]).toArray());
const stored = /holds what 'client_check_refusals\.events' is made of/;
await refused('insert into buckets', 96, stored, hours.insertOne({ _id: 1 }));
await refused('insertMany into buckets', 96, stored, hours.insertMany([{ _id: 1 }, { _id: 2 }]));
await refused('update of buckets', 96, stored, hours.updateOne({}, { $set: { count: 1 } }));
await refused('updateMany of buckets', 96, stored, hours.updateMany({}, { $set: { count: 1 } }));
await refused('replace of a bucket', 96, stored, hours.replaceOne({}, { a: 1 }));
await refused('delete of buckets', 96, stored, hours.deleteMany({}));
await refused('findOneAndUpdate of buckets', 96, stored, hours.findOneAndUpdate({}, { $set: { count: 1 } }));
await refused('bulkWrite of buckets', 96, stored, hours.bulkWrite([{ insertOne: { document: { _id: 1 } } }]));
await refused('drop of buckets', 96, /holds the documents of rule events\.bucket/, hours.drop());
await refused('drop of a logical name', 96, /is kept up by rule events\.bucket/, events.drop());
await refused('collMod of a view', 96, /belongs to rule events\.bucket/, db.command({ collMod: 'events', viewOn: 'x', pipeline: [] }));
await refused('an index of a logical name', 166, /event_hours/, events.createIndex({ v: 1 }));
await refused('a change stream of a logical name', 166, /event_hours/, events.watch().next());
await refused('an owned field', 66, /is kept by rule orders\.customer/, orders.updateOne({ _id: 1 }, { $set: { customer: 1 } }));
await refused('bookkeeping', 73, /belongs to Pleach/, db.collection('pleach.catalog').insertOne({ _id: 1 }));
await refused('no hex digits', 2, /an even number of hex digits/, events.insertOne({ key: 'xyz', at: new Date() }));
await refused('no date', 2, /valid BSON UTC datetime/, events.insertOne({ key: 'ab' }));
await refused('a bad declaration', 2, /./, db.command({ pleach: 'apply', declaration: { database: db.databaseName, collections: { a: { nonsense: {} } } } }));
assert.deepEqual([await customers.countDocuments(), await orders.countDocuments(), await events.countDocuments()], [2, 2, 1]);
await db.dropDatabase();
for (const rule of ['orders.customer', 'events.bucket']) await db.command({ pleach: 'drop', rule, withData: true });
await db.dropDatabase();
await client.close();
