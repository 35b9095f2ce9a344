// Which addresses has a crawler seen? A store remembers them, and a filter answers for a whole list at once.
//
//	go run . /tmp/seen
//
// cgo asks pkg-config where sidebloom is. Without pkg-config, set CGO_CFLAGS and CGO_LDFLAGS, and build with
// the tag sidebloom_flags.
package main

// #include <stdlib.h>
// #include <sidebloom.h>
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

// Error is an error of the library.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return e.Message }

// check turns the result of a call into an error, and frees the error object.
func check(code C.sb_code, err *C.sb_error) error {
	if code == C.SB_OK {
		return nil
	}
	defer C.sb_error_free(err)
	return &Error{int(code), C.GoString(C.sb_error_message(err))}
}

// bytes lends Go's memory to a call. Go's rules allow it if the call keeps no pointer, and none does.
func bytes(b []byte) (unsafe.Pointer, C.size_t) {
	if len(b) == 0 {
		return nil, 0
	}
	return unsafe.Pointer(&b[0]), C.size_t(len(b))
}

func copied(s C.sb_slice) []byte { return C.GoBytes(s.data, C.int(s.length)) }

// DB is a store.
type DB struct{ handle *C.sb_db }

// Open opens a store, and creates it if it is missing.
func Open(path string) (*DB, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var db DB
	var err *C.sb_error
	return &db, check(C.sb_open(C.SB_INTERFACE, name, nil, &db.handle, &err), err)
}

// Close closes the store; an error says that not everything is durable.
func (db *DB) Close() error {
	var err *C.sb_error
	code := C.sb_close(db.handle, &err)
	C.sb_db_free(db.handle)
	db.handle = nil
	return check(code, err)
}

// Put sets a key to a value.
func (db *DB) Put(key, value []byte) error {
	var err *C.sb_error
	k, kn := bytes(key)
	v, vn := bytes(value)
	return check(C.sb_put(db.handle, k, kn, v, vn, &err), err)
}

// Get returns the value of a key, or nil if it does not exist.
func (db *DB) Get(key []byte) ([]byte, error) {
	var err *C.sb_error
	var value *C.sb_value
	k, kn := bytes(key)
	if err := check(C.sb_get(db.handle, k, kn, &value, &err), err); err != nil || value == nil {
		return nil, err
	}
	defer C.sb_value_free(value)
	return copied(C.sb_value_bytes(value)), nil
}

// InsertNew puts a key that does not exist, and returns whether it did not.
func (db *DB) InsertNew(key, value []byte) (bool, error) {
	var err *C.sb_error
	var inserted C.bool
	k, kn := bytes(key)
	v, vn := bytes(value)
	code := C.sb_insert_new(db.handle, k, kn, v, vn, &inserted, &err)
	return bool(inserted), check(code, err)
}

// Each calls visit with every row whose key starts with prefix, in order.
func (db *DB) Each(prefix []byte, visit func(key, value []byte)) error {
	var err *C.sb_error
	var it *C.sb_iterator
	p, pn := bytes(prefix)
	if err := check(C.sb_iterator_new_prefix(db.handle, p, pn, &it, &err), err); err != nil {
		return err
	}
	defer C.sb_iterator_free(it)
	for C.sb_iterator_first(it, nil); bool(C.sb_iterator_valid(it)); C.sb_iterator_next(it, nil) {
		visit(copied(C.sb_iterator_key(it)), copied(C.sb_iterator_value(it)))
	}
	return check(C.sb_iterator_check(it, &err), err)
}

// Filter is a Bloom filter.
type Filter struct{ handle *C.sb_filter }

// NewFilter makes an empty filter for this many keys at this rate of false positives.
func NewFilter(capacity uint64, rate float64) (*Filter, error) {
	var filter Filter
	var err *C.sb_error
	code := C.sb_filter_new(C.SB_INTERFACE, C.SB_FILTER_KIND_BLOCKED, C.uint64_t(capacity), C.double(rate), &filter.handle, &err)
	return &filter, check(code, err)
}

// Insert adds a key.
func (f *Filter) Insert(key []byte) error {
	var err *C.sb_error
	k, kn := bytes(key)
	return check(C.sb_filter_insert(f.handle, k, kn, nil, &err), err)
}

// ContainsMany returns for each key whether the filter may have it. One call into C answers for all of them:
// the keys are one piece of memory, with their ends as offsets.
func (f *Filter) ContainsMany(keys []string) ([]bool, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var data []byte
	offsets := make([]C.int64_t, 1, len(keys)+1)
	for _, key := range keys {
		data = append(data, key...)
		offsets = append(offsets, C.int64_t(len(data)))
	}
	var err *C.sb_error
	verdicts := make([]C.uint8_t, len(keys))
	d, dn := bytes(data)
	code := C.sb_filter_contains_large_offsets(f.handle, d, dn, &offsets[0], C.size_t(len(keys)), &verdicts[0], &err)
	answers := make([]bool, len(keys))
	for i, verdict := range verdicts {
		answers[i] = verdict == 1
	}
	return answers, check(code, err)
}

// Free frees the filter.
func (f *Filter) Free() { C.sb_filter_free(f.handle); f.handle = nil }

func run(path string) error {
	db, err := Open(path)
	if err != nil {
		return err
	}
	filter, err := NewFilter(1000, 0.001)
	if err != nil {
		return err
	}
	defer filter.Free()
	for _, address := range []string{"https://a.example/", "https://b.example/", "https://a.example/"} {
		isNew, err := db.InsertNew([]byte(address), nil)
		if err != nil {
			return err
		}
		fmt.Printf("%s is new: %v\n", address, isNew)
		if err := filter.Insert([]byte(address)); err != nil {
			return err
		}
	}
	if err := db.Put([]byte("https://c.example/"), []byte("robots: none")); err != nil {
		return err
	}
	value, err := db.Get([]byte("https://c.example/"))
	if err != nil {
		return err
	}
	fmt.Printf("https://c.example/: %s\n", value)
	if missing, err := db.Get([]byte("https://d.example/")); err != nil || missing != nil {
		return fmt.Errorf("a missing key has the value %q (%v)", missing, err)
	}
	err = db.Each([]byte("https://"), func(key, value []byte) { fmt.Printf("- %s %q\n", key, value) })
	if err != nil {
		return err
	}
	answers, err := filter.ContainsMany([]string{"https://a.example/", "https://d.example/"})
	if err != nil {
		return err
	}
	fmt.Println("seen:", answers)
	// The store is open already.
	_, err = Open(path)
	if failure, isOurs := err.(*Error); !isOurs || failure.Code != C.SB_LOCKED {
		return fmt.Errorf("a second open is not SB_LOCKED, but %v", err)
	}
	return db.Close()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: seen DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
