//go:build !upgrade

package main

import (
	"context"
	"errors"
	"io"
)

// recordPool needs x/upgrade, whose dependencies take long to compile.
func recordPool(context.Context, options, io.Writer) error {
	return errors.New("-record-pool needs a program that is built with -tags upgrade")
}
