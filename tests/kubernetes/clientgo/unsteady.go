package main

import (
	"io"
	"net"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
)

// unsteady is a line to the server that can be cut: every connection through it breaks at once, without a word.
type unsteady struct {
	listener net.Listener
	target   string
	guard    sync.Mutex
	open     []net.Conn
}

// through gives a configuration whose requests go over a line that can be cut.
func through(s *scene) (*rest.Config, *unsteady) {
	address, err := url.Parse(s.config.Host)
	s.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	line := &unsteady{listener: listener, target: address.Host}
	go line.accept()
	s.afterwards(func() { _ = listener.Close(); line.cut() })
	changed := rest.CopyConfig(s.config)
	changed.Host = "https://" + listener.Addr().String()
	return changed, line
}

func (line *unsteady) accept() {
	for {
		near, err := line.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", line.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		line.guard.Lock()
		line.open = append(line.open, near, far)
		line.guard.Unlock()
		go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
		go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
	}
}

func (line *unsteady) cut() {
	line.guard.Lock()
	defer line.guard.Unlock()
	for _, one := range line.open {
		_ = one.Close()
	}
	line.open = nil
}
