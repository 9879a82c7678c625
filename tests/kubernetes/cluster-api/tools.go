//go:build tools

// Package tools names the program that build.py builds, so that go.mod pins and go.sum checks all it needs.
package tools

import (
	_ "sigs.k8s.io/cluster-api/core"
)
