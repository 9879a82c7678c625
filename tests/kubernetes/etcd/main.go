// Command etcd is etcd itself: the module publishes the entry point, not an installable program of this version.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
