//! put with a condition.

use crate::sandbox::Sandbox;

#[test]
fn if_absent_writes_a_key_once() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.ok(&["put", "--if-absent", "leader", "ann"]), "");
    let second = sandbox.run(&["put", "leader", "bob", "--if-absent", "--sync"]);
    assert_eq!((second.code, second.text()), (1, String::new()));
    assert!(second.err.contains("the key exists; nothing was written"), "{}", second.err);
    assert_eq!(sandbox.ok(&["get", "leader"]), "ann");
    sandbox.ok(&["delete", "leader"]);
    sandbox.ok(&["put", "--if-absent", "leader", "bob"]);
    assert_eq!(sandbox.ok(&["get", "leader"]), "bob");
    let json = sandbox.run(&["put", "--json", "--if-absent", "leader", "eve"]);
    assert_eq!(json.text(), "{\"key\":\"leader\",\"value_bytes\":3,\"written\":false}\n");
    assert_eq!(sandbox.ok(&["put", "--json", "k", "v"]), "{\"key\":\"k\",\"value_bytes\":1}\n");
}

#[test]
fn if_writes_where_the_key_has_that_value() {
    let sandbox = Sandbox::new();
    sandbox.fails(&["put", "--if", "1", "count", "2"]);
    assert!(!sandbox.store().exists(), "no key can have a value in a store that is missing");
    sandbox.ok(&["put", "count", "1"]);
    sandbox.ok(&["put", "--if", "1", "count", "2"]);
    for (key, expected, why) in [("count", "1", "has another value"), ("other", "", "is absent")] {
        let refused = sandbox.run(&["put", "--if", expected, key, "3"]);
        assert!(refused.code == 1 && refused.err.contains(why), "{}", refused.err);
    }
    assert_eq!(sandbox.ok(&["scan"]), "count\t2\n");
    sandbox.ok(&["put", "--hex", "--if", "32", "636f756e74", "00ff"]);
    assert_eq!(sandbox.run(&["get", "count"]).out, b"\x00\xff");
    assert_eq!(sandbox.run_with(&["put", "--hex", "--if", "00ff", "636f756e74", "-"], b"-5").code, 0);
    sandbox.ok(&["put", "--if", "-5", "count", "-6"]);
    assert_eq!(sandbox.ok(&["get", "count"]), "-6");
    assert!(sandbox.fails(&["put", "--hex", "--if", "3", "61", "62"]).contains("--if 3"));
    sandbox.fails(&["put", "--if-absent", "--if", "1", "count", "2"]);
}
