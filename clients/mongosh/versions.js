// mongosh against Pleach: the database in its newest version and, by its name and a number, in an older one.
const assert = require('node:assert');
const name = 'client_check_versions_mongosh';
const shop = db.getSiblingDB(name);
const older = db.getSiblingDB(`${name}@1`);
shop.dropDatabase();
shop.users.insertOne({ _id: 1, phone: '1' });
const steps = [{ nest: { phone: { into: 'phone.number', with: { 'phone.code': '+1' } } } }];
const versions = { field: 'v', steps, migrate: { background: false } };
assert.equal(shop.runCommand({ pleach: 'apply', declaration: { database: name, collections: { users: { versions } } } }).ok, 1);
shop.users.insertOne({ _id: 2, phone: { number: '2', code: '+44' } });
assert.deepEqual(older.users.find({}, { _id: 0, v: 0 }).sort({ phone: -1 }).toArray(), [{ phone: '2' }, { phone: '1' }]);
assert.equal(shop.users.findOne({ 'phone.number': '1' }).phone.code, '+1');
assert.equal(older.users.updateMany({ phone: { $in: ['1', '2'] } }, { $set: { seen: true } }).modifiedCount, 2);
assert.equal(older.users.findOneAndUpdate({ phone: '2' }, { $set: { phone: '3' } }, { returnDocument: 'after' }).phone, '3');
assert.deepEqual(shop.users.findOne({ _id: 2 }).phone, { number: '3', code: '+44' });
assert.deepEqual(older.users.aggregate([{ $group: { _id: null, all: { $addToSet: '$phone' } } }]).toArray()[0].all.sort(), ['1', '3']);
assert.equal(older.users.countDocuments({ phone: '3', seen: true }), 1);
let seen;
try { older.users.drop(); } catch (error) { seen = error; }
assert.match(seen.message, /older version/);
try { db.getSiblingDB(`${name}@9`).users.findOne(); } catch (error) { seen = error; }
assert.match(seen.message, /versions 1 to 2/);
shop.runCommand({ pleach: 'drop', rule: 'users.versions' });
shop.dropDatabase();
print('mongosh versions: ok');
