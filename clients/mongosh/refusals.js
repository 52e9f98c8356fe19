// mongosh against Pleach: a refusal is shown in Pleach's own words.
const assert = require('node:assert');
const shop = db.getSiblingDB('client_check_refusals_mongosh');
shop.dropDatabase();
shop.runCommand({
  pleach: 'apply',
  declaration: {
    database: 'client_check_refusals_mongosh',
    collections: {
      orders: { extended_reference: { customer: { from: 'customers', by: 'customerId', fields: ['name'], when_deleted: 'reject' } } },
      events: { bucket: { into: 'event_hours', time: 'at', by: ['key'], every: 'hour', at_most: 10 } },
    },
  },
});
shop.customers.insertMany([{ _id: 1, name: 'Ada' }, { _id: 2, name: 'Bob' }]);
shop.orders.insertOne({ _id: 1, customerId: 1 });
shop.events.insertOne({ _id: 1, key: 'k', at: new Date() });

// The shell awaits calls for us, but not inside callbacks, so each is tried by itself.
const seen = [];
const note = (what, error) => seen.push([what, error.code, error.message]);
try { shop.customers.deleteOne({ _id: 1 }); } catch (error) { note('deleteOne', error); }
try { shop.customers.deleteMany({}); } catch (error) { note('deleteMany', error); }
try { shop.customers.findOneAndDelete({ _id: 1 }); } catch (error) { note('findOneAndDelete', error); }
try { shop.customers.bulkWrite([{ deleteOne: { filter: { _id: 1 } } }]); } catch (error) { note('bulkWrite', error); }
try { shop.customers.drop(); } catch (error) { note('drop', error); }
try { shop.customers.renameCollection('clients'); } catch (error) { note('rename', error); }
try { shop.orders.aggregate([{ $out: 'customers' }]); } catch (error) { note('out', error); }
try { shop.event_hours.insertOne({ _id: 1 }); } catch (error) { note('insert into buckets', error); }
try { shop.event_hours.updateOne({}, { $set: { count: 1 } }); } catch (error) { note('update of buckets', error); }
try { shop.event_hours.deleteMany({}); } catch (error) { note('delete of buckets', error); }
try { shop.event_hours.drop(); } catch (error) { note('drop of buckets', error); }
try { shop.events.createIndex({ v: 1 }); } catch (error) { note('index', error); }
try { shop.orders.updateOne({ _id: 1 }, { $set: { customer: 1 } }); } catch (error) { note('owned', error); }

const expected = [
  ['deleteOne', 96, /1 document of orders refers to/],
  ['deleteMany', 96, /1 document of orders refers to/],
  ['findOneAndDelete', 96, /1 document of orders refers to/],
  ['bulkWrite', 96, /1 document of orders refers to/],
  ['drop', 96, /is read by rule orders\.customer/],
  ['rename', 96, /is read by rule orders\.customer/],
  ['out', 96, /is read by rule orders\.customer/],
  ['insert into buckets', 96, /holds what .* is made of/],
  ['update of buckets', 96, /holds what .* is made of/],
  ['delete of buckets', 96, /holds what .* is made of/],
  ['drop of buckets', 96, /holds the documents of rule events\.bucket/],
  ['index', 166, /event_hours/],
  ['owned', 66, /is kept by rule orders\.customer/],
];
assert.deepEqual(seen.map(([what, code]) => [what, code]), expected.map(([what, code]) => [what, code]));
for (const [at, [, , words]] of expected.entries()) assert.match(seen[at][2], words);
assert.equal(shop.customers.countDocuments(), 2);
shop.dropDatabase();
for (const rule of ['orders.customer', 'events.bucket']) shop.runCommand({ pleach: 'drop', rule, withData: true });
shop.dropDatabase();
print('mongosh refusals: ok');
