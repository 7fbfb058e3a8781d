package main

import (
	"errors"
	"os"
	"strconv"
	"time"

	"vignette.dev/vignette/internal/radio/driver"
	"vignette.dev/vignette/internal/radio/radiotest"
	"vignette.dev/vignette/test/bench/carrier"
)

// carry is the child of this program that runs the native engine.
func carry(s *settings, model string, nodes int) error {
	m, err := newModel(s, model, nodes)
	if err != nil {
		return err
	}
	measure, err := carrier.Engine(nodes, driver.Options{Nice: driver.DefaultNice, Realtime: s.realtime}, m) // as in radiod
	if err != nil {
		return err
	}
	return carrier.Serve(measure)
}

// native engine between nodes with TAPs.
type native struct {
	all     []*radiotest.Node
	carrier *carrier.Carrier
}

func newNative(s *settings, model string, count int) (bed, error) {
	b := &native{}
	for nem := 1; nem <= count; nem++ {
		n, err := radiotest.NewNode(nem, carrier.MTU)
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		n.Quiet()
		b.all = append(b.all, n)
	}
	var err error
	b.carrier, err = carrier.Start(b.all, "-carrier", model, "-carrier-nodes", strconv.Itoa(count),
		"-rate", strconv.Itoa(s.rate), "-realtime", strconv.Itoa(s.realtime), "-seed", strconv.FormatUint(s.seed, 10))
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	_, err = b.carrier.Report() // wait until it has begun
	return b, err
}

func (b *native) nodes() (all []node) {
	for _, n := range b.all {
		all = append(all, node{n.Namespace, n.Name})
	}
	return all
}

func (b *native) cpu() (time.Duration, error) {
	r, err := b.carrier.Report()
	return r.CPU, err
}

func (b *native) close() (err error) {
	if b.carrier != nil {
		err = b.carrier.Stop()
	}
	for _, n := range b.all {
		err = errors.Join(err, n.Close())
	}
	return err
}

// node of a network: the namespace that it is in, and its radio's interface there.
type node struct {
	namespace *os.File
	radio     string
}
