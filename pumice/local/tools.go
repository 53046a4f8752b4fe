//go:build tools

package local
