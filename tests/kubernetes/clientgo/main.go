// Command client-go-checks does with client-go what controllers do, and says of each thing whether it worked.
//
// It needs a KUBECONFIG of an administrator and prints one line of JSON per check as each ends. A check works in a namespace
// of its own and asserts everything itself, so the same program judges any API server. It exits 0 when all checks ran, whether
// they passed or not: the caller reads the lines.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	checkTimeout = 60 * time.Second // far above the 15 s of the slowest, a leader that is waited out
	atOnce       = 6                // most of a check is waiting
)

type check struct {
	name string
	run  func(*scene)
}

type result struct {
	Check   string  `json:"check"`
	OK      bool    `json:"ok"`
	Why     string  `json:"why,omitempty"`
	Seconds float64 `json:"seconds"`
}

func all() []check {
	// Those that wait the longest come first, so that the others run meanwhile.
	return slices.Concat(controllerChecks(), informerChecks(), kindChecks(), writeChecks(), applyChecks(), readChecks(), identityChecks())
}

func main() {
	only := flag.String("only", "", "run the checks whose name contains this")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "no usable KUBECONFIG:", err)
		os.Exit(1)
	}
	// The default of 5 requests a second is a courtesy to shared clusters; here it would only be waited for.
	config.QPS, config.Burst = 1000, 1000

	results := make(chan result)
	go runAll(config, *only, results)
	lines := json.NewEncoder(os.Stdout)
	for one := range results {
		if err := lines.Encode(one); err != nil {
			os.Exit(1)
		}
	}
}

func runAll(config *rest.Config, only string, results chan<- result) {
	defer close(results)
	slots := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for number, one := range all() {
		if !strings.Contains(one.name, only) {
			continue
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			results <- runOne(config, fmt.Sprintf("go-%d-%d", os.Getpid(), number), one)
		})
	}
	running.Wait()
}

func runOne(config *rest.Config, namespace string, one check) (told result) {
	started := time.Now()
	told = result{Check: one.name, OK: true}
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	s := newScene(ctx, rest.CopyConfig(config), namespace)
	defer func() {
		if broken := recover(); broken != nil {
			told.OK, told.Why = false, fmt.Sprint(broken)
		}
		s.tidy()
		told.Seconds = time.Since(started).Seconds()
	}()
	s.makeNamespace()
	one.run(s)
	return told
}
