//! What others do to the directory of an open store: they move it, remove its lock file and write the store
//! as well, or put files there.

use super::blob::Blob;
use super::player::Player;
use sidebloom::{Batch, Durability, Error, Keyspace};

/// The store continues in its moved directory while a copy takes its place.
pub fn move_away(player: &mut Player<'_>) {
    let target = player.place.path("copy");
    player.ok("checkpoint", player.db().checkpoint(target));
    player.place.move_dir("store", "away");
    player.place.move_dir("copy", "store");
    let key = player.program.keys.pick(&mut player.rng);
    player.ok("put", player.rows().put(&key, b"moved"));
    player.ok("flush", player.db().flush());
    if player.rng.percent(50) {
        player.ok("compact", player.db().compact());
    }
    let before = player.model.get(&key).cloned();
    let options = player.options();
    let copy = player.ok("open a copy", options.open(player.place.store()));
    let rows = player.ok("the keyspace in a copy", player.home.of(&copy));
    let found = player.ok("get in a copy", rows.get(&key));
    player.same("get in a copy", found.map(|value| value.to_vec()), before.map(|value| value.to_vec()));
    drop((rows, copy));
    restore(player, &key);
    player.check_all();
    player.place.remove_store("store");
    player.place.move_dir("away", "store");
    player.calls += 6;
}

/// Sets a key of the store to what the model says. All configurations must give the same answers.
fn restore(player: &Player<'_>, key: &Blob) {
    let restored = match player.model.get(key) {
        Some(value) => player.rows().put_with(key, value, value.to_expiry()),
        None => player.rows().delete(key),
    };
    player.ok("restore", restored);
}

/// Another writer enters because the lock file is gone. The store stops, and removes none of its files.
pub fn lose_lock(player: &mut Player<'_>) {
    player.ok("wait_for_compaction", player.db().wait_for_compaction());
    player.place.remove_lock();
    let options = player.options();
    let other = player.ok("open a second time", options.open(player.place.store()));
    player.check_other(&other);
    let key = player.program.keys.pick(&mut player.rng);
    let of_other = player.ok("open the keyspace", player.home.of(&other));
    player.ok("put", put(&of_other, &key, b"of the other writer"));
    let refused = match player.rng.below(3) {
        0 => put(player.rows(), &key, b"lost"),
        1 => player.rows().put(&key, b"lost").and_then(|()| player.db().flush()),
        _ => player.rows().put(&key, b"lost").and_then(|()| player.db().sync()),
    };
    let lost = matches!(refused, Err(Error::LockLost { .. } | Error::Poisoned { .. }));
    assert!(lost, "{}: a writer without a lock: {refused:?}", player.what());
    player.close();
    player.follower = None; // Without the lock file, nobody knows who follows the store.
    player.take(other);
    let found = player.ok("get after two writers", player.rows().get(&key));
    player.same("get after two writers", found.as_deref(), Some(&b"of the other writer"[..]));
    restore(player, &key);
    player.check_all();
    player.check_levels();
    player.calls += 5;
}

/// The names of the store's next files are taken. It stops, closes and leaves them alone.
pub fn take_names(player: &mut Player<'_>) {
    player.follower = None; // It would read them.
    player.ok("wait_for_compaction", player.db().wait_for_compaction());
    let taken = player.place.take_names();
    let key = player.program.keys.pick(&mut player.rng);
    let unchanged = match player.model.get(&key) {
        Some(value) => player.rows().put_with(&key, value, value.to_expiry()),
        None => player.rows().delete(&key),
    };
    let refused = unchanged.and_then(|()| player.db().flush());
    assert!(refused.is_err(), "{}: a file was created over another one", player.what());
    player.check_all();
    player.close();
    player.place.give_back(&taken);
    player.calls += 2;
}

fn put(rows: &Keyspace, key: &[u8], value: &[u8]) -> sidebloom::Result<()> {
    let mut batch = Batch::new();
    batch.keyspace(rows).put(key, value);
    rows.write_with(batch, Durability::Sync)
}
