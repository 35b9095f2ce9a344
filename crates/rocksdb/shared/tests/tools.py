"""The shared library in RocksDB's own, unmodified tools: db_bench, sst_dump and ldb of Debian's rocksdb-tools.

usage: tools.py LIBRARY        (libsidebloom_rocksdb.so, built with the headers of librocksdb-dev; needs g++ too, and libjemalloc2)
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY = ""
KEYS = 200_000
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
CRATE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLUGIN = os.path.join(os.path.dirname(CRATE), "plugin", "sidebloom")

OPTIONS = """[Version]
rocksdb_version=7.8.3
options_file_version=1.1
[DBOptions]
create_if_missing=true
[CFOptions "default"]
compression=kNoCompression
[TableOptions/BlockBasedTable "default"]
"""


def run(*command, preload=None, check=True):
    env = dict(os.environ, LD_PRELOAD=preload or LIBRARY)
    done = subprocess.run(command, env=env, text=True, capture_output=True, timeout=300)
    if check and done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Tools(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def db_bench(self, policy, benchmarks, table="", **run_args):
        with open(self.path("options"), "w") as options:
            options.write(OPTIONS + f"filter_policy={policy}\n{table}")
        # The same seed, so the same keys for all policies.
        return run("db_bench", f"--options_file={self.path('options')}", f"--db={self.path('db')}", "--seed=42",
                   f"--benchmarks={benchmarks}", f"--num={KEYS}", "--statistics", "--key_size=16",
                   f"--use_existing_db={int(os.path.exists(self.path('db')))}", **run_args)

    def counted(self, output, name):
        return int(re.search(rf"{re.escape(name)} COUNT : (\d+)", output).group(1))

    def found(self, output):
        return re.findall(r"\((\d+) of \d+ found\)", output)

    def bits_per_key(self):
        text = run("sst_dump", f"--file={self.path('db')}", "--command=none", "--show_properties").stdout
        filters = sum(map(int, re.findall(r"filter block size: (\d+)", text)))
        entries = sum(map(int, re.findall(r"# entries for filter: (\d+)", text)))
        names = set(re.findall(r"filter policy name: (\S+)", text))
        return 8 * filters / max(entries, 1), names

    def measure(self, policy, table=""):
        self.dir.cleanup()
        os.mkdir(self.dir.name)
        self.db_bench(policy, "fillrandom,compact", table)
        output = self.db_bench(policy, "readmissing", table).stdout
        asked = self.counted(output, "rocksdb.bloom.filter.useful")
        maybe = self.counted(output, "rocksdb.bloom.filter.full.positive")
        found = self.found(self.db_bench(policy, "readrandom,multireadrandom", table).stdout)
        bits, names = self.bits_per_key()
        rate = maybe / max(asked + maybe, 1)
        print(f"{policy:28} {bits:6.2f} bits per key  {100 * rate:.3f} % false positives  found {', '.join(found)}")
        return bits, rate, names, found

    def test_rates_bits_and_found_keys_beside_rocksdb_s_own_filters(self):
        *_, baseline = self.measure("nullptr")
        for policy, bits_max, rate_max in [("bloomfilter:10", 10.1, 0.012),
                                           ("sidebloom.parity:8", 8.9, 0.004), ("sidebloom.parity:9", 10.12, 0.002),
                                           ("sidebloom.parity:auto:10", 10.2, 0.0025), ("ribbonfilter:10", 7.5, 0.012)]:
            bits, rate, names, found = self.measure(policy)
            self.assertEqual(found, baseline, policy)
            self.assertLess(bits, bits_max, policy)
            self.assertTrue(0 < rate < rate_max, (policy, rate))
            self.assertEqual(names, {policy.split(":")[0]})

    def test_partitioned_filters(self):
        bits, rate, _, found = self.measure(
            "sidebloom.parity:8", "partition_filters=true\nindex_type=kTwoLevelIndexSearch\nmetadata_block_size=4096\n"
            "cache_index_and_filter_blocks=true\n")
        self.assertTrue(bits < 9.6 and 0 < rate < 0.004, (bits, rate))
        self.assertGreater(int(found[0]), KEYS // 2)

    def test_the_store_opens_without_the_library_with_the_same_answers(self):
        *_, found = self.measure("sidebloom.parity:8")
        stock = self.db_bench("bloomfilter:10", "readrandom,multireadrandom", preload="/dev/null")
        self.assertEqual(self.found(stock.stdout), found)
        rows = run("ldb", f"--db={self.path('db')}", "scan", "--max_keys=5", "--ignore_unknown_options", preload="/dev/null")
        self.assertEqual(len(rows.stdout.splitlines()), 5)

    def test_rounding_to_the_size_classes_of_jemalloc_keeps_the_average(self):
        self.assertTrue(os.path.exists(JEMALLOC), "apt-get install libjemalloc2")
        results = []
        for rounding in ["false", "true"]:
            self.dir.cleanup()
            os.mkdir(self.dir.name)
            with open(self.path("options"), "w") as options:
                options.write(OPTIONS.replace("compression=kNoCompression", "compression=kNoCompression\n"
                              "write_buffer_size=1500000\ndisable_auto_compactions=true\nlevel0_slowdown_writes_trigger=1000\n"
                              "level0_stop_writes_trigger=1000")
                              + f"filter_policy=sidebloom.parity:8\noptimize_filters_for_memory={rounding}\n")
            run("db_bench", f"--options_file={self.path('options')}", f"--db={self.path('db')}", "--seed=42",
                "--benchmarks=fillrandom", f"--num={KEYS}", preload=f"{LIBRARY}:{JEMALLOC}")
            results.append(self.bits_per_key()[0])
        plain, rounded = results
        print(f"optimize_filters_for_memory with jemalloc: {plain:.3f} bits per key without, {rounded:.3f} with")
        self.assertNotEqual(plain, rounded)
        self.assertLess(abs(rounded / plain - 1), 0.03)

    def test_junk_is_refused_with_what_to_use(self):
        for junk in ["sidebloom.parity:13", "sidebloom.parity:eight", "sidebloom.parity8", "sidebloom.parity:auto:99"]:
            with open(self.path("options"), "w") as options:
                options.write(OPTIONS + f"filter_policy={junk}\n")
            done = run("db_bench", f"--options_file={self.path('options')}", f"--db={self.path('db')}", "--benchmarks=fillseq",
                       "--num=10", check=False)
            text = done.stdout + done.stderr
            # This version of RocksDB drops errors of table options, and continues without a filter.
            self.assertIn("7, 8, 9, 10, 11, 12, 16 lanes", text)
            self.assertIn(junk, text)

    def test_programs_without_rocksdb_do_not_notice_the_library(self):
        done = run("sh", "-c", "echo fine")
        self.assertEqual((done.stdout, done.stderr), ("fine\n", ""))

    def compile(self, name, source, *flags):
        with open(self.path(name + ".cc"), "w") as file:
            file.write(source)
        subprocess.run(["g++", "-std=c++20", self.path(name + ".cc"), "-o", self.path(name), *flags], check=True)
        return self.path(name)

    def test_another_rocksdb_is_refused_when_the_library_is_loaded(self):
        other = self.compile("other", """#include <string>
            namespace rocksdb { std::string GetRocksVersionAsString(bool) { return "9.1"; } }""", "-shared", "-fPIC")
        done = run("true", preload=f"{LIBRARY}:{other}")
        self.assertIn("exports only a part of RocksDB", done.stderr)
        with open("/dev/full", "w") as full:
            done = subprocess.run(["true"], env=dict(os.environ, LD_PRELOAD=f"{LIBRARY}:{other}"), stderr=full)
        self.assertEqual(done.returncode, 0)
        # In front of the whole of 7.8.
        done = run("sst_dump", "--version", preload=f"{LIBRARY}:{other}", check=False)
        self.assertIn("built for RocksDB 7.8, but the program has RocksDB 9.1", done.stderr)

    def test_the_policy_stays_when_somebody_closes_the_library(self):
        program = self.compile("closed", """
            #include <cstdio>
            #include <dlfcn.h>
            #include "rocksdb/convenience.h"
            #include "rocksdb/filter_policy.h"
            int main(int, char** arguments) {
              dlclose(dlopen(arguments[1], RTLD_NOW));
              std::shared_ptr<const rocksdb::FilterPolicy> policy;
              puts(rocksdb::FilterPolicy::CreateFromString({}, "sidebloom.parity:9", &policy).ToString().c_str());
            }""", "-lrocksdb")
        self.assertEqual(run(program, LIBRARY, preload="/dev/null").stdout, "OK\n")

    def test_headers_of_another_version_are_refused_by_the_compiler(self):
        os.makedirs(self.path("include/rocksdb"))
        with open("/usr/include/rocksdb/version.h") as header:
            text = header.read().replace("#define ROCKSDB_MINOR 8", "#define ROCKSDB_MINOR 9")
        with open(self.path("include/rocksdb/version.h"), "w") as header:
            header.write(text)
        done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-I", self.path("include"), os.path.join(PLUGIN, "reader.cc")],
                              text=True, capture_output=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("sidebloom supports RocksDB 7.8 and 11.8", done.stderr)

    def test_a_program_links_the_library(self):
        folder, name = os.path.split(LIBRARY)
        program = self.compile("linked", """
            #include <cstdio>
            #include "rocksdb/convenience.h"
            #include "rocksdb/filter_policy.h"
            #include "sidebloom_rocksdb.h"
            int main() {
              if (const char* error = sidebloom_rocksdb_register()) { puts(error); return 1; }
              std::shared_ptr<const rocksdb::FilterPolicy> policy;
              auto status = rocksdb::FilterPolicy::CreateFromString({}, "sidebloom.parity:9", &policy);
              puts(status.ok() ? policy->GetId().c_str() : status.ToString().c_str());
            }""", "-I", os.path.join(CRATE, "include"), "-L", folder, f"-Wl,-rpath,{folder}", f"-l:{name}", "-lrocksdb")
        self.assertEqual(run(program, preload="/dev/null").stdout, "sidebloom.parity:9\n")


if __name__ == "__main__":
    LIBRARY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
