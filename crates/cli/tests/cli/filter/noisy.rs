//! Noisy filters, and `check` and `info` of several filters at once.

use super::*;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn noisy_filters_of_a_list_differ_and_let_less_pass_with_each_more() {
    let case = Case::new();
    case.lines("in", numbered(0..5000));
    case.lines("others", numbered(5000..45_000));
    let built = ["a", "b", "c"].map(|name| json(&case.ok(&format!("build --noisy in -o {name} --json"))));
    assert!(built.iter().all(|info| info["kind"] == "bloom" && info["hash"] == "xxh3-128"));
    assert!(built.iter().all(|info| (0.22..0.26).contains(&info["fpr"].as_f64().unwrap())), "{built:?}");
    assert!(built[0]["seed"] != built[1]["seed"] && built[1]["seed"] != built[2]["seed"]);
    let mut expected = 40_000.0;
    for (args, info) in ["a others", "a others --and b", "a others --and b c"].into_iter().zip(&built) {
        expected *= info["fpr"].as_f64().unwrap();
        let passed: f64 = case.ok(&format!("check -c {args}")).trim().parse().unwrap();
        // Six standard deviations, plus the filter's own deviation from the rate of its bits.
        let off = 6.0 * expected.sqrt() + 0.03 * expected;
        assert!((passed - expected).abs() < off, "{args}: {passed}, not about {expected}");
    }
    let all = std::fs::read_to_string(case.path("in")).unwrap();
    assert_eq!(case.ok("check a in --and b c"), all, "none denies a member");
    // They are sent like any Bloom filter.
    case.ok("send a -o wire");
    case.ok("receive wire -o received");
    assert_eq!(case.ok("check received in --and b --and c"), all);
}

/// `filter info` of several filters gives their combined rate if they err independently.
#[test]
fn info_of_independent_filters_gives_their_rate_together() {
    let case = Case::new();
    case.lines("in", numbered(0..5000));
    case.ok("build --noisy in -o a");
    case.ok("build --noisy --fpp 10% in -o b");
    case.ok("build --kind parity in -o p");
    let [a, b] = ["a", "b"].map(|name| json(&case.ok(&format!("info {name} --json"))));
    let both = json(&case.ok("info a b --json"));
    assert_eq!((&both["filters"][0], &both["filters"][1]), (&a, &b));
    let product = a["fpr"].as_f64().unwrap() * b["fpr"].as_f64().unwrap();
    assert!((both["fpr"].as_f64().unwrap() - product).abs() < 1e-9 && both["independent"] == true);
    let text = case.ok("info a b");
    assert!(text.contains("\nall 2  2.") && text.ends_with(" % of absent keys pass\n"), "{text}");
    for others in ["a a", "a p"] {
        let bound = json(&case.ok(&format!("info {others} --json")));
        let least = bound["filters"].as_array().unwrap().iter().map(|info| info["fpr"].as_f64().unwrap());
        assert_eq!(bound["fpr"].as_f64().unwrap(), least.fold(1.0, f64::min));
        assert_eq!(bound["independent"], false);
        assert!(case.ok(&format!("info {others}")).contains("\nall 2  at most "));
    }
}

#[test]
fn several_filters_of_any_kinds_pass_what_all_of_them_pass() {
    let case = Case::new();
    case.lines("low", numbered(0..200));
    case.lines("high", numbered(100..300));
    case.lines("all", numbered(0..1000));
    let filters = KINDS.map(|kind| {
        case.ok(&format!("build --kind {kind} --fpp 0.1% low -o low.{kind}"));
        case.ok(&format!("build --kind {kind} --fpp 0.1% high -o high.{kind}"));
        case.ok(&format!("check low.{kind} all"))
    });
    for (kind, alone) in KINDS.iter().zip(&filters) {
        for other in KINDS {
            let passed = case.ok(&format!("check low.{kind} all --and high.{other}"));
            let of_other = case.ok(&format!("check high.{other} all"));
            let both: Vec<&str> = alone.lines().filter(|line| sorted(&of_other).contains(line)).collect();
            assert_eq!(passed.lines().collect::<Vec<_>>(), both, "{kind} and {other}");
            assert!((100..110).contains(&both.len()), "{kind} and {other}: {}", both.len());
            let denied = case.ok(&format!("check -cv low.{kind} all --and high.{other}"));
            assert_eq!(denied.trim(), (1000 - both.len()).to_string());
        }
    }
    let asked = |args: &str, line: &str| case.run_with(args, line);
    assert_eq!(asked("check low.parity --and high.bloom", "line 7\n").code, 1, "in one of them only");
    let found = asked("check low.parity --and high.bloom --json", "line 150\n");
    assert_eq!((found.code, found.out.as_str()), (0, "{\"key\":\"line 150\"}\n"));
    assert_eq!(asked("check low.parity --and high.bloom missing", "line 150\n").code, 2);
    std::fs::write(case.path("no"), "no filter").unwrap();
    case.refused("check low.parity all --and no", "no is damaged at offset 0");
}

#[test]
fn what_does_not_go_with_a_noisy_filter_is_refused() {
    let case = Case::new();
    case.lines("in", numbered(0..100));
    for option in ["--kind bloom", "--seed 1", "--hash xxh3", "--bits-per-key 3", "--same-hash-as f"] {
        case.refused(&format!("build --noisy {option} in -o f"), "cannot be used with");
    }
    case.refused("build in -o f", "--kind <KIND>");
    case.refused("build --noisy --fpp 1 in -o f", "must be between 0 and 1");
    case.refused("build --noisy - -o f", "give the number of lines with --keys");
    assert!(!case.path("f").exists());
    assert_eq!(case.run_with("build --noisy - --keys 3 -o f", "a\nb\nc\n").code, 0);
    assert_eq!(case.run_with("check f", "b\n").code, 0);
}
