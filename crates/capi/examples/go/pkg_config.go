//go:build !sidebloom_flags

package main

// #cgo pkg-config: sidebloom
import "C"
